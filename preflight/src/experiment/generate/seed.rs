//! Values that test one change of a definition: valid in the old one, and rejected, dropped or altered by the new one,
//! in an object that stays valid with them.

use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::{self, affected_object};
use pushback_crd::schema::pipeline::{self, Resource, Server};
use pushback_crd::stack::with_room;
use pushback_releases::difference::{ChangeType, DefinitionChange};
use serde_json::{Map, Value};

use super::aim::{self, Step};
use super::kinds::Kind;

/// A field of an object, and the value that it gets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seed {
    /// Names of the maps from the object to the field.
    pub(super) path: Vec<String>,
    /// The value; null removes the field.
    pub(super) value: Value,
}

/// The field that a merge patch can address, closest to the change: no lists, and no keys chosen by users.
pub(super) fn reached(change: &DefinitionChange) -> Vec<String> {
    let plain = |step: Step| match step {
        Step::Property(name) if !name.contains(['.', '[', '{', '"']) => Some(name),
        _ => None,
    };
    aim::steps(&change.path).unwrap_or_default().into_iter().map_while(plain).collect()
}

/// The seed at the first `depth` fields of a change's path; `None` if none is found.
pub(super) fn seed(kind: &Kind<'_>, after: Option<&Kind<'_>>, change: &DefinitionChange, depth: usize) -> Option<Seed> {
    let path: Vec<String> = reached(change).into_iter().take(depth).collect();
    let steps = aim::steps(&change.path)?;
    let is_whole = path.len() == steps.len();
    if change.change_type == ChangeType::RequiredAdded && is_whole {
        return Some(Seed { path, value: Value::Null });
    }
    let before = kind.schema(&change.version)?;
    let now = after.and_then(|after| after.schema(&change.version));
    let is_removed = is_whole && change.change_type == ChangeType::FieldRemoved;
    let value = with_room(|| match now.filter(|_| !is_removed) {
        Some(now) if !is_whole => value_inside(before, now, &path, &steps, change.change_type),
        now => value_for(before, now, &path),
    })?;
    Some(Seed { path, value })
}

fn at<'s>(schema: &'s Value, path: &[String]) -> Option<&'s Value> {
    path.iter().try_fold(schema, |schema, key| schema.get("properties")?.get(key))
}

/// A value for the node at a path that only the old schema accepts.
fn value_for(before: &Value, after: Option<&Value>, path: &[String]) -> Option<Value> {
    let after = after.and_then(|after| at(after, path)).map(Schema::of);
    contain::harmed_value(&Schema::of(at(before, path)?), after.as_ref())
}

/// A value for the node at a path that tests a change inside the node.
fn value_inside(
    before: &Value,
    now: &Value,
    path: &[String],
    steps: &[Step],
    change_type: ChangeType,
) -> Option<Value> {
    let (old, new) = aim::one_change(at(before, path)?, at(now, path)?, steps.get(path.len()..)?, change_type)?;
    contain::harmed_value(&Schema::of(&old), Some(&Schema::of(&new)))
}

impl Seed {
    /// Whether the object stays valid under the old definition with this value, and does not pass the new one unharmed.
    pub(super) fn fits(&self, object: &Value, kind: &Kind<'_>, after: Option<&Kind<'_>>, version: &str) -> bool {
        let Some(seeded) = self.placed(object, &format!("{}/{version}", kind.group)) else { return false };
        let schema = |kind: &Kind<'_>| kind.schema(version).map(Schema::of);
        let Some(old) = schema(kind) else { return false };
        let new = after.and_then(schema);
        with_room(|| {
            let old = resource(&old, kind, version);
            let accepted = pipeline::create(&old, Server::default(), &seeded);
            if !accepted.errors.is_empty() || !accepted.pruned.is_empty() || !accepted.dropped_nulls.is_empty() {
                return false;
            }
            let (Some(new), Some(after)) = (&new, after) else { return true };
            let affected = affected_object(&old, &resource(new, after, version), Server::default(), &seeded);
            !affected.nodes.is_empty() || !affected.is_decided || !affected.met_rules
        })
    }

    /// The object with the value; `None` if the value would change nothing, or something else is in its way.
    fn placed(&self, object: &Value, api_version: &str) -> Option<Value> {
        let mut seeded = object.clone();
        let (name, parents) = self.path.split_last()?;
        let mut map = seeded.as_object_mut()?;
        for parent in parents {
            let child = map.entry(parent.as_str()).or_insert_with(|| Value::Object(Map::new()));
            map = child.as_object_mut()?;
        }
        let before = match &self.value {
            Value::Null => map.shift_remove(name)?,
            value => map.insert(name.clone(), value.clone()).unwrap_or_default(),
        };
        if before == self.value {
            return None;
        }
        seeded["apiVersion"] = api_version.into();
        Some(seeded)
    }
}

fn resource<'r>(schema: &'r Schema, kind: &Kind<'r>, version: &'r str) -> Resource<'r> {
    Resource {
        schema,
        group: kind.group,
        version,
        kind: kind.kind,
        status: kind.has_status(version),
        scale: None,
        preserve_unknown_fields: false,
    }
}
