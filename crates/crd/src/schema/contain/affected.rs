//! Effect of a new definition on an existing object. A read shows a default as if it were stored, so a value that
//! equals one may not be there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::confirm::{altered, in_version, node_of};
use super::formula::child;
use super::step::SchemaStep;
use super::values::same;
use crate::path::{PathSegment, value_at};
use crate::schema::model::Schema;
use crate::schema::pipeline::{self, Admission, Path, Resource, Server};

/// The keyword of rules.
const RULES: &str = "x-kubernetes-validations";

/// The effect of a new definition on an existing object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AffectedObject {
    /// The schema nodes at which it is rejected, pruned or altered. A missing field belongs to the node that requires
    /// it, a duplicate item to its list.
    pub nodes: BTreeSet<Vec<SchemaStep>>,
    /// Further nodes at which it is affected if values are not stored that a read may have filled in from defaults.
    pub possible_nodes: BTreeSet<Vec<SchemaStep>>,
    /// True if all keywords except rules were evaluated.
    pub is_decided: bool,
    /// True if rules were evaluated too: the server does so only if there are no other errors.
    pub met_rules: bool,
}

/// Finds what a new definition does to an object that the old one serves. Errors that the object had before are left out.
#[must_use]
pub fn affected_object(old: &Resource<'_>, new: &Resource<'_>, server: Server, object: &Value) -> AffectedObject {
    let before = pipeline::create(old, server, object);
    let after = pipeline::create(new, server, &in_version(&before.object, new));
    let nodes = affected_nodes(old.schema, &before, &after);
    let stored = without_unproved_defaults((old.schema, new.schema), &before.object);
    let possible_nodes = stored.map_or_else(BTreeSet::new, |stored| {
        let after = pipeline::create(new, server, &in_version(&stored, new));
        affected_nodes(old.schema, &before, &after).difference(&nodes).cloned().collect()
    });
    // An object that cannot be decoded is not validated.
    let is_decoded = after.errors.iter().all(|error| error.keyword != "metadata");
    let is_open = |of_rules: bool| after.unevaluated.iter().any(|open| (open.keyword == RULES) == of_rules);
    let are_others_kept = after.errors.iter().all(|error| error.keyword == RULES);
    AffectedObject {
        nodes,
        possible_nodes,
        is_decided: is_decoded && !is_open(false),
        met_rules: are_others_kept && !is_open(true),
    }
}

/// The loss of fields that a schema does not name, or of nulls that it does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldLoss {
    /// It loses nothing.
    None,
    /// It loses a field only if the field is stored, and not filled in by a read; or it cannot be judged.
    Possible,
    /// It loses a stored field.
    Certain,
}

/// Returns the loss of fields of an object that the old definition serves, when it is read under the new one.
#[must_use]
pub fn field_loss(old: &Resource<'_>, new: &Resource<'_>, object: &Value) -> FieldLoss {
    let read = |object: &Value| pipeline::read(new, &in_version(object, new));
    let shown = read(object);
    if !(shown.errors.is_empty() && shown.unevaluated.is_empty()) {
        return FieldLoss::Possible;
    }
    match without_unproved_defaults((old.schema, new.schema), object) {
        _ if !shown.loses() => FieldLoss::None,
        Some(stored) if !read(&stored).loses() => FieldLoss::Possible,
        Some(_) | None => FieldLoss::Certain,
    }
}

/// An object without the values that a read may have filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct BareObject {
    /// The object as it is stored if no such value is.
    pub object: Value,
    /// Places of values that clients then read differently under the new definition.
    pub altered: Vec<Path>,
}

/// Removes the values from an object that a read may have filled in with a default of the old definition which the new
/// one lacks or changes; `None` if there are none.
#[must_use]
pub fn bare_object(old: &Resource<'_>, new: &Resource<'_>, object: &Value) -> Option<BareObject> {
    let stored = without_unproved_defaults((old.schema, new.schema), object)?;
    let read = pipeline::read(new, &in_version(&stored, new));
    let is_shown = |place: &Path| value_at(object, place).is_some();
    let altered = altered(old.schema, object, &read.object, &[]).into_iter().filter(is_shown).collect();
    Some(BareObject { object: stored, altered })
}

/// Collects the nodes at which an object is newly rejected, pruned or altered.
fn affected_nodes(schema: &Schema, before: &Admission, after: &Admission) -> BTreeSet<Vec<SchemaStep>> {
    let was = |error: &&pipeline::SchemaError| {
        let key = |it: &pipeline::SchemaError| (it.path.clone(), it.keyword, it.rule.clone());
        before.write_errors().any(|known| key(known) == key(error))
    };
    let rejected = after.write_errors().filter(|error| !was(error)).map(|error| {
        let is_of_the_parent = ["required", "x-kubernetes-list-type"].contains(&error.keyword);
        &error.path[..error.path.len().saturating_sub(usize::from(is_of_the_parent))]
    });
    let lost = after.pruned.iter().chain(&after.dropped_nulls).map(Path::as_slice);
    let changed = altered(schema, &before.object, &after.object, &[]);
    let places = rejected.chain(lost).chain(changed.iter().map(Path::as_slice));
    places.map(|place| node_of(schema, place)).collect()
}

/// Returns an object without the values that equal an old default, which the new schema lacks or changes, and that no
/// entry of `managedFields` proves to be stored; `None` if there are none.
fn without_unproved_defaults(schemas: (&Schema, &Schema), object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let owners: Vec<&Value> = entries.into_iter().flatten().filter_map(|entry| entry.get("fieldsV1")).collect();
    let mut stored = object.clone();
    strip(schemas, &mut stored, &mut Path::new(), &owners).then_some(stored)
}

/// Removes such values at and below a place. Returns true if there was one.
fn strip((old, new): (&Schema, &Schema), value: &mut Value, place: &mut Path, owners: &[&Value]) -> bool {
    let mut found = false;
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(node) = child(old, name) else { return true };
                let next = child(new, name);
                place.push(name.as_str().into());
                let changes = next.is_none_or(|next| next.default != node.default);
                let is_filled_in = changes
                    && node
                        .default
                        .as_ref()
                        .is_some_and(|default| same(&pipeline::filled_default(node, default), value))
                    && !owners.iter().any(|fields| is_owned(fields, place));
                if !is_filled_in && let Some(next) = next {
                    found |= strip((node, next), value, place, owners);
                }
                place.pop();
                found |= is_filled_in;
                !is_filled_in
            });
        }
        Value::Array(items) => {
            if let (Some(old), Some(new)) = (old.items.as_deref(), new.items.as_deref()) {
                for (index, item) in items.iter_mut().enumerate() {
                    place.push(index.into());
                    found |= strip((old, new), item, place, owners);
                    place.pop();
                }
            }
        }
        _ => {}
    }
    found
}

/// Returns whether a set of fields has a place. Items of lists are named by their keys there, so what is in one is not proved.
fn is_owned(mut fields: &Value, place: &[PathSegment]) -> bool {
    for segment in place {
        let PathSegment::Key(name) = segment else { return false };
        match fields.get(format!("f:{name}")) {
            Some(below) => fields = below,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::testing::resource;

    fn schema(fields: &Value) -> Schema {
        let issuer = json!({"type": "object", "required": ["name"], "properties": fields});
        let spec = json!({"type": "object", "properties": {"issuer": issuer}});
        Schema::of(&json!({"type": "object", "properties": {"spec": spec}}))
    }

    fn names(nodes: &BTreeSet<Vec<SchemaStep>>) -> Vec<String> {
        nodes.iter().map(|node| crate::definition::path::field_path(node)).collect()
    }

    /// The affected nodes of an object, and those that may be affected.
    fn affect(old: &Value, new: &Value, object: &Value) -> (Vec<String>, Vec<String>) {
        let (old, new) = (schema(old), schema(new));
        let found = affected_object(&resource(&old), &resource(&new), Server::default(), object);
        (names(&found.nodes), names(&found.possible_nodes))
    }

    fn cert(issuer: &Value, owned: &Value) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Test",
            "metadata": {"name": "a", "managedFields": [{"manager": "kubectl", "operation": "Apply",
                "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:issuer": owned}}}]},
            "spec": {"issuer": issuer}})
    }

    #[test]
    fn default_in_a_map_and_in_a_list_may_have_been_filled_in() {
        let with = |size: &Value| {
            let item = json!({"type": "object", "properties": {"size": size}});
            json!({"name": {"type": "string"}, "map": {"type": "object", "additionalProperties": item},
                "list": {"type": "array", "items": item}})
        };
        let (old, new) = (with(&json!({"type": "integer", "default": 1})), with(&json!({"type": "integer"})));
        let read = json!({"name": "ca", "map": {"a": {"size": 1}}, "list": [{"size": 1}, {"size": 2}]});
        let (at, perhaps) = affect(&old, &new, &cert(&read, &json!({"f:name": {}})));
        assert_eq!(
            (at, perhaps.as_slice()),
            (Vec::new(), ["spec.issuer.list[*].size", "spec.issuer.map[*].size"].map(str::to_owned).as_slice())
        );
    }

    #[test]
    fn each_altered_field_is_named() {
        let plain = json!({"name": {"type": "string"}, "group": {"type": "string"}, "kind": {"type": "string"}});
        let filled = json!({"name": {"type": "string"}, "group": {"type": "string", "default": "g"},
            "kind": {"type": "string", "default": "k"}});
        let (at, perhaps) = affect(&plain, &filled, &cert(&json!({"name": "ca"}), &json!({"f:name": {}})));
        assert_eq!((at, perhaps), (vec!["spec.issuer.group".to_owned(), "spec.issuer.kind".to_owned()], Vec::new()));
    }

    #[test]
    fn value_that_equals_a_default_is_stored_only_if_a_manager_owns_it() {
        let plain = json!({"name": {"type": "string"}, "group": {"type": "string"}});
        let filled = json!({"name": {"type": "string"}, "group": {"type": "string", "default": "g"}});
        let other = json!({"name": {"type": "string"}, "group": {"type": "string", "default": "h"}});
        let read = json!({"name": "ca", "group": "g"});
        let none = || (Vec::<String>::new(), Vec::<String>::new());
        let group = || (Vec::new(), vec!["spec.issuer.group".to_owned()]);
        for new in [&plain, &other] {
            assert_eq!(affect(&filled, new, &cert(&read, &json!({"f:name": {}}))), group());
            assert_eq!(affect(&filled, new, &cert(&read, &json!({"f:name": {}, "f:group": {}}))), none());
        }
        assert_eq!(affect(&filled, &filled, &cert(&read, &json!({"f:name": {}}))), none());
        let set = json!({"name": "ca", "group": "mine"});
        assert_eq!(affect(&filled, &plain, &cert(&set, &json!({"f:name": {}}))), none());
    }
}
