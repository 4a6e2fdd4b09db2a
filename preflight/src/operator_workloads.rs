//! Which workloads are the operator of a definition: those that say so, else those whose account may write its objects.

use pushback_crd::words;
use pushback_objects::object::{ObjectExt, ObjectRef};
use serde_json::Value;

/// Names the definitions that a workload is the operator of, separated by commas.
pub const OPERATOR_OF: &str = "pushback.dev/operator-of";

const RBAC: &str = "rbac.authorization.k8s.io";
const WRITES: [&str; 4] = ["create", "update", "patch", "*"];

words! {
    /// How a workload gets from one release to the next.
    pub enum Rollout {
        /// Pods of the old release run beside pods of the new one.
        Rolling = "RollingUpdate",
        /// The old pods are gone before the new ones start.
        Recreate = "Recreate",
        /// A StatefulSet replaces its pods one by one, each after its predecessor is gone.
        OneByOne = "StatefulSet",
    }
}

/// How a workload is known to be an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// The annotation [`OPERATOR_OF`].
    Annotation,
    /// Its account may write objects of the definition, by this role.
    Role(ObjectRef),
}

/// A workload that is an operator of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorWorkload {
    /// The workload.
    pub object: ObjectRef,
    /// How it gets to another release.
    pub rollout: Rollout,
    /// How it is known.
    pub known_by: KnownBy,
}

/// A definition, as roles and annotations name it.
#[derive(Clone, Copy, Debug)]
pub struct DefinedResource<'a> {
    /// Group of the objects.
    pub group: &'a str,
    /// Plural name of the objects.
    pub plural: &'a str,
}

/// The operators of a definition among these objects, in their order. Where a workload names the definition, only such
/// workloads are operators. A role for every group, such as that of an administrator or a deploy tool, does not make
/// one, nor does a role that is not among the objects.
#[must_use]
pub fn operator_workloads<'a>(
    objects: impl IntoIterator<Item = &'a Value>,
    definition: DefinedResource<'_>,
) -> Vec<OperatorWorkload> {
    let objects: Vec<&Value> = objects.into_iter().collect();
    let workloads = || objects.iter().copied().filter_map(|object| Some((object, rollout(object)?)));
    let found =
        |object: &Value, rollout, known_by| OperatorWorkload { object: ObjectRef::of(object), rollout, known_by };
    let declared: Vec<OperatorWorkload> = workloads()
        .filter(|(object, _)| names(object, definition))
        .map(|(object, rollout)| found(object, rollout, KnownBy::Annotation))
        .collect();
    if !declared.is_empty() {
        return declared;
    }
    let grants: Vec<Grant<'_>> = objects.iter().filter_map(|role| Grant::of(role, &objects, definition)).collect();
    workloads()
        // One that names others is the operator of these alone.
        .filter(|(object, _)| object.annotation(OPERATOR_OF).is_none())
        .filter_map(|(object, rollout)| {
            let grant = grants.iter().find(|grant| grant.is_for(object))?;
            Some(found(object, rollout, KnownBy::Role(ObjectRef::of(grant.role))))
        })
        .collect()
}

/// `None` if it is no workload that an operator runs as.
fn rollout(object: &Value) -> Option<Rollout> {
    let ObjectRef { group, kind, .. } = ObjectRef::of(object);
    match (group.as_str(), kind.as_str()) {
        ("apps", "Deployment") if object.text("/spec/strategy/type") == "Recreate" => Some(Rollout::Recreate),
        ("apps", "Deployment" | "DaemonSet") => Some(Rollout::Rolling),
        ("apps", "StatefulSet") => Some(Rollout::OneByOne),
        _ => None,
    }
}

fn names(workload: &Value, definition: DefinedResource<'_>) -> bool {
    let name = format!("{}.{}", definition.plural, definition.group);
    workload.annotation(OPERATOR_OF).is_some_and(|names| names.split(',').any(|given| given.trim() == name))
}

/// A binding of a role that may write objects of the definition.
struct Grant<'a> {
    role: &'a Value,
    binding: &'a Value,
}

impl<'a> Grant<'a> {
    fn of(binding: &'a Value, objects: &[&'a Value], definition: DefinedResource<'_>) -> Option<Self> {
        let ObjectRef { group, kind, .. } = ObjectRef::of(binding);
        if group != RBAC || !["RoleBinding", "ClusterRoleBinding"].contains(&kind.as_str()) {
            return None;
        }
        let (kind, name) = (binding.text("/roleRef/kind"), binding.text("/roleRef/name"));
        let is_meant = |role: &&&Value| {
            ObjectRef::of(role).group == RBAC
                && role.text("/kind") == kind
                && role.name() == name
                && (kind == "ClusterRole" || is_same_namespace(role.namespace(), binding.namespace()))
        };
        let role = *objects.iter().find(is_meant)?;
        let selected = list(role.pointer("/aggregationRule/clusterRoleSelectors"));
        let is_selected = |other: &&Value, selector: &Value| {
            let labels = selector.get("matchLabels").and_then(Value::as_object);
            other.text("/kind") == "ClusterRole"
                && labels.is_some_and(|labels| labels.iter().all(|(key, value)| other.label(key) == value.as_str()))
        };
        let aggregated = selected.flat_map(|selector| {
            objects.iter().copied().filter(move |other| is_selected(other, selector)).collect::<Vec<_>>()
        });
        let mut rules = std::iter::once(role).chain(aggregated).flat_map(|role| list(role.get("rules")));
        rules.any(|rule| may_write(rule, definition)).then_some(Self { role, binding })
    }

    /// Whether it is given to the account of a workload.
    fn is_for(&self, workload: &Value) -> bool {
        let pods = workload.pointer("/spec/template/spec").unwrap_or(&Value::Null);
        let given = [pods.text("/serviceAccountName"), pods.text("/serviceAccount")];
        let account = given.into_iter().find(|name| !name.is_empty()).unwrap_or("default");
        list(self.binding.get("subjects")).any(|subject| {
            subject.text("/kind") == "ServiceAccount"
                && subject.text("/name") == account
                && is_same_namespace(subject.text("/namespace"), workload.namespace())
        })
    }
}

/// A manifest may leave the namespace to the deploy.
fn is_same_namespace(one: &str, other: &str) -> bool {
    one == other || one.is_empty() || other.is_empty()
}

fn may_write(rule: &Value, definition: DefinedResource<'_>) -> bool {
    let has = |key: &str, is_meant: &dyn Fn(&str) -> bool| list(rule.get(key)).filter_map(Value::as_str).any(is_meant);
    // A write of a subresource, such as the status, goes through the whole object.
    let is_resource =
        |name: &str| name == "*" || name.split_once('/').map_or(name, |(resource, _)| resource) == definition.plural;
    has("apiGroups", &|group| group == definition.group)
        && has("resources", &is_resource)
        && has("verbs", &|verb| WRITES.contains(&verb))
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COGS: DefinedResource<'_> = DefinedResource { group: "ex.com", plural: "cogs" };

    fn workload(kind: &str, name: &str, account: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "ops"},
            "spec": {"template": {"spec": {"serviceAccountName": account}}},
        })
    }

    fn role(name: &str, groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": groups, "resources": resources, "verbs": verbs}],
        })
    }

    fn binding(role: &str, account: &str) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "ops"}],
        })
    }

    fn names(objects: &[Value]) -> Vec<String> {
        let line = |it: OperatorWorkload| format!("{} {}", it.object.name, it.rollout.as_str());
        operator_workloads(objects, COGS).into_iter().map(line).collect()
    }

    #[test]
    fn an_account_that_may_write_the_objects_makes_an_operator() {
        for (groups, resources, verbs, is_operator) in [
            (["ex.com"], ["cogs"], ["update"], true),
            (["ex.com"], ["*"], ["*"], true),
            (["ex.com"], ["cogs/status"], ["patch"], true),
            (["ex.com"], ["cogs"], ["get"], false),
            (["ex.com"], ["wheels"], ["update"], false),
            (["other.com"], ["cogs"], ["update"], false),
            (["*"], ["*"], ["*"], false),
        ] {
            let objects = [
                workload("Deployment", "operator", "operator"),
                workload("Deployment", "web", "web"),
                role("writer", &groups, &resources, &verbs),
                binding("writer", "operator"),
            ];
            let expected: &[&str] = if is_operator { &["operator RollingUpdate"] } else { &[] };
            assert_eq!(names(&objects), expected, "{groups:?} {resources:?} {verbs:?}");
        }
    }

    #[test]
    fn the_rollout_tells_whether_two_releases_run_side_by_side() {
        let mut recreated = workload("Deployment", "a", "operator");
        recreated["spec"]["strategy"] = json!({"type": "Recreate"});
        let objects = [
            recreated,
            workload("StatefulSet", "b", "operator"),
            workload("DaemonSet", "c", "operator"),
            workload("Job", "d", "operator"),
            role("writer", &["ex.com"], &["cogs"], &["create"]),
            binding("writer", "operator"),
        ];
        assert_eq!(names(&objects), ["a Recreate", "b StatefulSet", "c RollingUpdate"]);
    }

    #[test]
    fn what_a_workload_says_goes_before_what_its_account_may_do() {
        let mut named = workload("StatefulSet", "named", "other");
        named["metadata"]["annotations"] = json!({(OPERATOR_OF): "wheels.ex.com, cogs.ex.com"});
        let mut objects = vec![
            workload("Deployment", "operator", "operator"),
            named,
            role("writer", &["ex.com"], &["cogs"], &["update"]),
            binding("writer", "operator"),
        ];
        assert_eq!(names(&objects), ["named StatefulSet"]);
        objects[1]["metadata"]["annotations"] = json!({(OPERATOR_OF): "wheels.ex.com"});
        assert_eq!(names(&objects), ["operator RollingUpdate"]);
        objects[0]["metadata"]["annotations"] = json!({(OPERATOR_OF): ""});
        assert_eq!(names(&objects), [""; 0], "a workload can say that it is no operator");
    }

    #[test]
    fn roles_and_accounts_of_other_namespaces_are_others() {
        let mut far = workload("Deployment", "far", "operator");
        far["metadata"]["namespace"] = json!("elsewhere");
        let mut unplaced = workload("Deployment", "unplaced", "operator");
        unplaced["metadata"]["namespace"] = Value::Null;
        let objects =
            [far, unplaced, role("writer", &["ex.com"], &["cogs"], &["update"]), binding("writer", "operator")];
        assert_eq!(names(&objects), ["unplaced RollingUpdate"]);
    }

    #[test]
    fn aggregated_roles_grant_what_their_parts_grant() {
        let mut whole = role("whole", &[], &[], &[]);
        whole["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]});
        let mut part = role("part", &["ex.com"], &["cogs"], &["update"]);
        part["metadata"]["labels"] = json!({"part": "yes"});
        let objects = [workload("Deployment", "operator", "operator"), whole, part, binding("whole", "operator")];
        let found = operator_workloads(&objects, COGS);
        assert!(matches!(&found[0].known_by, KnownBy::Role(role) if role.name == "whole"), "{found:?}");
    }
}
