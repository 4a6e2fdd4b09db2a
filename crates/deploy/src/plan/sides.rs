//! Both sides of a change as a tool sees them that applies whole objects: what it applied last, and what it applies now.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushback_app::identity::{IDENTITY_ANNOTATION, ORIGINAL_ANNOTATIONS};
use pushback_cluster::FIELD_MANAGER;
use pushback_cluster::managed_fields::{FieldSet, managers, project, project_without_keys};
use pushback_events::Awaited;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef, Positions};
use pushback_preflight::Operation;
use serde_json::{Map, Value};

use super::annotations::CreateStrategy;
use super::digest::is_secret;
use super::{Plan, Planned, UpdateStrategy, takeover, versioned};

/// Both sides of a change as a tool sees them that applies whole objects, each with the metadata of the live object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSides {
    /// The side applied last; `None` for an object that does not exist.
    pub old: Option<Value>,
    /// The side applied now; `None` for an object that is deleted.
    pub new: Option<Value>,
    /// Number of changes before it on the longest way to it.
    pub wave: usize,
    /// Creation time of the live object, RFC 3339; empty if it does not exist.
    pub created: String,
    /// Difference from the usual way of writing: `fallback on replace`, `orphan`.
    pub strategy: String,
    /// The state that the run waits for, if any.
    pub awaited: Option<Awaited>,
    /// The live object.
    pub live: Option<Arc<Value>>,
}

/// The newest live version of every versioned object of the app, by its identity in the input.
#[must_use]
pub fn newest_versions(plan: &Plan) -> BTreeMap<ObjectKey, &Value> {
    let planned = plan.objects.iter().filter_map(|planned| planned.live.as_deref());
    versioned::newest(plan.retained.objects.iter().map(|object| &**object).chain(planned))
}

/// The newest live version of an object of which a new one is created.
#[must_use]
pub fn previous_version<'v>(planned: &Planned, versions: &BTreeMap<ObjectKey, &'v Value>) -> Option<&'v Value> {
    let desired = planned.desired.as_deref().filter(|_| planned.operation() == Operation::Create)?;
    let (key, _) = versioned::version_of(&planned.object.key(), desired)?;
    versions.get(&key).copied()
}

/// Sets both sides to those of a new version and the one before.
pub fn set_beside(sides: &mut ChangeSides, planned: &Planned, previous: &Value) {
    sides.new = planned.desired.as_deref().map(|desired| new_side(desired, Some(previous)));
    sides.old = Some(old_side(previous, sides.new.as_ref()));
    let plain = given_as_text(planned);
    sides.old.iter_mut().chain(&mut sides.new).for_each(|side| as_string_data(side, &plain));
}

/// Returns whether an object is a version of another one.
#[must_use]
pub fn is_version(object: &Value) -> bool {
    versioned::version_of(&ObjectRef::of(object).key(), object).is_some()
}

/// Both sides of a change. `wave`: how many changes come before it; `app_goes`: the whole app is deleted, so that nothing is
/// compared.
#[must_use]
pub fn change_sides(planned: &Planned, wave: usize, app_goes: bool) -> ChangeSides {
    let live = planned.live.as_deref();
    let new = match planned.operation() {
        Operation::Delete => None,
        _ => planned.desired.as_deref().map(|desired| new_side(desired, live)),
    };
    let mut old = live.map(|live| match app_goes {
        true => without_bookkeeping(live.clone(), true),
        false => old_side(live, new.as_ref()),
    });
    let plain = given_as_text(planned);
    let mut new = new;
    old.iter_mut().chain(&mut new).for_each(|side| as_string_data(side, &plain));
    ChangeSides {
        old,
        new,
        wave,
        created: live.map(|live| live.text("/metadata/creationTimestamp").to_owned()).unwrap_or_default(),
        strategy: strategy(planned).to_owned(),
        awaited: match planned.operation() {
            Operation::Delete => (planned.wait || planned.is_orphaned()).then_some(Awaited::Deleted),
            Operation::Create | Operation::Update | Operation::Replace if planned.wait => Some(Awaited::Ready),
            Operation::Exists => Some(Awaited::Ready),
            _ => None,
        },
        live: planned.live.clone(),
    }
}

fn strategy(planned: &Planned) -> &'static str {
    match (planned.operation(), planned.strategies.update) {
        (Operation::Delete, _) if planned.is_orphaned() => "orphan",
        (Operation::Update | Operation::Replace, UpdateStrategy::FallbackOnReplace) => "fallback on replace",
        (Operation::Update, UpdateStrategy::AlwaysReplace) | (Operation::Replace, _) => "always replace",
        (Operation::Noop, UpdateStrategy::Skip) => "skip",
        (Operation::Create, _) => match planned.strategies.create {
            CreateStrategy::Create => "",
            CreateStrategy::FallbackOnUpdate => "fallback on update",
            CreateStrategy::FallbackOnUpdateOrNoop => "fallback on update or noop",
        },
        _ => "",
    }
}

/// The live values of the fields that deploy tools have set, and of those that are set now, with the object's metadata.
fn old_side(live: &Value, new: Option<&Value>) -> Value {
    let owned = owned_by_deployers(live);
    let mut side = if owned.is_empty() { without_status(live) } else { project_without_keys(&owned, live) };
    if let Some(new) = new {
        add_named(&mut side, live, new);
    }
    for field in ["apiVersion", "kind", "metadata"] {
        if let (Some(side), Some(value)) = (side.as_object_mut(), live.get(field)) {
            side.insert(field.to_owned(), value.clone());
        }
    }
    without_bookkeeping(side, false)
}

fn given_as_text(planned: &Planned) -> Vec<String> {
    match (&planned.desired, &planned.positions) {
        (Some(desired), Some(positions)) => plain_keys(desired, positions),
        _ => Vec::new(),
    }
}

/// An object of the input with the text of a Secret where the input has it.
#[must_use]
pub fn as_given(object: &Value, positions: &Positions) -> Value {
    let mut given = object.clone();
    as_string_data(&mut given, &plain_keys(object, positions));
    given
}

/// Keys of a Secret that the input gives as `stringData`.
pub(super) fn plain_keys(desired: &Value, positions: &Positions) -> Vec<String> {
    if !is_secret(desired) {
        return Vec::new();
    }
    let field = positions.locate(&["stringData".into()]);
    let is_given = |key: &&String| {
        let place = positions.locate(&["stringData".into(), key.as_str().into()]);
        place != field && place != positions.start()
    };
    let data = desired.get("data").and_then(Value::as_object).into_iter().flatten();
    data.map(|(key, _)| key).filter(is_given).cloned().collect()
}

/// Shows these keys of a Secret as the input gives them.
pub(super) fn as_string_data(side: &mut Value, keys: &[String]) {
    let Some(fields) = side.as_object_mut() else { return };
    let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) else { return };
    let mut plain = Map::new();
    for key in keys {
        if let Some(value) = data.shift_remove(key) {
            let text = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).map(Value::String);
            plain.insert(key.clone(), text.unwrap_or(value));
        }
    }
    if data.is_empty() {
        fields.shift_remove("data");
    }
    if !plain.is_empty() {
        plain.sort_keys();
        fields.insert("stringData".to_owned(), Value::Object(plain));
        fields.sort_keys();
    }
}

/// The fields that deploy tools have set.
fn owned_by_deployers(live: &Value) -> FieldSet {
    let entries = managers(live).unwrap_or_default();
    let deployers = entries.iter().filter(|entry| {
        let owner = &entry.owner;
        owner.manager == FIELD_MANAGER && owner.subresource.is_empty() || takeover::is_predecessor(owner)
    });
    deployers.fold(FieldSet::default(), |set, entry| set.union(&entry.fields))
}

/// The object that is applied, with what the server keeps of the live object's metadata.
fn new_side(desired: &Value, live: Option<&Value>) -> Value {
    let mut side = desired.clone();
    if let Some(of_live) = live.and_then(|live| live.get("metadata")).and_then(Value::as_object)
        && let Some(metadata) = side.get_mut("metadata").and_then(Value::as_object_mut)
    {
        for (key, value) in of_live.iter().filter(|(key, _)| !matches!(key.as_str(), "labels" | "annotations")) {
            metadata.insert(key.clone(), value.clone());
        }
        // Labels and annotations of others stay.
        let owned = live.map(|live| project(&owned_by_deployers(live), live)).unwrap_or_default();
        for field in ["labels", "annotations"] {
            let of_deployers =
                |key: &str| owned.pointer(&format!("/metadata/{field}")).and_then(|map| map.get(key)).is_some();
            let others = of_live.get(field).and_then(Value::as_object).into_iter().flatten();
            let others: Vec<_> = others.filter(|(key, _)| !of_deployers(key)).collect();
            if others.is_empty() {
                continue;
            }
            let map = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
            for (key, value) in others {
                if let Some(map) = map.as_object_mut() {
                    map.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
    }
    without_bookkeeping(side, false)
}

/// Adds the live values of fields that `new` sets and `side` lacks, since somebody else owns them now.
fn add_named(side: &mut Value, live: &Value, new: &Value) {
    let (Some(side), Some(live), Some(new)) = (side.as_object_mut(), live.as_object(), new.as_object()) else { return };
    for (key, new) in new {
        let Some(live) = live.get(key) else { continue };
        match side.get_mut(key) {
            Some(below) => add_named(below, live, new),
            None if live.is_object() && new.is_object() => {
                let mut below = Value::Object(Map::new());
                add_named(&mut below, live, new);
                side.insert(key.clone(), below);
            }
            None => {
                side.insert(key.clone(), live.clone());
            }
        }
    }
}

fn without_status(live: &Value) -> Value {
    let mut live = live.clone();
    if let Some(fields) = live.as_object_mut() {
        fields.shift_remove("status");
    }
    live
}

/// A live object without what deploy tools keep in it for themselves.
#[must_use]
pub fn raw(live: &Value, with_managed_fields: bool) -> Value {
    let mut object = without_bookkeeping(live.clone(), true);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| !with_managed_fields) {
        metadata.shift_remove("managedFields");
    }
    object
}

/// A new object without what it has of the version before.
#[must_use]
pub fn as_created(new: &Value, name: &str) -> Value {
    let mut object = raw(new, false);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for of_server in ["creationTimestamp", "generation", "resourceVersion", "uid"] {
            metadata.shift_remove(of_server);
        }
        metadata.insert("name".to_owned(), name.into());
    }
    object
}

/// Removes annotations in which deploy tools keep their own state, and sorts keys.
fn without_bookkeeping(mut side: Value, keeps_empty: bool) -> Value {
    if let Some(metadata) = side.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.retain(|key, _| key != IDENTITY_ANNOTATION && !ORIGINAL_ANNOTATIONS.contains(&key.as_str()));
        if annotations.is_empty() && !keeps_empty {
            metadata.shift_remove("annotations");
        }
    }
    side.sort_all_objects();
    side
}
