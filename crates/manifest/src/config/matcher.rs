//! Whether a rule applies to an object.
//! Every matcher has kapp's meaning (`docs/config`, "resourceMatchers").

use pushback_objects::object::{ObjectExt, is_custom_group, split_api_version};
use serde_json::Value;

use super::path::{key_matches, regex_of};
use super::{Matcher, PathPart};

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

/// What remains of a matcher once an object's API version and kind are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForKind {
    /// The kind decides: every object of it matches, or none.
    Always(bool),
    /// The remaining matcher, to be evaluated for each object.
    Evaluate(Matcher),
}

impl ForKind {
    /// Whether it matches an object of the kind.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        match self {
            Self::Always(matches) => *matches,
            Self::Evaluate(matcher) => matcher.matches(object),
        }
    }

    /// What remains of a list of which any matcher may match.
    #[must_use]
    pub fn of_any(matchers: &[Matcher], api_version: &str, kind: &str) -> Self {
        Self::join(matchers, api_version, kind, true, Matcher::Any)
    }

    fn of(matcher: &Matcher, api_version: &str, kind: &str) -> Self {
        let group = || split_api_version(api_version).0;
        match matcher {
            Matcher::All => Self::Always(true),
            Matcher::Any(matchers) => Self::of_any(matchers, api_version, kind),
            Matcher::And(matchers) => Self::join(matchers, api_version, kind, false, Matcher::And),
            Matcher::Not(matcher) => match Self::of(matcher, api_version, kind) {
                Self::Always(matches) => Self::Always(!matches),
                Self::Evaluate(rest) => Self::Evaluate(Matcher::Not(Box::new(rest))),
            },
            Matcher::ApiGroupKind { api_group, kind: wanted } => Self::Always(group() == api_group && kind == wanted),
            Matcher::ApiVersionKind { api_version: version, kind: wanted } => {
                Self::Always(api_version == version && kind == wanted)
            }
            Matcher::CustomResource => Self::Always(is_custom_group(group())),
            Matcher::KindNamespaceName { kind: wanted, .. } if kind != wanted => Self::Always(false),
            Matcher::KindNamespaceName { .. }
            | Matcher::HasAnnotation { .. }
            | Matcher::HasNamespace { .. }
            | Matcher::EmptyField { .. } => Self::Evaluate(matcher.clone()),
        }
    }

    /// Joins matchers of which a single one settles the result if it evaluates to `decides`.
    fn join(
        matchers: &[Matcher],
        api_version: &str,
        kind: &str,
        decides: bool,
        joined: fn(Vec<Matcher>) -> Matcher,
    ) -> Self {
        let mut rest = Vec::new();
        for matcher in matchers {
            match Self::of(matcher, api_version, kind) {
                Self::Always(matches) if matches == decides => return Self::Always(decides),
                Self::Always(_) => {}
                Self::Evaluate(matcher) => rest.push(matcher),
            }
        }
        if rest.is_empty() { Self::Always(!decides) } else { Self::Evaluate(joined(rest)) }
    }
}

/// Whether any of the matchers matches; an empty list matches nothing.
#[must_use]
pub fn matches_any(matchers: &[Matcher], object: &Value) -> bool {
    matchers.iter().any(|matcher| matcher.matches(object))
}

fn group(object: &Value) -> &str {
    split_api_version(object.text("/apiVersion")).0
}

/// Absent, null, `{}` and `[]` are empty; after `allIndexes` and a regular expression, all values must be empty.
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
    use proptest::prelude::*;
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

    fn matchers() -> impl Strategy<Value = Matcher> {
        let leaf = prop_oneof![
            Just(Matcher::All),
            Just(Matcher::CustomResource),
            Just(group_kind("apps", "Deployment")),
            Just(group_kind("ex.com", "Foo")),
            Just(Matcher::ApiVersionKind { api_version: text("apps/v1"), kind: text("Deployment") }),
            Just(Matcher::KindNamespaceName { kind: text("Deployment"), namespace: text("shop"), name: text("web") }),
            Just(Matcher::HasAnnotation { keys: vec![text("a")] }),
            Just(Matcher::HasNamespace { names: Vec::new() }),
            Just(Matcher::EmptyField { path: vec![PathPart::Key(text("spec"))] }),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Matcher::Any),
                prop::collection::vec(inner.clone(), 0..4).prop_map(Matcher::And),
                inner.prop_map(|matcher| Matcher::Not(Box::new(matcher))),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_left_for_a_kind_matches_the_same_objects(matchers in prop::collection::vec(matchers(), 0..4)) {
            let others = [
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}),
                json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "a", "namespace": "shop"}, "spec": {}}),
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": {"a": "1"}}}),
            ];
            for object in others.into_iter().chain([deployment()]) {
                let left = ForKind::of_any(&matchers, object.text("/apiVersion"), object.text("/kind"));
                prop_assert_eq!(left.matches(&object), matches_any(&matchers, &object));
            }
        }
    }
}
