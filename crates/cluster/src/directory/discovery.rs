//! The kinds of a folder: those built into Kubernetes, and those of the CRDs in it.
//! Versions of a custom kind are ordered as in an API server.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pushback_objects::object::{ObjectExt, split_api_version};
use serde_json::Value;

use super::kinds_table::{all_verbs, built_in};
use crate::{Kind, Kinds};

/// Group of CustomResourceDefinitions.
const CRD_GROUP: &str = "apiextensions.k8s.io";
/// Kind of CustomResourceDefinitions.
const CRD_KIND: &str = "CustomResourceDefinition";

/// Whether an object defines a kind.
pub(super) fn is_crd(group: &str, kind: &str) -> bool {
    group == CRD_GROUP && kind == CRD_KIND
}

/// All kinds, given the CRDs. A CRD that claims a built-in kind is ignored.
pub(super) fn kinds_with<'a>(definitions: impl Iterator<Item = &'a Value>) -> Kinds {
    let mut kinds = built_in();
    let own: Vec<(String, String)> = kinds.iter().map(|kind| (kind.group.clone(), kind.kind.clone())).collect();
    for kind in definitions.flat_map(kinds_of_definition) {
        if !own.contains(&(kind.group.clone(), kind.kind.clone())) {
            kinds.add(kind);
        }
    }
    kinds
}

/// All kinds of a folder with these objects. A kind of which it has objects but no CRD is guessed from them: without its
/// kind, an object could be neither compared nor missed.
pub(super) fn kinds_of<'a>(objects: impl Iterator<Item = &'a Value>) -> Kinds {
    let objects: Vec<&Value> = objects.collect();
    let group_of = |object: &'a Value| split_api_version(object.text("/apiVersion"));
    let mut kinds =
        kinds_with(objects.iter().copied().filter(|object| is_crd(group_of(object).0, object.text("/kind"))));
    let mut guessed: BTreeMap<(&str, &str, &str), bool> = BTreeMap::new();
    for object in objects {
        let ((group, version), kind) = (group_of(object), object.text("/kind"));
        if kinds.versions(group, kind).is_empty() && !is_input_of_tools(group) {
            *guessed.entry((group, kind, version)).or_default() |= !object.namespace().is_empty();
        }
    }
    for ((group, kind, version), namespaced) in guessed {
        kinds.add(Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            singular: kind.to_lowercase(),
            namespaced,
            ..Kind::default()
        });
    }
    kinds
}

/// Whether documents of a group are read by deploy tools, not by a cluster: Config, conversion plans, experiments.
fn is_input_of_tools(group: &str) -> bool {
    matches!(group, "kapp.k14s.io" | "kustomize.config.k8s.io")
        || group == "pushback.dev"
        || group.ends_with(".pushback.dev")
}

/// The group and kind that a CRD defines.
pub(super) fn defined_kind(definition: &Value) -> (&str, &str) {
    (definition.text("/spec/group"), definition.text("/spec/names/kind"))
}

/// Every served version of a CRD, the preferred one first. A CRD without the required fields has none.
fn kinds_of_definition(definition: &Value) -> Vec<Kind> {
    let (group, kind) = defined_kind(definition);
    let plural = definition.text("/spec/names/plural");
    if group.is_empty() || kind.is_empty() || plural.is_empty() {
        return Vec::new();
    }
    let singular = match definition.text("/spec/names/singular") {
        "" => kind.to_lowercase(),
        singular => singular.to_owned(),
    };
    let texts = |pointer: &str| -> Vec<String> {
        let list = definition.pointer(pointer).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut kinds: Vec<Kind> = versions(definition)
        .into_iter()
        .map(|(version, subresources)| Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: singular.clone(),
            short_names: texts("/spec/names/shortNames"),
            namespaced: definition.text("/spec/scope") != "Cluster",
            verbs: all_verbs(),
            subresources,
        })
        .collect();
    kinds.sort_by_key(|kind| Reverse(version_priority(&kind.version)));
    kinds
}

/// Served versions with their subresources; `v1beta1` CRDs name one version outside the list.
fn versions(definition: &Value) -> Vec<(&str, Vec<String>)> {
    let names = |value: Option<&Value>| -> Vec<String> {
        let map = value.and_then(Value::as_object);
        map.into_iter().flat_map(|map| map.keys().cloned()).collect()
    };
    let common = definition.pointer("/spec/subresources");
    let listed = definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut versions: Vec<(&str, Vec<String>)> = listed
        .iter()
        .filter(|version| version.get("served").and_then(Value::as_bool).unwrap_or(true))
        .map(|version| (version.text("/name"), names(version.get("subresources").or(common))))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let single = definition.text("/spec/version");
    if listed.is_empty() && !single.is_empty() {
        versions.push((single, names(common)));
    }
    versions
}

/// Kubernetes' order of versions (`k8s.io/apimachinery/pkg/version`): `v2 > v1 > v1beta2 > v1beta1 > v1alpha1`, then
/// all other names alphabetically.
fn version_priority(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let other = || (0, 0, 0, Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (major, suffix) = rest.split_at(digits);
    let Ok(major) = major.parse() else { return other() };
    let minor = |text: &str| if text.is_empty() { Some(0) } else { text.parse().ok() };
    let ranked = match suffix {
        "" => Some((3, major, 0)),
        _ => suffix
            .strip_prefix("beta")
            .and_then(minor)
            .map(|minor| (2, major, minor))
            .or_else(|| suffix.strip_prefix("alpha").and_then(minor).map(|minor| (1, major, minor))),
    };
    ranked.map_or_else(other, |(stage, major, minor)| (stage, major, minor, Reverse(String::new())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(scope: &str, versions: &[(&str, bool)]) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(name, served)| json!({"name": name, "served": served, "subresources": {"status": {}}}))
            .collect();
        json!({"spec": {"group": "ex.com", "scope": scope, "versions": versions,
            "names": {"kind": "Foo", "plural": "foos", "shortNames": ["fo"]}}})
    }

    #[test]
    fn a_definition_adds_its_served_versions_the_preferred_one_first() {
        let definition = definition(
            "Cluster",
            &[("v1alpha1", true), ("v1beta2", true), ("v1beta10", true), ("v1", false), ("x", true)],
        );
        let kinds = kinds_with([&definition].into_iter());
        let versions: Vec<&str> = kinds.versions("ex.com", "Foo").iter().map(|kind| kind.version.as_str()).collect();
        assert_eq!(versions, ["v1beta10", "v1beta2", "v1alpha1", "x"]);
        let preferred = kinds.preferred("ex.com", "Foo").unwrap();
        assert!(!preferred.namespaced);
        assert_eq!((preferred.singular.as_str(), &preferred.subresources[..]), ("foo", &["status".to_owned()][..]));
    }

    #[test]
    fn a_definition_cannot_take_over_a_kind_of_kubernetes() {
        let mut hostile = definition("Cluster", &[("v1", true)]);
        hostile["spec"]["group"] = json!("apps");
        hostile["spec"]["names"]["kind"] = json!("Deployment");
        let kinds = kinds_with([&hostile].into_iter());
        assert!(kinds.preferred("apps", "Deployment").unwrap().namespaced);
    }

    #[test]
    fn a_broken_definition_adds_nothing() {
        let count = built_in().iter().count();
        for broken in [json!({}), json!({"spec": {"versions": 3, "group": "ex.com"}}), json!(null)] {
            assert_eq!(kinds_with([&broken].into_iter()).iter().count(), count);
        }
    }
}
