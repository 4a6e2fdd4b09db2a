//! Whether a rule is for an object.
//! The meaning of every matcher is kapp's (`docs/config`, "resourceMatchers").

use pushback_preflight::object::{ObjectExt, split_api_version};
use serde_json::Value;

use super::path::{key_matches, regex_of};
use super::{Matcher, PathPart};

/// The groups that Kubernetes itself serves or has served. Groups without a dot are its own too: a
/// CustomResourceDefinition's group must have one. Any other group is custom, `*.k8s.io` ones such as
/// `gateway.networking.k8s.io`, `snapshot.storage.k8s.io` and `metrics.k8s.io` included.
const BUILT_IN_GROUPS: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "auditregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "lifecycle.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "settings.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

impl Matcher {
    /// Whether it matches an object.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        match self {
            Self::All => true,
            Self::Any(matchers) => matches_any(matchers, object),
            Self::And(matchers) => matchers.iter().all(|matcher| matcher.matches(object)),
            Self::Not(matcher) => !matcher.matches(object),
            Self::ApiGroupKind { api_group, kind } => group(object) == api_group && object.text("/kind") == kind,
            Self::ApiVersionKind { api_version, kind } => {
                object.text("/apiVersion") == api_version && object.text("/kind") == kind
            }
            Self::KindNamespaceName { kind, namespace, name } => {
                object.text("/kind") == kind && object.namespace() == namespace && object.name() == name
            }
            Self::HasAnnotation { keys } => keys.iter().all(|key| object.annotation(key).is_some()),
            Self::HasNamespace { names } => {
                let namespace = object.namespace();
                !namespace.is_empty() && (names.is_empty() || names.iter().any(|name| name == namespace))
            }
            Self::CustomResource => is_custom_group(group(object)),
            Self::EmptyField { path } => is_empty_at(Some(object), path),
        }
    }
}

/// Whether any of them matches; no matcher matches nothing.
#[must_use]
pub fn matches_any(matchers: &[Matcher], object: &Value) -> bool {
    matchers.iter().any(|matcher| matcher.matches(object))
}

/// Whether objects of a group are custom resources (or served by an aggregated API).
#[must_use]
pub fn is_custom_group(group: &str) -> bool {
    group.contains('.') && !BUILT_IN_GROUPS.contains(&group)
}

fn group(object: &Value) -> &str {
    split_api_version(object.text("/apiVersion")).0
}

/// Absent, null, `{}` and `[]` are empty; behind `allIndexes` and a regular expression all values must be.
fn is_empty_at(value: Option<&Value>, path: &[PathPart]) -> bool {
    let value = match value {
        None | Some(Value::Null) => return true,
        Some(value) => value,
    };
    let Some((part, rest)) = path.split_first() else {
        return match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
    };
    match (part, value) {
        (PathPart::Key(key), Value::Object(map)) => is_empty_at(map.get(key), rest),
        (PathPart::Index(index), Value::Array(items)) => is_empty_at(items.get(*index), rest),
        (PathPart::AllIndexes, Value::Array(items)) => items.iter().all(|item| is_empty_at(Some(item), rest)),
        (PathPart::Regex(pattern), Value::Object(map)) => {
            let regex = regex_of(pattern);
            map.iter().all(|(key, value)| !key_matches(regex.as_ref(), key) || is_empty_at(Some(value), rest))
        }
        // A value of another shape than the path expects is not an empty field.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "annotations": {"a": "1", "b": "", "n": 3}},
            "spec": {"empty": {}, "none": null, "list": [{"x": []}, {"y": 1}], "replicas": 0, "full": {"k": "v"}},
        })
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn group_kind(api_group: &str, kind: &str) -> Matcher {
        Matcher::ApiGroupKind { api_group: text(api_group), kind: text(kind) }
    }

    #[test]
    fn groups_versions_and_kinds_must_both_match() {
        assert!(group_kind("apps", "Deployment").matches(&deployment()));
        assert!(!group_kind("apps", "StatefulSet").matches(&deployment()));
        assert!(!group_kind("", "Deployment").matches(&deployment()));
        assert!(group_kind("", "Pod").matches(&json!({"apiVersion": "v1", "kind": "Pod"})));
        let version =
            |api_version: &str| Matcher::ApiVersionKind { api_version: text(api_version), kind: text("Deployment") };
        assert!(version("apps/v1").matches(&deployment()));
        assert!(!version("apps/v1beta1").matches(&deployment()));
    }

    #[test]
    fn kind_namespace_and_name_must_all_match() {
        let matcher = |kind: &str, namespace: &str, name: &str| Matcher::KindNamespaceName {
            kind: text(kind),
            namespace: text(namespace),
            name: text(name),
        };
        assert!(matcher("Deployment", "shop", "web").matches(&deployment()));
        assert!(!matcher("Service", "shop", "web").matches(&deployment()));
        assert!(!matcher("Deployment", "", "web").matches(&deployment()));
        assert!(!matcher("Deployment", "shop", "api").matches(&deployment()));
        assert!(matcher("Namespace", "", "shop").matches(&json!({"kind": "Namespace", "metadata": {"name": "shop"}})));
    }

    #[test]
    fn all_annotation_keys_must_be_there() {
        let matcher = |keys: &[&str]| Matcher::HasAnnotation { keys: keys.iter().map(|key| text(key)).collect() };
        assert!(matcher(&["a", "b"]).matches(&deployment()));
        assert!(!matcher(&["a", "c"]).matches(&deployment()));
        assert!(!matcher(&["a"]).matches(&json!({"metadata": {}})));
    }

    #[test]
    fn a_namespace_is_any_or_one_of_the_names() {
        let matcher = |names: &[&str]| Matcher::HasNamespace { names: names.iter().map(|name| text(name)).collect() };
        assert!(matcher(&[]).matches(&deployment()));
        assert!(matcher(&["other", "shop"]).matches(&deployment()));
        assert!(!matcher(&["other"]).matches(&deployment()));
        assert!(!matcher(&[]).matches(&json!({"kind": "Namespace"})));
    }

    #[test]
    fn any_and_and_not_combine() {
        let (yes, no) = (Matcher::All, Matcher::Not(Box::new(Matcher::All)));
        let object = deployment();
        assert!(Matcher::Any(vec![no.clone(), yes.clone()]).matches(&object));
        assert!(!Matcher::Any(vec![no.clone(), no.clone()]).matches(&object));
        assert!(!Matcher::And(vec![yes.clone(), no]).matches(&object));
        assert!(Matcher::And(vec![yes.clone(), yes]).matches(&object));
        assert!(!matches_any(&[], &object));
    }

    #[test]
    fn only_kubernetes_own_groups_are_not_custom() {
        let custom = |api_version: &str| Matcher::CustomResource.matches(&json!({"apiVersion": api_version}));
        for own in [
            "v1",
            "apps/v1",
            "batch/v1",
            "policy/v1",
            "extensions/v1beta1",
            "storage.k8s.io/v1",
            "apiextensions.k8s.io/v1",
        ] {
            assert!(!custom(own), "{own}");
        }
        for other in
            ["ex.com/v1", "gateway.networking.k8s.io/v1", "snapshot.storage.k8s.io/v1", "metrics.k8s.io/v1beta1"]
        {
            assert!(custom(other), "{other}");
        }
        assert!(!Matcher::CustomResource.matches(&json!("not an object")));
    }

    #[test]
    fn an_empty_field_is_absent_null_or_an_empty_container() {
        let empty = |path: Vec<PathPart>| Matcher::EmptyField { path }.matches(&deployment());
        let key = |name: &str| PathPart::Key(text(name));
        for name in ["empty", "none", "absent"] {
            assert!(empty(vec![key("spec"), key(name)]), "{name}");
        }
        assert!(empty(vec![key("spec"), key("none"), key("deeper")]));
        for name in ["full", "list", "replicas"] {
            assert!(!empty(vec![key("spec"), key(name)]), "{name}");
        }
        assert!(!empty(vec![key("kind"), key("below-a-text")]));
        let list = |part: PathPart, name: &str| vec![key("spec"), key("list"), part, key(name)];
        assert!(empty(list(PathPart::AllIndexes, "x")));
        assert!(!empty(list(PathPart::AllIndexes, "y")));
        assert!(empty(list(PathPart::Index(0), "x")));
        assert!(!empty(list(PathPart::Index(1), "y")));
        assert!(empty(list(PathPart::Index(9), "y")));
    }
}
