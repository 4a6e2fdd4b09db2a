//! The fields that an apply takes over: those that other managers own in the live object, but not in the result.
//! Fields of equal value are shared and cause no conflict.

use pushback_cluster::FIELD_MANAGER;
use pushback_cluster::managed_fields::{self as fields, Element, ManagerEntry, Owner, STATUS};
use pushback_manifest::config::mask::{Cover, MaskNumbers, Masker};
use pushback_objects::PathSegment;
use pushback_objects::source::display_path;
use pushback_preflight::{TakenField, TakenFrom};
use serde_json::Value;

use super::diff::{FieldChange, Masked};
use super::takeover;

/// Returns what other managers of the live object lose by an update: by the server's answer, or without one by the fields
/// that differ. `masker` hides keys in paths, `policy_masker` values, which are judged.
#[must_use]
pub fn taken_from(
    live: &Value,
    result: Option<&Value>,
    differing: &[FieldChange],
    masker: &Masker,
    policy_masker: &Masker,
) -> Vec<TakenFrom> {
    let Ok(managers) = fields::managers(live) else { return Vec::new() };
    let after = result.and_then(|result| fields::managers(result).ok());
    let sides = || std::iter::once(live).chain(result);
    let (cover, policy_cover) = (masker.cover(sides()), policy_masker.cover(sides()));
    let seen = UpdateStates { live, result, policy_masker, cover, policy_cover };
    // A tool that applied the object first is a predecessor once; if it writes again later, it takes fields from us.
    let is_new = !managers.iter().any(|entry| is_ours(&entry.owner) && entry.owner.operation == "Apply");
    managers
        .iter()
        .filter(|entry| !is_ours(&entry.owner))
        .filter_map(|entry| {
            let predecessor = is_new && takeover::is_predecessor(&entry.owner);
            let fields = match &after {
                Some(after) => seen.lost(entry, after),
                None => seen.overwritten(entry, differing),
            };
            let Owner { manager, operation, subresource, time, .. } = entry.owner.clone();
            let taken = TakenFrom { manager, operation, subresource, time, predecessor, fields };
            (predecessor || !taken.fields.is_empty()).then_some(taken)
        })
        .collect()
}

/// Notes on which fields are taken over from whom. Predecessors have a separate note.
pub(super) fn notes(taken_from: &[TakenFrom]) -> Vec<String> {
    let others = taken_from.iter().filter(|taken| !taken.predecessor);
    others
        .filter_map(|taken| {
            let (first, rest) = taken.fields.split_first()?;
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            Some(format!("takes over {}{more} from {}", first.path, taken.manager))
        })
        .collect()
}

fn is_ours(owner: &Owner) -> bool {
    owner.manager == FIELD_MANAGER && owner.subresource.is_empty()
}

/// The two sides of an update.
struct UpdateStates<'a> {
    live: &'a Value,
    result: Option<&'a Value>,
    policy_masker: &'a Masker,
    /// What paths do not show.
    cover: Cover,
    /// What values do not show.
    policy_cover: Cover,
}

impl UpdateStates<'_> {
    /// By the server's answer: fields that the manager owns before, but not afterwards.
    fn lost(&self, entry: &ManagerEntry, after: &[ManagerEntry]) -> Vec<TakenField> {
        let same = |owner: &Owner| {
            let of = |owner: &Owner| (owner.manager.clone(), owner.operation.clone(), owner.subresource.clone());
            of(owner) == of(&entry.owner)
        };
        let kept = after.iter().find(|other| same(&other.owner));
        let lost = kept.map_or_else(|| entry.fields.clone(), |kept| entry.fields.difference(&kept.fields));
        // Its controller has written the status between the two states: an apply of the object cannot.
        let lost = match entry.owner.subresource == STATUS {
            true => lost.without(&[Element::field("status")]),
            false => lost,
        };
        lost.leaves()
            .iter()
            .filter_map(|leaf| {
                let old = fields::resolve(leaf, self.live).filter(|place| !place.is_empty())?;
                let new = self.result.and_then(|result| fields::resolve(leaf, result));
                let place = new.clone().unwrap_or_else(|| old.clone());
                Some(self.field(self.display(leaf, &old), place, Some(&old), new.as_deref()))
            })
            // Only the owner changes.
            .filter(|field| field.old != field.new)
            .collect()
    }

    /// Without an answer of the server: the differing fields that the manager owns.
    fn overwritten(&self, entry: &ManagerEntry, differing: &[FieldChange]) -> Vec<TakenField> {
        let hides: &Masked<'_> = &|path| self.cover.hides(path);
        let theirs = differing.iter().filter(|field| field.old.is_some() && entry.owns(self.live, &field.old_path));
        theirs
            .map(|change| {
                let mut field = self.field(change.display(hides), change.path.clone(), Some(&change.old_path), None);
                field.new = change.new.as_ref().map(|new| match self.policy_cover.hides(&change.path) {
                    true => Value::String("(secret)".to_owned()),
                    false => new.clone(),
                });
                field
            })
            .collect()
    }

    fn field(
        &self,
        path: String,
        place: Vec<PathSegment>,
        old: Option<&[PathSegment]>,
        new: Option<&[PathSegment]>,
    ) -> TakenField {
        // Separate numbers, so that a finding about one field does not change with another.
        let mut numbers = MaskNumbers::default();
        let mut shown = |object: Option<&Value>, place: Option<&[PathSegment]>| {
            self.policy_masker.shown(object?, place?, &mut numbers)
        };
        let (old, new) = (shown(Some(self.live), old), shown(self.result, new));
        TakenField { path, place, old, new }
    }

    /// `spec.containers[name=web].image`: the key of a list item is shown unless it is secret.
    fn display(&self, leaf: &[Element], place: &[PathSegment]) -> String {
        let mut text = String::new();
        for (depth, element) in leaf.iter().enumerate() {
            let hidden = self.cover.hides(&place[..place.len().min(depth + 1)]);
            match element {
                Element::Field(name) => {
                    let step = display_path(&[PathSegment::Key(name.clone())]);
                    let dot = if text.is_empty() || step.starts_with('[') { "" } else { "." };
                    text.push_str(&format!("{dot}{step}"));
                }
                Element::Key(names) if !hidden => {
                    let names: Vec<String> =
                        names.iter().map(|(name, value)| format!("{name}={}", value.trim_matches('"'))).collect();
                    text.push_str(&format!("[{}]", names.join(",")));
                }
                Element::Value(value) if !hidden => text.push_str(&format!("[{value}]")),
                Element::Key(_) | Element::Value(_) | Element::Index(_) => {
                    text.push_str(&display_path(&place[depth.min(place.len())..place.len().min(depth + 1)]));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use pushback_manifest::config::defaults::defaults;
    use serde_json::json;

    use super::*;
    use crate::plan::diff::{DiffOptions, diff};

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-11-21T12:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn object(kind: &str, data: &Value, entries: &[Value]) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "managedFields": entries}, "data": data})
    }

    fn taken(live: &Value, result: Option<&Value>, differing: &[FieldChange]) -> Vec<TakenFrom> {
        let masker = Masker::new(&defaults().diff_mask_rules);
        taken_from(live, result, differing, &masker, &masker)
    }

    fn lines(taken: &[TakenFrom]) -> Vec<String> {
        let value = |value: &Option<Value>| value.as_ref().map_or("∅".to_owned(), ToString::to_string);
        taken
            .iter()
            .flat_map(|taken| {
                let TakenFrom { manager, predecessor, .. } = taken;
                let who = if *predecessor { format!("{manager}, a predecessor") } else { manager.clone() };
                taken
                    .fields
                    .iter()
                    .map(move |field| format!("{who}: {} {} → {}", field.path, value(&field.old), value(&field.new)))
            })
            .collect()
    }

    const BOTH: fn() -> Value = || json!({"f:data": {"f:a": {}, "f:b": {}}});

    #[test]
    fn what_another_manager_loses_is_taken_from_it_and_what_is_shared_is_not() {
        let ours = entry(FIELD_MANAGER, "Apply", &BOTH());
        let live = object(
            "ConfigMap",
            &json!({"a": "1", "b": "1"}),
            &[ours.clone(), entry("kubectl-edit", "Update", &BOTH())],
        );
        let kept = entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}}));
        let result = object("ConfigMap", &json!({"a": "2", "b": "1"}), &[ours, kept]);
        let taken = taken(&live, Some(&result), &[]);
        assert_eq!(lines(&taken), [r#"kubectl-edit: data.a "1" → "2""#]);
        assert_eq!(taken[0].time, "2026-11-21T12:00:00Z");
        assert_eq!(notes(&taken), ["takes over data.a from kubectl-edit"]);
    }

    #[test]
    fn a_deploy_tool_is_a_predecessor_only_until_the_object_is_ours() {
        let kapp = entry("kapp", "Update", &BOTH());
        let result = object("ConfigMap", &json!({"a": "2"}), &[entry(FIELD_MANAGER, "Apply", &BOTH())]);
        let data = json!({"a": "1", "b": "1"});
        let first = taken(&object("ConfigMap", &data, std::slice::from_ref(&kapp)), Some(&result), &[]);
        assert_eq!(
            lines(&first),
            [r#"kapp, a predecessor: data.a "1" → "2""#, r#"kapp, a predecessor: data.b "1" → ∅"#]
        );
        assert_eq!(notes(&first), Vec::<String>::new());
        let later = [entry(FIELD_MANAGER, "Apply", &BOTH()), kapp];
        let later = taken(&object("ConfigMap", &data, &later), Some(&result), &[]);
        assert_eq!(lines(&later), [r#"kapp: data.a "1" → "2""#, r#"kapp: data.b "1" → ∅"#]);
    }

    #[test]
    fn values_of_secrets_are_masked_and_still_told_apart() {
        let live = object("Secret", &json!({"a": "aHVudGVyMg==", "b": "eA=="}), &[entry("x", "Update", &BOTH())]);
        let result = object("Secret", &json!({"a": "b3RoZXI=", "b": "eA=="}), &[]);
        assert_eq!(lines(&taken(&live, Some(&result), &[])), [r#"x: data.a "(secret #1)" → "(secret #2)""#]);
        // The same without the server.
        let differing = diff(&live, &result, &DiffOptions::default());
        let text = lines(&taken(&live, None, &differing)).join("\n");
        assert!(text.contains("data.a") && !text.contains("b3RoZXI=") && !text.contains("aHVudGVyMg=="), "{text}");
    }

    #[test]
    fn without_the_servers_answer_the_fields_that_differ_are_looked_up() {
        let live = object("ConfigMap", &json!({"a": "1", "b": "1", "c": "1"}), &[entry("x", "Update", &BOTH())]);
        let wanted = object("ConfigMap", &json!({"a": "2", "b": "1", "c": "2", "d": "2"}), &[]);
        let differing = diff(&live, &wanted, &DiffOptions::default());
        assert_eq!(lines(&taken(&live, None, &differing)), [r#"x: data.a "1" → "2""#]);
    }

    #[test]
    fn a_status_that_its_controller_writes_meanwhile_is_not_taken_from_it() {
        let status = |fields: Value| {
            let mut entry = entry("kube-controller-manager", "Update", &fields);
            entry["subresource"] = json!("status");
            entry
        };
        let late =
            json!({"f:status": {"f:unavailableReplicas": {}}, "f:metadata": {"f:annotations": {"f:revision": {}}}});
        let mut live = object("Deployment", &json!({}), &[status(late)]);
        live["status"] = json!({"unavailableReplicas": 3});
        live["metadata"]["annotations"] = json!({"revision": "1"});
        let mut result = object("Deployment", &json!({}), &[status(json!({"f:status": {}}))]);
        result["metadata"]["annotations"] = json!({"revision": "2"});
        let taken = taken(&live, Some(&result), &[]);
        // What the same entry owns elsewhere can be taken from it.
        assert_eq!(lines(&taken), [r#"kube-controller-manager: metadata.annotations.revision "1" → "2""#]);
    }

    #[test]
    fn an_item_of_a_list_is_named_by_its_key() {
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}});
        let containers = |image: &str| json!([{"name": "new", "image": "n"}, {"name": "web", "image": image}]);
        let mut live = object("Pod", &json!({}), &[entry("x", "Update", &fields)]);
        live["spec"] = json!({"containers": [containers("web:1")[1]]});
        let mut result = object("Pod", &json!({}), &[]);
        result["spec"] = json!({"containers": containers("web:2")});
        let taken = taken(&live, Some(&result), &[]);
        assert_eq!(lines(&taken), [r#"x: spec.containers[name=web].image "web:1" → "web:2""#]);
        let place: Vec<PathSegment> = vec!["spec".into(), "containers".into(), 1.into(), "image".into()];
        assert_eq!(taken[0].fields[0].place, place);
    }
}
