//! What PermissionValidation asks, and how it judges the answers, in a small model of a cluster's RBAC.

mod fingerprints;

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_objects::object::ObjectRef;
use serde_json::{Value, json};

use super::*;
use crate::facts::{AccessRule, Answer, ClusterFacts, ClusterSide, Need, Verification};
use crate::judge::{Outcome, RuleOutcome, RunReport};
use crate::policy::select;
use crate::session::Session;

/// The user's permissions: rules with their namespace, which is empty for cluster-wide.
#[derive(Default)]
struct Cluster {
    grants: Vec<(&'static str, AccessRule)>,
    /// Permissions from an authorizer that does not list its rules.
    unlisted: Vec<Need>,
    incomplete: bool,
    down: bool,
    roles: Vec<Value>,
}

fn list(words: &str) -> Vec<String> {
    words.split(',').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

/// `verbs groups resources names`, each separated by commas; `core` is the core group.
fn rule(text: &str) -> AccessRule {
    let parts: Vec<&str> = text.split(' ').collect();
    let groups = list(parts[1]).into_iter().map(|group| if group == "core" { String::new() } else { group }).collect();
    let names = parts.get(3).map(|names| list(names)).unwrap_or_default();
    AccessRule { verbs: list(parts[0]), api_groups: groups, resources: list(parts[2]), resource_names: names }
}

impl Cluster {
    fn granting(grants: &[(&'static str, &str)]) -> Self {
        let grants = grants.iter().map(|(namespace, text)| (*namespace, rule(text))).collect();
        Self { grants, ..Self::default() }
    }

    fn answer(&self, need: &Need) -> Answer {
        match need {
            _ if self.down => Answer::Unable { reason: "timeout".into() },
            Need::AccessRules { namespace } => Answer::AccessRules {
                rules: self
                    .grants
                    .iter()
                    .filter(|(place, _)| place.is_empty() || place == namespace)
                    .map(|(_, rule)| rule.clone())
                    .collect(),
                incomplete: self.incomplete,
            },
            Need::Access { verb, group, resource, subresource, namespace, name } => {
                let has = |all: &[String], one: &str| all.iter().any(|item| item == "*" || item == one);
                let resource =
                    if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
                let allowed = self.unlisted.contains(need)
                    || self.grants.iter().any(|(place, rule)| {
                        (place.is_empty() || place == namespace)
                            && has(&rule.verbs, verb)
                            && has(&rule.api_groups, group)
                            && has(&rule.resources, &resource)
                            && (rule.resource_names.is_empty() || rule.resource_names.contains(name))
                    });
                Answer::Allowed { allowed, reason: String::new() }
            }
            Need::Object { object } => {
                let role = self.roles.iter().find(|role| ObjectRef::of(role).key() == object.key());
                Answer::Object { object: role.cloned().map(Arc::new) }
            }
            Need::Objects { .. }
            | Need::ObjectCount { .. }
            | Need::NamespaceContents { .. }
            | Need::Dependents { .. }
            | Need::PodAdmission { .. }
            | Need::Image { .. }
            | Need::Models { .. }
            | Need::Existing { .. }
            | Need::PodCount { .. }
            | Need::Program { .. }
            | Need::ConversionPlans => panic!("neither lists nor documents"),
        }
    }
}

fn run_counting(changes: Vec<Change>, cluster: &Cluster) -> (RunReport, Vec<usize>) {
    let selection = select(Some(&[NAME.to_owned()]), None).expect("the rule exists");
    let changes = ChangeSet { app: "test".into(), changes, ..ChangeSet::default() };
    let mut session = Session::new(selection, Facts { changes, ..Facts::default() });
    let mut asked = Vec::new();
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        asked.push(needs.len());
        session.answer(needs.into_iter().map(|need| (need.clone(), cluster.answer(&need))));
    }
    let (report, _) = session.finish(Judgement::default(), &[], "2026-01-01");
    for finding in &report.findings {
        assert!(META.checks.iter().any(|(check, _)| *check == finding.check), "{} is not declared", finding.check);
    }
    (report, asked)
}

/// One line per finding; `passed` if there are none.
fn run(changes: Vec<Change>, cluster: &Cluster) -> String {
    let (report, _) = run_counting(changes, cluster);
    let line =
        |finding: &Finding| format!("{} {:?} {}: {}", finding.check, finding.verdict, finding.object, finding.message);
    let lines: Vec<String> = report.findings.iter().map(line).collect();
    if lines.is_empty() { format!("{:?}", report.outcome) } else { lines.join("\n") }
}

fn change(operation: Operation, resource: &str, manifest: Value) -> Change {
    let object = ObjectRef::of(&manifest);
    let manifest = Arc::new(manifest);
    Change {
        namespaced: !object.namespace.is_empty(),
        object,
        resource: resource.into(),
        operation,
        live: (operation != Operation::Create).then(|| manifest.clone()),
        desired: (operation != Operation::Delete).then_some(manifest),
        result: None,
        verification: Verification::NotVerified("its namespace is new".into()),
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn configmap(operation: Operation, namespace: &str, name: &str) -> Change {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}});
    change(operation, "configmaps", manifest)
}

fn role(name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
           "metadata": {"namespace": "shop", "name": name}, "rules": rules})
}

fn cluster_role(name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

fn binding(kind: &str, role: &str) -> Change {
    change(
        Operation::Create,
        "rolebindings",
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
               "metadata": {"namespace": "shop", "name": "b"}, "roleRef": {"kind": kind, "name": role}}),
    )
}

fn secrets_reader() -> Value {
    json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}])
}

#[test]
fn each_operation_takes_its_own_verbs() {
    let needed_for = |change: Change| {
        let report = run_counting(vec![change], &Cluster::default()).0;
        report
            .findings
            .into_iter()
            .map(|finding| finding.check)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let needed = |operation: Operation| needed_for(configmap(operation, "shop", "a"));
    assert_eq!(needed(Operation::Create), "create");
    assert_eq!(needed(Operation::Update), "patch");
    assert_eq!(needed(Operation::Replace), "create delete");
    assert_eq!(needed(Operation::Delete), "delete");
    assert_eq!(needed_for(Change { orphaned: true, ..configmap(Operation::Delete, "shop", "a") }), "patch");
    assert_eq!(needed(Operation::Noop), "");
    assert_eq!(needed(Operation::Exists), "");
}

#[test]
fn one_finding_speaks_for_all_objects_of_a_kind_in_a_namespace() {
    let changes = vec![
        configmap(Operation::Create, "bar", "x"),
        configmap(Operation::Create, "shop", "a"),
        configmap(Operation::Create, "shop", "b"),
        configmap(Operation::Create, "shop", "c"),
    ];
    let cluster = Cluster::granting(&[("shop", "patch core configmaps"), ("bar", "* * *")]);
    insta::assert_snapshot!(run(changes, &cluster), @r#"create Breaking ConfigMap shop/a: not permitted to "create" /v1, Resource=configmaps in namespace "shop" (3 objects)"#);
}

#[test]
fn who_may_do_everything_is_asked_nothing_more() {
    let changes = (0..50).map(|number| configmap(Operation::Create, "shop", &number.to_string())).collect();
    let (report, asked) = run_counting(changes, &Cluster::granting(&[("", "* * *")]));
    assert_eq!((report.outcome, asked), (Outcome::Passed, vec![2]));
}

#[test]
fn rules_of_a_namespace_answer_for_any_number_of_objects() {
    let changes = (0..50).map(|number| configmap(Operation::Create, "shop", &number.to_string())).collect();
    let (report, asked) = run_counting(changes, &Cluster::granting(&[("shop", "create,patch core configmaps")]));
    assert_eq!((report.outcome, asked), (Outcome::Passed, vec![2]));
}

#[test]
fn without_a_change_nothing_is_asked() {
    let (report, asked) = run_counting(vec![configmap(Operation::Noop, "shop", "a")], &Cluster::default());
    assert_eq!((report.outcome, asked), (Outcome::Passed, vec![]));
}

#[test]
fn incomplete_rules_are_completed_by_single_reviews() {
    let access = |verb| Access { verb, group: "", resource: "configmaps", namespace: "shop", name: "" }.need();
    let mut cluster =
        Cluster { incomplete: true, unlisted: vec![access("create"), access("patch")], ..Cluster::default() };
    let changes = vec![configmap(Operation::Create, "shop", "a"), configmap(Operation::Update, "shop", "a")];
    assert_eq!(run(changes.clone(), &cluster), "Passed");
    cluster.unlisted[1] = access("update");
    assert_eq!(run(changes.clone(), &cluster), "Passed", "who may not patch writes whole objects");
    cluster.unlisted.pop();
    insta::assert_snapshot!(run(changes, &cluster), @r#"patch Breaking ConfigMap shop/a: not permitted to "patch" /v1, Resource=configmaps in namespace "shop""#);
}

#[test]
fn permissions_for_single_names_count_for_these_names() {
    let changes: Vec<Change> = ["a", "b"].iter().map(|name| configmap(Operation::Update, "shop", name)).collect();
    assert_eq!(run(changes.clone(), &Cluster::granting(&[("shop", "patch core configmaps a,b")])), "Passed");
    insta::assert_snapshot!(run(changes.clone(), &Cluster::granting(&[("shop", "patch core configmaps b")])), @r#"patch Breaking ConfigMap shop/a: not permitted to "patch" /v1, Resource=configmaps in namespace "shop""#);
    // Names that an unlisted authorizer grants are found one by one.
    let named = |name| Access { verb: "patch", group: "", resource: "configmaps", namespace: "shop", name }.need();
    let cluster = Cluster { incomplete: true, unlisted: vec![named("a"), named("b")], ..Cluster::default() };
    assert_eq!(run(changes, &cluster), "Passed");
}

#[test]
fn too_many_objects_to_ask_one_by_one_make_the_rule_unable() {
    let changes = (0..150).map(|number| configmap(Operation::Update, "shop", &number.to_string())).collect();
    let (report, _) = run_counting(changes, &Cluster { incomplete: true, ..Cluster::default() });
    assert_eq!(report.rules[0].unable.len(), 1);
    assert_eq!(report.outcome, Outcome::Refused, "those that were asked are refused all the same");
}

#[test]
fn a_grant_in_a_namespace_is_none_for_the_cluster() {
    let namespace = || {
        let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        vec![change(Operation::Update, "namespaces", manifest), configmap(Operation::Update, "shop", "a")]
    };
    let all_in_shop = Cluster::granting(&[("shop", "patch core configmaps,namespaces")]);
    insta::assert_snapshot!(run(namespace(), &all_in_shop), @r#"patch Breaking Namespace shop: not permitted to "patch" /v1, Resource=namespaces"#);
    assert_eq!(run(namespace(), &Cluster::granting(&[("", "patch core configmaps,namespaces")])), "Passed");
}

#[test]
fn in_a_namespace_that_is_created_here_a_refusal_may_be_cured_by_a_binding() {
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let mut changes =
        vec![configmap(Operation::Create, "shop", "a"), change(Operation::Create, "namespaces", manifest)];
    let cluster = Cluster::granting(&[
        ("", "create,patch core namespaces"),
        ("", "create,patch,bind rbac.authorization.k8s.io rolebindings,clusterroles"),
        ("", "patch core configmaps"),
    ]);
    insta::assert_snapshot!(run(changes.clone(), &cluster), @r#"create Breaking ConfigMap shop/a: not permitted to "create" /v1, Resource=configmaps in namespace "shop""#);
    changes.push(binding("ClusterRole", "admin"));
    insta::assert_snapshot!(run(changes, &cluster), @r#"create Unknown ConfigMap shop/a: unable to determine: not permitted to "create" /v1, Resource=configmaps in namespace "shop", but the namespace is created here, and role bindings in it may grant this"#);
}

#[test]
fn a_kind_that_is_not_served_yet_is_named_by_its_definition() {
    let foo = || {
        let manifest =
            json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"namespace": "shop", "name": "a"}});
        change(Operation::Create, "", manifest)
    };
    let definition = change(
        Operation::Create,
        "customresourcedefinitions",
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
               "spec": {"group": "ex.com", "names": {"kind": "Foo", "plural": "foos"}}}),
    );
    let cluster = Cluster::granting(&[("", "create,patch apiextensions.k8s.io customresourcedefinitions")]);
    insta::assert_snapshot!(run(vec![definition, foo()], &cluster), @r#"
    create Breaking Foo.ex.com shop/a: not permitted to "create" ex.com/v1, Resource=foos in namespace "shop"
    "#);
    insta::assert_snapshot!(run(vec![foo()], &cluster), @"resource Unknown Foo.ex.com shop/a: unable to determine whether Foo objects may be written: the resource is not known");
}

#[test]
fn a_role_may_grant_what_the_user_holds() {
    let manage = ("shop", "create,patch rbac.authorization.k8s.io roles");
    let judge = |grants: &[(&'static str, &str)], rules: Value| {
        let grants: Vec<_> = [manage].iter().chain(grants).copied().collect();
        run(vec![change(Operation::Create, "roles", role("r", rules))], &Cluster::granting(&grants))
    };
    assert_eq!(judge(&[("shop", "get,list,watch core secrets")], secrets_reader()), "Passed");
    assert_eq!(judge(&[("shop", "escalate rbac.authorization.k8s.io roles")], secrets_reader()), "Passed");
    assert_eq!(judge(&[("shop", "escalate rbac.authorization.k8s.io roles r")], secrets_reader()), "Passed");
    assert_eq!(judge(&[], json!([])), "Passed");
    insta::assert_snapshot!(judge(&[("shop", "get core secrets")], secrets_reader()), @r#"escalate Breaking Role shop/r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=Role: the role grants "list" secrets, and this user does not hold that"#);
    insta::assert_snapshot!(judge(&[("shop", "get,list core secrets db")], secrets_reader()), @r#"escalate Breaking Role shop/r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=Role: the role grants "get" secrets, "list" secrets, and this user does not hold that"#);
    insta::assert_snapshot!(judge(&[("other", "* core secrets")], secrets_reader()), @r#"escalate Breaking Role shop/r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=Role: the role grants "get" secrets, "list" secrets, and this user does not hold that"#);
    insta::assert_snapshot!(judge(&[], json!([{"apiGroups": ["apps", ""], "resources": ["*"], "verbs": ["*"]}])), @r#"escalate Breaking Role shop/r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=Role: the role grants "*" *, "*" *.apps, and this user does not hold that"#);
    let named = json!([{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"], "resourceNames": ["p"]}]);
    insta::assert_snapshot!(judge(&[], named.clone()), @r#"escalate Breaking Role shop/r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=Role: the role grants "get" pods/log "p", and this user does not hold that"#);
    assert_eq!(judge(&[("shop", "get core pods/log p")], named), "Passed");
}

#[test]
fn a_cluster_role_may_grant_what_the_user_holds_in_the_whole_cluster() {
    let manage = ("", "create,patch rbac.authorization.k8s.io clusterroles");
    let judge = |grant: (&'static str, &str), rules: Value| {
        let changes = vec![
            change(Operation::Create, "clusterroles", cluster_role("r", rules)),
            configmap(Operation::Noop, "shop", "a"),
            configmap(Operation::Update, "shop", "b"),
        ];
        run(changes, &Cluster::granting(&[manage, ("shop", "patch core configmaps"), grant]))
    };
    assert_eq!(judge(("", "get,list core secrets"), secrets_reader()), "Passed");
    assert_eq!(judge(("", "escalate rbac.authorization.k8s.io clusterroles"), secrets_reader()), "Passed");
    insta::assert_snapshot!(judge(("shop", "get,list core secrets"), secrets_reader()), @r#"escalate Breaking ClusterRole r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=ClusterRole: the role grants "get" secrets, "list" secrets, and this user does not hold that"#);
    let metrics = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    insta::assert_snapshot!(judge(("", "get core secrets"), metrics), @"escalate Unknown ClusterRole r: unable to determine if this is a privilege escalation: the role grants nonResourceURLs /metrics");
}

#[test]
fn an_aggregation_rule_takes_full_authority() {
    let mut manifest = cluster_role("r", json!([]));
    manifest["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let cluster = Cluster::granting(&[("", "create,patch rbac.authorization.k8s.io clusterroles")]);
    insta::assert_snapshot!(run(vec![change(Operation::Create, "clusterroles", manifest.clone())], &cluster), @r#"escalate Breaking ClusterRole r: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=ClusterRole: an aggregationRule needs all permissions"#);
    // The API server checks this on every write, even if the role does not change.
    insta::assert_snapshot!(run(vec![change(Operation::Update, "clusterroles", manifest)], &cluster), @r#"escalate Breaking ClusterRole r: potential privilege escalation, not permitted to "update" rbac.authorization.k8s.io/v1, Kind=ClusterRole: an aggregationRule needs all permissions"#);
}

#[test]
fn a_binding_takes_bind_or_what_its_role_grants() {
    let manage = ("shop", "create,patch,get rbac.authorization.k8s.io rolebindings,roles");
    let with = |grants: &[(&'static str, &str)], roles: Vec<Value>| {
        let grants: Vec<_> = [manage].iter().chain(grants).copied().collect();
        Cluster { roles, ..Cluster::granting(&grants) }
    };
    let view = || vec![cluster_role("view", secrets_reader())];
    let bind = || vec![binding("ClusterRole", "view")];
    assert_eq!(run(bind(), &with(&[("shop", "bind rbac.authorization.k8s.io clusterroles view")], vec![])), "Passed");
    assert_eq!(run(bind(), &with(&[("shop", "get,list core secrets")], view())), "Passed");
    insta::assert_snapshot!(run(bind(), &with(&[], view())), @r#"bind Breaking RoleBinding shop/b: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=RoleBinding: ClusterRole "view" grants "get" secrets, "list" secrets, and this user does not hold that"#);
    insta::assert_snapshot!(run(bind(), &with(&[("shop", "bind rbac.authorization.k8s.io clusterroles edit")], view())), @r#"bind Breaking RoleBinding shop/b: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=RoleBinding: ClusterRole "view" grants "get" secrets, "list" secrets, and this user does not hold that"#);
    insta::assert_snapshot!(run(bind(), &with(&[], vec![])), @r#"bind Breaking RoleBinding shop/b: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=RoleBinding: it needs "bind" on ClusterRole "view", which does not exist"#);
    // A role in the change set is judged by its new state.
    let set = vec![change(Operation::Create, "roles", role("r", secrets_reader())), binding("Role", "r")];
    insta::assert_snapshot!(run(set.clone(), &with(&[("shop", "escalate rbac.authorization.k8s.io roles")], vec![])), @r#"bind Breaking RoleBinding shop/b: potential privilege escalation, not permitted to "create" rbac.authorization.k8s.io/v1, Kind=RoleBinding: Role "r" grants "get" secrets, "list" secrets, and this user does not hold that"#);
    assert_eq!(run(set, &with(&[("shop", "get,list core secrets")], vec![])), "Passed");
}

#[test]
fn grants_that_the_server_has_accepted_in_a_dry_run_need_no_facts() {
    let verified = |change: Change| Change { verification: Verification::Server, ..change };
    let cluster = Cluster::granting(&[("shop", "create,patch rbac.authorization.k8s.io rolebindings,roles")]);
    assert_eq!(run(vec![verified(binding("ClusterRole", "view"))], &cluster), "Passed");
    let new = || verified(change(Operation::Create, "roles", role("r", secrets_reader())));
    assert_eq!(run(vec![new()], &cluster), "Passed");
    // The server knows the role only as it was.
    assert!(run(vec![new(), verified(binding("Role", "r"))], &cluster).starts_with("bind Breaking"));
}

#[test]
fn a_role_with_more_permissions_than_can_be_asked_is_unknown() {
    let many: Vec<String> = (0..300).map(|number| format!("r{number}")).collect();
    let rules = json!([{"apiGroups": ["ex.com"], "resources": many, "verbs": ["get"]}]);
    let cluster = Cluster::granting(&[
        ("shop", "create,patch rbac.authorization.k8s.io roles"),
        ("shop", &format!("get ex.com {}", many[..200].join(","))),
    ]);
    insta::assert_snapshot!(run(vec![change(Operation::Create, "roles", role("r", rules))], &cluster), @"escalate Unknown Role shop/r: unable to determine if this is a privilege escalation: the role grants more than 200 single permissions");
}

#[test]
fn a_cluster_that_does_not_answer_makes_the_rule_unable() {
    let changes = vec![configmap(Operation::Create, "shop", "a"), binding("ClusterRole", "view")];
    let (report, _) = run_counting(changes, &Cluster { down: true, ..Cluster::default() });
    assert_eq!((report.outcome, report.rules[0].outcome), (Outcome::Unable, RuleOutcome::Unable));
    assert!(report.findings.is_empty());
    assert!(report.rules[0].unable.contains(&"whether \"create\" configmaps is permitted: timeout".to_owned()));
}

#[test]
fn every_question_is_asked_in_three_rounds_at_most() {
    let changes = vec![
        configmap(Operation::Create, "shop", "a"),
        change(Operation::Create, "roles", role("r", secrets_reader())),
        change(Operation::Create, "clusterroles", cluster_role("c", secrets_reader())),
        binding("ClusterRole", "view"),
    ];
    let roles = vec![cluster_role("view", secrets_reader())];
    let (report, asked) = run_counting(changes, &Cluster { incomplete: true, roles, ..Cluster::default() });
    assert!(asked.len() <= 3, "{asked:?}");
    assert_eq!(report.outcome, Outcome::Refused);
    assert!(report.rules[0].unable.is_empty(), "{:?}", report.rules[0].unable);
}

#[test]
fn it_has_no_meaning_on_a_directory() {
    let selection = select(Some(&[NAME.to_owned()]), None).expect("the rule exists");
    let changes = ChangeSet {
        app: "test".into(),
        changes: vec![configmap(Operation::Create, "shop", "a")],
        ..ChangeSet::default()
    };
    let cluster = ClusterFacts { description: "dir:.".into(), side: ClusterSide::Directory, ..ClusterFacts::default() };
    let mut session = Session::of(selection, changes, cluster);
    assert!(session.needs().is_empty());
    let (report, _) = session.finish(Judgement::default(), &[], "2026-01-01");
    assert_eq!((report.outcome, report.rules[0].outcome), (Outcome::Passed, RuleOutcome::Skipped));
}

#[test]
fn hostile_roles_and_bindings_are_judged_without_a_panic() {
    let values = [json!(null), json!(7), json!([]), json!([null]), json!([{"verbs": [7], "nonResourceURLs": {}}])];
    for value in values {
        let mut binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                                 "metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}});
        binding["roleRef"] = value.clone();
        let changes = vec![
            change(Operation::Create, "roles", role("r", value.clone())),
            change(Operation::Update, "clusterroles", cluster_role("c", value)),
            change(Operation::Create, "clusterrolebindings", binding),
        ];
        run(changes, &Cluster::default());
    }
}
