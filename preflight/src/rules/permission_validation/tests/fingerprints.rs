//! A fingerprint identifies one denied permission: different ones never share one, equal ones always do, and positions,
//! order and API version do not affect it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const VERBS: [&str; 3] = ["delete", "get", "list"];

/// Operations by kind, namespace and name, the permissions in roles of `shop`, and the roles that their bindings bind.
#[derive(Clone, Debug)]
struct Scenario {
    objects: BTreeMap<(bool, &'static str, &'static str), Operation>,
    roles: BTreeMap<&'static str, (Operation, BTreeSet<&'static str>)>,
    bindings: BTreeMap<&'static str, &'static str>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    use prop::collection::{btree_map, btree_set};
    use prop::sample::select;
    let written = || select(vec![Operation::Create, Operation::Update]);
    let done = select(vec![Operation::Create, Operation::Update, Operation::Replace, Operation::Delete]);
    let object = (prop::bool::ANY, select(vec!["shop", "stock"]), select(vec!["a", "b", "c"]));
    let objects = btree_map(object, done, 0..6);
    let roles = btree_map(select(vec!["a", "b"]), (written(), btree_set(select(VERBS.to_vec()), 1..3)), 0..3);
    let bindings = btree_map(select(vec!["x", "y"]), select(vec!["a", "b"]), 0..3);
    (objects, roles, bindings).prop_map(|(objects, roles, bindings)| Scenario { objects, roles, bindings })
}

impl Scenario {
    /// The changes; with `turned`, the same ones written differently.
    fn changes(&self, turned: bool) -> Vec<Change> {
        let version = if turned { "v1beta1" } else { "v1" };
        let objects = self.objects.iter().map(|((is_app, namespace, name), operation)| {
            if !is_app {
                return configmap(*operation, namespace, name);
            }
            let api_version = format!("apps/{version}");
            let metadata = json!({"namespace": namespace, "name": name});
            change(
                *operation,
                "deployments",
                json!({"apiVersion": api_version, "kind": "Deployment", "metadata": metadata}),
            )
        });
        let api_version = format!("rbac.authorization.k8s.io/{version}");
        let roles = self.roles.iter().map(|(name, (operation, verbs))| {
            let mut verbs: Vec<_> = verbs.iter().collect();
            if turned {
                verbs.reverse();
            }
            let mut role = role(name, json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]));
            role["apiVersion"] = json!(api_version);
            change(*operation, "roles", role)
        });
        let bindings = self.bindings.iter().map(|(name, role)| {
            let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role});
            let metadata = json!({"namespace": "shop", "name": name});
            let binding =
                json!({"apiVersion": api_version, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference});
            change(Operation::Create, "rolebindings", binding)
        });
        let mut changes: Vec<Change> = objects.chain(roles).chain(bindings).collect();
        if turned {
            changes.reverse();
        }
        changes
    }

    fn fingerprints(&self, turned: bool) -> BTreeSet<String> {
        let (report, _) = run_counting(self.changes(turned), &Cluster::default());
        report.findings.into_iter().map(|finding| finding.fingerprint).collect()
    }

    /// A description of every missing permission; independent of the rule's own code.
    fn meanings(&self) -> BTreeSet<String> {
        let mut requests: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
        let objects = self.objects.iter().map(|((is_app, namespace, name), operation)| {
            (if *is_app { "deployments" } else { "configmaps" }, *namespace, *name, *operation)
        });
        let roles = self.roles.iter().map(|(name, (operation, _))| ("roles", "shop", *name, *operation));
        let bindings = self.bindings.keys().map(|name| ("rolebindings", "shop", *name, Operation::Create));
        for (resource, namespace, name, operation) in objects.chain(roles).chain(bindings) {
            let verbs: &[&str] = match operation {
                Operation::Create => &["create"],
                Operation::Update => &["patch"],
                Operation::Replace => &["create", "delete"],
                _ => &["delete"],
            };
            for verb in verbs {
                requests.entry((verb, resource, namespace)).or_default().insert(name);
            }
        }
        let requests = requests.into_iter().map(|request| format!("{request:?}"));
        let escalations = self.roles.iter().map(|role| format!("escalate {role:?}"));
        let bound = self
            .bindings
            .iter()
            .map(|(name, role)| format!("bind {name} {role} {:?}", self.roles.get(role).map(|(_, verbs)| verbs)));
        requests.chain(escalations).chain(bound).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn different_lacks_never_share_a_fingerprint(one in scenario(), other in scenario()) {
        let (ones, others) = (one.fingerprints(false), other.fingerprints(false));
        prop_assert_eq!(ones.len(), one.meanings().len());
        let same = one.meanings().intersection(&other.meanings()).count();
        prop_assert_eq!(ones.intersection(&others).count(), same);
        prop_assert_eq!(ones, one.fingerprints(true));
    }
}
