//! Rebase rules: fields of the manifest that take the live object's value, or are removed.
//! The meaning is kapp's (`docs/config`, "rebaseRules"), except where noted.

use std::sync::Arc;

use pushback_crd::schema::cel::Computed;
use pushback_objects::source::{PathSegment, display_path, value_at};
use serde_json::{Map, Value};

use super::matcher::matches_any;
use super::path::{key_matches, regex_of, remove_at, resolve, set_at};
use super::{PathPart, RebaseAction, RebaseRule, RebaseSource};

/// A field that a rule has changed, or that already had the live value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebased {
    /// Path of the field.
    pub path: Vec<PathSegment>,
    /// Origin of its value.
    pub from: RebasedFrom,
}

/// Origin of a rebased field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebasedFrom {
    /// Copied from a source.
    Source(RebaseSource),
    /// Computed from all of them.
    Computed,
    /// Removed.
    Removed,
}

/// The variables of a rule that computes a value: the manifest, the live object, and the manifest as the rules before have
/// left it.
pub const VARIABLES: &[&str] = &["new", "existing", "current"];

/// Set only by the server. In an apply body these are refused (`managedFields`), act as a precondition (`uid`,
/// `resourceVersion`), or have no effect.
const SERVER_METADATA: [&str; 8] = [
    "uid",
    "resourceVersion",
    "managedFields",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// The object's identity; a rule that changed it would write another object.
const IDENTITY_METADATA: [&str; 3] = ["name", "namespace", "generateName"];

/// Applies all rules in order. `new` means the manifest as it was before the first of them. Objects that no rule
/// changes, which are most, are not copied.
///
/// # Errors
/// An expression cannot be evaluated, with the reason.
pub fn rebase_all(rules: &[RebaseRule], desired: &mut Arc<Value>, live: &Value) -> Result<Vec<Rebased>, String> {
    let manifest = Arc::clone(desired);
    let mut rebased = Vec::new();
    for rule in rules.iter().filter(|rule| !rule.paths.is_empty()) {
        if matches_any(&rule.matchers, desired) {
            rebased.extend(apply(rule, &manifest, desired, live)?);
        }
    }
    Ok(rebased)
}

/// Applies one rule. Copies from the first listed source that has a value (null does not count); missing maps are
/// created only if the path has no array index; a value that is absent everywhere changes nothing.
/// Array elements are paired by index. A regular expression matches the keys of all listed sources.
fn apply(rule: &RebaseRule, manifest: &Value, desired: &mut Arc<Value>, live: &Value) -> Result<Vec<Rebased>, String> {
    let mut rebased = Vec::new();
    for path in &rule.paths {
        match &rule.action {
            RebaseAction::Remove => {
                // In reverse: removing an element shifts those after it.
                let mut places = resolve(path, desired);
                places.reverse();
                for place in places.into_iter().filter(|place| is_free(place)) {
                    if remove_at(Arc::make_mut(desired), &place).is_some() {
                        rebased.push(Rebased { path: place, from: RebasedFrom::Removed });
                    }
                }
            }
            RebaseAction::Copy(sources) => {
                let sources: Vec<(RebaseSource, &Value)> = sources
                    .iter()
                    .map(|source| match source {
                        RebaseSource::New => (*source, manifest),
                        RebaseSource::Existing => (*source, live),
                    })
                    .collect();
                for place in places_to_copy(path, desired, &sources) {
                    rebased.extend(copy(place, desired, &sources));
                }
            }
            RebaseAction::Compute(expression) => {
                let sources = [(RebaseSource::New, manifest), (RebaseSource::Existing, live)];
                for place in places_to_copy(path, desired, &sources).into_iter().filter(|place| is_free(place)) {
                    let values = [("new", manifest), ("existing", live), ("current", &**desired)];
                    let value = match expression.compute(&values) {
                        Computed::Value(value) => value,
                        Computed::Nothing => continue,
                        Computed::Failed(why) => {
                            return Err(format!("the rebase rule of {} fails: {why}", display_path(&place)));
                        }
                    };
                    rebased.extend(put(place, value, desired, live));
                }
            }
        }
    }
    Ok(rebased)
}

/// Sets a computed value. One that is the live object's counts as copied from it.
fn put(place: Vec<PathSegment>, value: Value, desired: &mut Arc<Value>, live: &Value) -> Option<Rebased> {
    if value.is_null() {
        value_at(desired, &place)?;
        remove_at(Arc::make_mut(desired), &place)?;
        return Some(Rebased { path: place, from: RebasedFrom::Removed });
    }
    let from = if value_at(live, &place) == Some(&value) {
        RebasedFrom::Source(RebaseSource::Existing)
    } else {
        RebasedFrom::Computed
    };
    if from == RebasedFrom::Computed && value_at(desired, &place) == Some(&value) {
        return None;
    }
    set_at(Arc::make_mut(desired), &place, value).then_some(Rebased { path: place, from })
}

fn copy(place: Vec<PathSegment>, desired: &mut Arc<Value>, sources: &[(RebaseSource, &Value)]) -> Option<Rebased> {
    if !is_free(&place) && !is_metadata(&place) {
        return None;
    }
    let (source, value) = sources.iter().find_map(|(source, value)| {
        value_at(value, &place).filter(|value| !value.is_null()).map(|value| (*source, value))
    })?;
    let has_index = place.iter().any(|segment| matches!(segment, PathSegment::Index(_)));
    let parent_exists = place.split_last().is_some_and(|(_, way)| value_at(desired, way).is_some());
    if has_index && !parent_exists {
        return None;
    }
    let value = if is_metadata(&place) { free_metadata(value, value_at(desired, &place)) } else { value.clone() };
    if source == RebaseSource::New && value_at(desired, &place) == Some(&value) {
        return None;
    }
    set_at(Arc::make_mut(desired), &place, value).then_some(Rebased { path: place, from: RebasedFrom::Source(source) })
}

/// The paths that a copy rule applies to. Keys need not exist yet; array elements must be in the manifest.
fn places_to_copy(path: &[PathPart], desired: &Value, sources: &[(RebaseSource, &Value)]) -> Vec<Vec<PathSegment>> {
    let mut places: Vec<Vec<PathSegment>> = vec![Vec::new()];
    for part in path {
        let regex = if let PathPart::Regex(pattern) = part { regex_of(pattern) } else { None };
        let mut next = Vec::new();
        for place in places {
            let steps: Vec<PathSegment> = match part {
                PathPart::Key(key) => vec![PathSegment::Key(key.clone())],
                PathPart::Index(index) => {
                    let length = array_length(desired, &place);
                    (*index < length).then_some(PathSegment::Index(*index)).into_iter().collect()
                }
                PathPart::AllIndexes => (0..array_length(desired, &place)).map(PathSegment::Index).collect(),
                PathPart::Regex(_) => {
                    let mut keys: Vec<&String> = Vec::new();
                    for map in sources.iter().filter_map(|(_, value)| value_at(value, &place)?.as_object()) {
                        for key in map.keys().filter(|key| key_matches(regex.as_ref(), key)) {
                            if !keys.contains(&key) {
                                keys.push(key);
                            }
                        }
                    }
                    keys.into_iter().map(|key| PathSegment::Key(key.clone())).collect()
                }
            };
            next.extend(steps.into_iter().map(|step| {
                let mut place = place.clone();
                place.push(step);
                place
            }));
        }
        places = next;
    }
    places
}

fn array_length(value: &Value, place: &[PathSegment]) -> usize {
    value_at(value, place).and_then(Value::as_array).map_or(0, Vec::len)
}

fn is_metadata(place: &[PathSegment]) -> bool {
    matches!(place, [PathSegment::Key(key)] if key == "metadata")
}

/// Whether a rule may change a path: neither the identity nor fields that only the server sets.
fn is_free(place: &[PathSegment]) -> bool {
    match place {
        [] => false,
        [PathSegment::Key(key)] => !["apiVersion", "kind", "metadata"].contains(&key.as_str()),
        [PathSegment::Key(first), PathSegment::Key(second), ..] if first == "metadata" => {
            !SERVER_METADATA.contains(&second.as_str()) && !IDENTITY_METADATA.contains(&second.as_str())
        }
        _ => true,
    }
}

/// The whole metadata of a source, without the server's fields, and with the manifest's identity.
fn free_metadata(source: &Value, desired: Option<&Value>) -> Value {
    let fixed = |key: &str| SERVER_METADATA.contains(&key) || IDENTITY_METADATA.contains(&key);
    let mut metadata = Map::new();
    for key in IDENTITY_METADATA {
        if let Some(value) = desired.and_then(|desired| desired.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    for (key, value) in source.as_object().into_iter().flatten().filter(|(key, _)| !fixed(key)) {
        metadata.insert(key.clone(), value.clone());
    }
    Value::Object(metadata)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pushback_crd::schema::cel::admission::Expression;
    use serde_json::json;

    use super::*;
    use crate::config::Matcher;

    use RebaseSource::{Existing, New};

    fn path(parts: &[&str]) -> Vec<PathPart> {
        parts
            .iter()
            .map(|part| match *part {
                "*" => PathPart::AllIndexes,
                part => match (part.parse(), part.strip_prefix('~')) {
                    (Ok(index), _) => PathPart::Index(index),
                    (_, Some(pattern)) => PathPart::Regex(pattern.to_owned()),
                    _ => PathPart::Key(part.to_owned()),
                },
            })
            .collect()
    }

    fn rebase(rule: &RebaseRule, desired: &mut Value, live: &Value) -> Vec<Rebased> {
        let mut rebased = Arc::new(desired.clone());
        let fields = rebase_all(std::slice::from_ref(rule), &mut rebased, live).expect("it is computed");
        *desired = Arc::unwrap_or_clone(rebased);
        fields
    }

    fn rule(parts: &[&str], action: RebaseAction) -> RebaseRule {
        RebaseRule { paths: vec![path(parts)], action, matchers: vec![Matcher::All] }
    }

    fn copied(parts: &[&str], sources: &[RebaseSource], mut desired: Value, live: &Value) -> (Value, Vec<String>) {
        let rebased = rebase(&rule(parts, RebaseAction::Copy(sources.to_vec())), &mut desired, live);
        (desired, rebased.iter().map(|rebased| format!("{} {:?}", display_path(&rebased.path), rebased.from)).collect())
    }

    #[test]
    fn the_first_source_that_has_a_value_wins() {
        let live = json!({"spec": {"clusterIP": "10.0.0.1", "type": "NodePort"}});
        let desired = json!({"spec": {"type": "ClusterIP", "clusterIP": null}});
        let (value, rebased) = copied(&["spec", "clusterIP"], &[New, Existing], desired.clone(), &live);
        assert_eq!(value["spec"]["clusterIP"], "10.0.0.1");
        assert_eq!(rebased, ["spec.clusterIP Source(Existing)"]);
        let (value, rebased) = copied(&["spec", "type"], &[New, Existing], desired.clone(), &live);
        assert_eq!(value, desired);
        assert!(rebased.is_empty());
        let (value, _) = copied(&["spec", "type"], &[Existing, New], desired.clone(), &live);
        assert_eq!(value["spec"]["type"], "NodePort");
        let (value, rebased) = copied(&["spec", "absent", "field"], &[New, Existing], desired.clone(), &live);
        assert_eq!((value, rebased.len()), (desired, 0));
    }

    #[test]
    fn missing_maps_are_made_only_without_an_array_index() {
        let live = json!({"a": {"b": {"c": 1}}, "list": [{"x": {"y": 1}}, {"x": {"y": 2}}]});
        assert_eq!(copied(&["a", "b", "c"], &[Existing], json!({}), &live).0, json!({"a": {"b": {"c": 1}}}));
        let desired = json!({"list": [{}, {"x": {}}, {"x": {}}]});
        let (value, rebased) = copied(&["list", "*", "x", "y"], &[Existing], desired, &live);
        assert_eq!(value, json!({"list": [{}, {"x": {"y": 2}}, {"x": {}}]}));
        assert_eq!(rebased, ["list[1].x.y Source(Existing)"]);
        assert_eq!(copied(&["list", "*", "x", "y"], &[Existing], json!({}), &live).0, json!({}));
        assert_eq!(
            copied(&["list", "0"], &[Existing], json!({"list": [7]}), &live).0,
            json!({"list": [{"x": {"y": 1}}]})
        );
    }

    #[test]
    fn a_regular_expression_takes_the_keys_of_the_sources() {
        let live = json!({"metadata": {"annotations": {"x/a": "1", "x/b": "2", "y": "3"}}});
        let desired = json!({"metadata": {"annotations": {"x/a": "mine"}}});
        let (value, rebased) = copied(&["metadata", "annotations", "~^x/"], &[New, Existing], desired, &live);
        assert_eq!(value["metadata"]["annotations"], json!({"x/a": "mine", "x/b": "2"}));
        assert_eq!(rebased, ["metadata.annotations[\"x/b\"] Source(Existing)"]);
        let (value, _) = copied(&["metadata", "annotations", "~^x/"], &[Existing], json!({}), &live);
        assert_eq!(value["metadata"]["annotations"], json!({"x/a": "1", "x/b": "2"}));
    }

    #[test]
    fn what_the_server_writes_and_what_the_object_is_stay() {
        let live = json!({"apiVersion": "v2", "metadata": {
            "name": "other", "uid": "u", "resourceVersion": "1", "managedFields": [{}], "creationTimestamp": "t",
            "generation": 3, "labels": {"a": "1"}, "finalizers": ["f"],
        }});
        let desired = json!({"apiVersion": "v1", "metadata": {"name": "web", "labels": {"b": "2"}}});
        for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "name"] {
            let (value, rebased) = copied(&["metadata", field], &[Existing], desired.clone(), &live);
            assert_eq!((value, rebased.len()), (desired.clone(), 0), "{field}");
        }
        assert_eq!(
            copied(&["metadata", "~."], &[Existing], desired.clone(), &live).0["metadata"],
            json!({"name": "web", "labels": {"a": "1"}, "finalizers": ["f"]})
        );
        assert_eq!(copied(&["apiVersion"], &[Existing], desired.clone(), &live).0, desired);
        let (value, _) = copied(&["metadata"], &[Existing], desired.clone(), &live);
        assert_eq!(value["metadata"], json!({"name": "web", "labels": {"a": "1"}, "finalizers": ["f"]}));
        let mut value = desired.clone();
        assert!(rebase(&rule(&["metadata"], RebaseAction::Remove), &mut value, &live).is_empty());
        assert_eq!(value, desired);
    }

    #[test]
    fn removing_takes_every_place_and_all_elements() {
        let mut value = json!({"list": [{"x": 1}, {"y": 2}, {"x": 3}], "all": [1, 2, 3]});
        let rebased = rebase(&rule(&["list", "*", "x"], RebaseAction::Remove), &mut value, &Value::Null);
        assert_eq!(rebased.len(), 2);
        rebase(&rule(&["all", "*"], RebaseAction::Remove), &mut value, &Value::Null);
        assert_eq!(value, json!({"list": [{}, {"y": 2}, {}], "all": []}));
    }

    #[test]
    fn a_later_rule_still_copies_the_manifest_as_it_was_written() {
        let mut desired = Arc::new(json!({"metadata": {"labels": {"mine": "1"}}}));
        let live = json!({"metadata": {"labels": {"theirs": "2"}}});
        let rules = [
            rule(&["metadata", "labels"], RebaseAction::Copy(vec![Existing])),
            rule(&["metadata", "labels"], RebaseAction::Remove),
            rule(&["metadata", "labels"], RebaseAction::Copy(vec![New])),
        ];
        rebase_all(&rules, &mut desired, &live).expect("nothing is computed");
        assert_eq!(*desired, json!({"metadata": {"labels": {"mine": "1"}}}));
    }

    #[test]
    fn an_object_that_no_rule_changes_is_not_copied() {
        let object = Arc::new(json!({"spec": {"type": "ClusterIP"}}));
        let rules = [
            rule(&["spec", "type"], RebaseAction::Copy(vec![New, Existing])),
            rule(&["spec", "clusterIP"], RebaseAction::Copy(vec![Existing])),
            rule(&["spec", "absent"], RebaseAction::Remove),
        ];
        let mut desired = Arc::clone(&object);
        assert_eq!(rebase_all(&rules, &mut desired, &json!({"spec": {}})), Ok(Vec::new()));
        assert!(Arc::ptr_eq(&object, &desired));
    }

    #[test]
    fn a_rule_for_other_objects_changes_nothing() {
        let mut desired = json!({"kind": "Service"});
        let other = RebaseRule {
            matchers: vec![Matcher::Not(Box::new(Matcher::All))],
            ..rule(&["kind2"], RebaseAction::Copy(vec![Existing]))
        };
        assert!(rebase(&other, &mut desired, &json!({"kind2": 1})).is_empty());
        assert_eq!(desired, json!({"kind": "Service"}));
    }

    proptest! {
        #[test]
        fn rules_on_values_of_any_shape_never_panic(
            parts in prop::collection::vec(prop_oneof![Just("a"), Just("metadata"), Just("uid"), Just("*"), Just("0"), Just("~")], 0..4),
            shapes in prop::collection::vec(prop_oneof![
                Just(json!({"a": [{"a": 1}, null], "metadata": {"uid": 1}})), Just(json!([{"a": {}}])), Just(json!(null)),
                Just(json!({"a": {"a": {"a": "x"}}})), Just(json!("text")), Just(json!({"metadata": "text"})),
            ], 2),
            remove in any::<bool>(),
        ) {
            let action = if remove { RebaseAction::Remove } else { RebaseAction::Copy(vec![Existing, New]) };
            let mut desired = shapes[0].clone();
            for rebased in rebase(&rule(&parts, action), &mut desired, &shapes[1]) {
                if rebased.from == RebasedFrom::Source(Existing) && rebased.path.len() > 1 {
                    prop_assert_eq!(value_at(&desired, &rebased.path), value_at(&shapes[1], &rebased.path));
                }
            }
        }
    }

    #[test]
    fn a_computed_value_is_set_removed_or_left() {
        let compute = |cel: &str| {
            let variables = crate::config::cel::variables(VARIABLES);
            let action = RebaseAction::Compute(Expression::compile(cel, &variables, None).expect(cel));
            let live = json!({"metadata": {"annotations": {"a": "live"}}, "spec": {"size": 7, "ports": [1, 2]}});
            let mut desired = Arc::new(json!({"metadata": {"annotations": {"a": "new"}}, "spec": {"size": 3}}));
            let rule = rule(&["spec", "size"], action);
            let rebased = rebase_all(std::slice::from_ref(&rule), &mut desired, &live);
            rebased.map(|rebased| (desired["spec"]["size"].clone(), rebased.first().map(|rebased| rebased.from)))
        };
        let existing = RebasedFrom::Source(Existing);
        assert_eq!(compute("existing.spec.size"), Ok((json!(7), Some(existing))));
        assert_eq!(compute("existing.spec.size + new.spec.size"), Ok((json!(10), Some(RebasedFrom::Computed))));
        assert_eq!(
            compute("size(existing.spec.ports) + current.spec.size"),
            Ok((json!(5), Some(RebasedFrom::Computed)))
        );
        assert_eq!(
            compute("existing.metadata.annotations.a == 'live' ? null : dyn(1)"),
            Ok((Value::Null, Some(RebasedFrom::Removed)))
        );
        assert_eq!(compute("existing.spec.?other"), Ok((json!(3), None)));
        assert_eq!(compute("new.spec.size"), Ok((json!(3), None)));
        let failed = "the rebase rule of spec.size fails: no such key: other".to_owned();
        assert_eq!(compute("existing.spec.other"), Err(failed));
    }
}
