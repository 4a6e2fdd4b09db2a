//! The schema of each version before and after: every difference with its proof, and what can no longer be done with an
//! affected object.

use serde_json::{Value, json};

use super::Upgrade;
use super::change::{Blocked, Changes, Place, Proof, Safety};
use crate::path::PathSegment;
use crate::schema::contain::{self, Damage, Difference, Effect, SchemaStep};
use crate::schema::pipeline;
use crate::schema::{ListType, Schema, keywords};

/// Compares all versions that are in both definitions and in use.
pub(super) fn compare(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    for (old, _) in upgrade.compared_versions() {
        version(upgrade, old.name, changes);
    }
}

fn version(upgrade: &Upgrade<'_>, name: &str, changes: &mut Changes) {
    let Some((old, new)) = upgrade.resources(name) else { return };
    if old.schema.digest == new.schema.digest {
        return;
    }
    let is_served = upgrade.new.version(name).is_some_and(|version| version.served);
    let perhaps_stored = !is_served && !upgrade.old.stored_versions().contains(&name);
    for difference in upgrade.compare(&old, &new) {
        // No client writes in this version. Objects stored in it are still decoded by its schema (fields are pruned,
        // defaults filled in) but not validated.
        let is_moot = !is_served && only_refuses_writes(&difference);
        let Difference { path, keyword, old, new, proof } = difference;
        let (proof, witness) = match proof {
            contain::SchemaProof::Safe => (Proof::Safe(Safety::NoObject), None),
            contain::SchemaProof::Unknown { keyword, reason } => (Proof::Unknown { keyword, reason }, None),
            // A change that breaks stored objects is harmless if there are none.
            contain::SchemaProof::Breaking { .. } if perhaps_stored => {
                let reason = "whether objects are stored in this version is not known without a status".to_owned();
                (Proof::Unknown { keyword: keyword.to_owned(), reason: Some(reason) }, None)
            }
            contain::SchemaProof::Breaking { witness, damage } => {
                breaking(upgrade, name, (&path, keyword), witness, damage)
            }
        };
        let change = changes.push(Some(name), Place::Schema(path), keyword, [old, new], proof);
        (change.witness, change.is_moot) = (witness, is_moot);
    }
}

/// Whether a difference only rejects objects when they are written.
fn only_refuses_writes(difference: &Difference) -> bool {
    let refuses = match &difference.proof {
        contain::SchemaProof::Breaking { damage, .. } => damage.effect == Effect::Rejected,
        contain::SchemaProof::Unknown { .. } | contain::SchemaProof::Safe => true,
    };
    refuses && keywords::find(difference.keyword).is_some_and(|known| known.only_refuses)
}

/// The effect of a difference on an object, with that object.
fn breaking(
    upgrade: &Upgrade<'_>,
    version: &str,
    (path, keyword): (&[SchemaStep], &str),
    witness: Value,
    damage: Damage,
) -> (Proof, Option<Value>) {
    if keyword == "x-kubernetes-embedded-resource"
        && let Some(unreadable) = unreadable(upgrade, version, path, &witness, &damage)
    {
        let (effect, blocks) = (Effect::Unreadable, Some(Blocked::Read));
        return (Proof::Breaking { effect, blocks, damage: Some(damage) }, Some(unreadable));
    }
    let (effect, blocks) = (damage.effect, Some(blocks(upgrade, version, &witness, &damage)));
    (Proof::Breaking { effect, blocks, damage: Some(damage) }, Some(witness))
}

/// The witness with metadata that is not an object, if a field becomes an embedded resource and could hold that before.
/// The API server cannot decode such an object: GET and DELETE of it fail, and so does every LIST of its kind.
fn unreadable(
    upgrade: &Upgrade<'_>,
    version: &str,
    path: &[SchemaStep],
    witness: &Value,
    damage: &Damage,
) -> Option<Value> {
    let old = upgrade.old_resource(version)?;
    let mut changed = witness.clone();
    let mut place = &mut changed;
    for segment in damage.path.get(..path.len())? {
        place = match segment {
            PathSegment::Key(key) => place.get_mut(key)?,
            PathSegment::Index(index) => place.get_mut(*index)?,
        };
    }
    place.as_object_mut()?.insert("metadata".to_owned(), json!(5));
    let before = pipeline::create(&old, upgrade.server, &changed);
    let is_taken = before.accepted() == Some(true) && !before.loses();
    is_taken.then_some(changed)
}

/// What can no longer be done with a witness, given all its errors. If the server cannot correlate old and new values,
/// as with the items of a list that became a map, it does not ratchet, and edits elsewhere are rejected too.
fn blocks(upgrade: &Upgrade<'_>, version: &str, witness: &Value, damage: &Damage) -> Blocked {
    if damage.effect != Effect::Rejected {
        return Blocked::Read;
    }
    let of_the_parent = |name: &str| keywords::find(name).is_some_and(|keyword| keyword.is_of_the_parent);
    let (mut everywhere, mut at_the_parent) = (!upgrade.server.ratchets(), of_the_parent(&damage.keyword));
    let mut in_a_list = false;
    if let (Some(old), Some(new)) = (upgrade.old_resource(version), upgrade.new_resource(version)) {
        let stored = pipeline::create(&old, upgrade.server, witness).object;
        let again = pipeline::create(&new, upgrade.server, &stored);
        let wrong: Vec<_> = again.write_errors().collect();
        if wrong.is_empty() {
            // What is stored stays valid, and the manifest that it came from need not be.
            let sent = pipeline::create(&new, upgrade.server, witness);
            return if sent.write_errors().next().is_some() { Blocked::Create } else { Blocked::Apply };
        }
        // A rule with an `optionalOldSelf` may refuse new objects alone; without ratcheting an update shows that.
        let unratcheted = pipeline::Server { minor: 29 };
        let updated = pipeline::update(&new, unratcheted, &stored, &stored);
        if updated.errors.is_empty() && updated.unevaluated.is_empty() {
            return Blocked::Create;
        }
        let mut edited = stored.clone();
        if let Some(metadata) = edited.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("labels".to_owned(), json!({"edited": "elsewhere"}));
        }
        everywhere |= !pipeline::update(&new, upgrade.server, &stored, &edited).errors.is_empty();
        at_the_parent |= wrong.iter().any(|error| of_the_parent(error.keyword));
        in_a_list = wrong.iter().any(|error| is_in_uncorrelated_list(new.schema, &error.path));
    }
    match (everywhere, in_a_list, at_the_parent) {
        (true, ..) => Blocked::EditOfObject,
        (false, true, _) => Blocked::EditOfList,
        (false, false, true) => Blocked::EditOfParent,
        (false, false, false) => Blocked::EditOfField,
    }
}

/// Returns whether the path leads through an item of a list whose items the server cannot correlate: an edit of any item then
/// validates all of them anew.
fn is_in_uncorrelated_list(schema: &Schema, path: &[PathSegment]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let inner = match first {
        PathSegment::Index(_) if schema.list_type != Some(ListType::Map) => return true,
        PathSegment::Index(_) => schema.items.as_deref(),
        PathSegment::Key(key) => schema.properties.get(key).or_else(|| schema.additional_schema()),
    };
    inner.is_some_and(|inner| is_in_uncorrelated_list(inner, rest))
}
