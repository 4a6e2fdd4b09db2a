//! What each version offers besides its objects: subresources, field selectors, printer columns; and whether unknown
//! fields are kept.

use serde_json::{Value, json};

use super::change::{Blocked, Changes, Proof, Safety};
use super::lifecycle::missing;
use super::{Upgrade, Version};
use crate::schema::contain::{Effect, SchemaProof, object_with, unscalable_object};
use crate::schema::pipeline::{self, Resource};

/// Compares it version by version.
pub(super) fn compare(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    preserve_unknown_fields(upgrade, changes);
    for old in &upgrade.old.versions {
        let Some(new) = upgrade.new.version(old.name) else { continue };
        let first = changes.found.len();
        status(upgrade, old, new, changes);
        scale(upgrade, old, new, changes);
        listed(old, new, changes);
        if !(old.served && new.served) {
            changes.found[first..].iter_mut().for_each(Changes::moot);
        }
    }
}

fn preserve_unknown_fields(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    let (before, after) = (upgrade.old.preserves_unknown_fields(), upgrade.new.preserves_unknown_fields());
    if before == after {
        return;
    }
    let stored = upgrade.old.stored_versions();
    let meets = |version: &&Version<'_>| version.served || stored.contains(&version.name);
    let versions = || upgrade.new.versions.iter().filter(meets);
    let losses: Vec<SchemaProof> = versions().filter(|_| before).flat_map(|version| losses(upgrade, version)).collect();
    let is_open = |version: &Version<'_>| {
        let flag = version.schema.and_then(|schema| schema.get("x-kubernetes-preserve-unknown-fields"));
        flag == Some(&Value::Bool(true))
    };
    let is_open = versions().all(is_open);
    let is_moot = after || (losses.is_empty() && is_open);
    let witness = losses.iter().find_map(|proof| match proof {
        SchemaProof::Breaking { witness, .. } => Some(witness.clone()),
        _ => None,
    });
    let values = [Some(before.into()), Some(after.into())];
    let proof = match (is_moot, &witness, is_open) {
        (false, None, true) => Proof::unknown("preserveUnknownFields"),
        _ => Proof::breaking(Effect::Pruned, None),
    };
    let change = changes.whole("preserveUnknownFields", &["spec", "preserveUnknownFields"], values, proof);
    change.witness = witness;
    if is_moot {
        Changes::moot(change);
    }
}

/// Returns the proofs that objects of the version lose a field, and those that do not rule it out.
fn losses(upgrade: &Upgrade<'_>, version: &Version<'_>) -> Vec<SchemaProof> {
    let (old, new) = (upgrade.old_resource(version.name), upgrade.new_resource(version.name));
    let (Some(old), Some(new)) = (old, new) else { return Vec::new() };
    let proofs = upgrade.compare(&old, &new).into_iter().map(|difference| difference.proof);
    let may_lose = |proof: &SchemaProof| match proof {
        SchemaProof::Breaking { damage, .. } => damage.effect == Effect::Pruned,
        SchemaProof::Unknown { .. } => true,
        SchemaProof::Safe => false,
    };
    proofs.filter(may_lose).collect()
}

fn status(upgrade: &Upgrade<'_>, old: &Version<'_>, new: &Version<'_>, changes: &mut Changes) {
    const KEYWORD: &str = "statusSubresource";
    let keys = ["subresources", "status"];
    if old.status && !new.status {
        let proof = Proof::breaking(Effect::Rejected, Some(Blocked::Edit));
        changes.in_version(old.name, KEYWORD, &keys, [Some(json!({})), None], proof);
    } else if !old.status && new.status {
        let (proof, witness) = status_added(upgrade, old.name);
        changes.in_version(old.name, KEYWORD, &keys, [None, Some(json!({}))], proof).witness = witness;
    }
}

/// With the subresource, a create or an ordinary update ignores `status`. A client that writes it there loses it if the
/// schema keeps any status, and is rejected if the schema requires it.
fn status_added(upgrade: &Upgrade<'_>, version: &str) -> (Proof, Option<Value>) {
    let resources = upgrade.old_resource(version).zip(upgrade.new_resource(version));
    let object = |field: &str| resources.map_or(Ok(None), |(old, _)| object_with(&old, &[field], None));
    let with_status = object("status");
    let example = with_status.clone().ok().flatten().or_else(|| object("metadata").ok().flatten());
    let example = example.filter(|object| {
        resources.is_some_and(|(old, _)| pipeline::create(&old, upgrade.server, object).accepted() == Some(true))
    });
    let refused = example.as_ref().zip(resources).is_some_and(|(object, (_, new))| {
        let bare = Resource { status: false, ..new };
        let errors = |resource| pipeline::create(resource, upgrade.server, object).errors;
        errors(&bare).is_empty() && !errors(&new).is_empty()
    });
    let breaking = |effect| Proof::breaking(effect, Some(Blocked::Create));
    match (with_status, refused) {
        (_, true) => (breaking(Effect::Rejected), example),
        (Ok(Some(_)), false) => (breaking(Effect::Pruned), example),
        (Err(keyword), false) => (Proof::unknown(&keyword), None),
        (Ok(None), false) => (Proof::Safe(Safety::NoObject), None),
    }
}

fn scale(upgrade: &Upgrade<'_>, old: &Version<'_>, new: &Version<'_>, changes: &mut Changes) {
    const KEYWORD: &str = "scaleSubresource";
    let keys = ["subresources", "scale"];
    match (old.scale, new.scale) {
        (Some(before), None) => {
            let proof = Proof::breaking(Effect::Rejected, Some(Blocked::Edit));
            changes.in_version(old.name, KEYWORD, &keys, [Some(before.clone()), None], proof);
        }
        (None, Some(after)) => {
            let values = [None, Some(after.clone())];
            let (proof, witness) = unscalable(upgrade, old.name, after);
            let change = changes.in_version(old.name, KEYWORD, &keys, values, proof);
            change.witness = witness;
            if matches!(change.proof, Proof::Safe(_)) {
                Changes::moot(change);
            }
        }
        (Some(before), Some(after)) => {
            for key in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
                let [was, is] = [before, after].map(|scale| scale.get(key).filter(|path| path.as_str() != Some("")));
                if was != is {
                    let keys = ["subresources", "scale", key];
                    let values = [was.cloned(), is.cloned()];
                    let validated = is.map(|path| json!({key: path}));
                    let refused = validated.map(|scale| unscalable(upgrade, old.name, &scale));
                    // A changed path moves what autoscalers read and write; an added one only offers more.
                    let (proof, witness) = match refused {
                        Some(refused @ (Proof::Breaking { .. }, _)) => refused,
                        Some(refused) if was.is_none() => refused,
                        refused => match (scaled_elsewhere(upgrade, old.name, key, [was, is]), refused) {
                            ((Proof::Safe(_), _), Some(open @ (Proof::Unknown { .. }, _))) => open,
                            (moved, _) => moved,
                        },
                    };
                    let change = changes.in_version(old.name, KEYWORD, &keys, values, proof);
                    change.witness = witness;
                    if was.is_none() && matches!(change.proof, Proof::Safe(_)) {
                        Changes::moot(change);
                    }
                }
            }
        }
        (None, None) => {}
    }
}

/// With the subresource, the server validates its fields on every write, without ratcheting: an object with other values
/// can no longer be written at all.
fn unscalable(upgrade: &Upgrade<'_>, version: &str, scale: &Value) -> (Proof, Option<Value>) {
    let Some(old) = upgrade.old_resource(version) else { return (Proof::unknown("scaleSubresource"), None) };
    match unscalable_object(&old, scale, upgrade.server) {
        Ok(None) => (Proof::Safe(Safety::NoObject), None),
        Ok(Some(object)) => (Proof::breaking(Effect::Rejected, Some(Blocked::EditOfObject)), Some(object)),
        Err(keyword) => (Proof::unknown(&keyword), None),
    }
}

/// What autoscalers read and write moves to another field: an object that holds something in the one and nothing in the
/// other, or something else, scales otherwise than before.
fn scaled_elsewhere(
    upgrade: &Upgrade<'_>,
    version: &str,
    key: &str,
    [was, is]: [Option<&Value>; 2],
) -> (Proof, Option<Value>) {
    let path = |path: Option<&Value>| -> Option<Vec<String>> {
        let path = path?.as_str()?.strip_prefix('.')?;
        // The server takes names and dots only.
        path.split('.').map(|name| (!name.is_empty() && !name.contains('[')).then(|| name.to_owned())).collect()
    };
    let (Some(before), Some(old)) = (path(was), upgrade.old_resource(version)) else {
        return (Proof::unknown(key), None);
    };
    let after = path(is).unwrap_or_default();
    let [before, after]: [Vec<&str>; 2] = [&before, &after].map(|path| path.iter().map(String::as_str).collect());
    let held = |object: &Value, path: &[&str]| {
        let start = Some(object).filter(|_| !path.is_empty());
        path.iter().fold(start, |value, name| value?.get(name)).cloned()
    };
    match object_with(&old, &before, Some(&after).filter(|path| !path.is_empty()).map(Vec::as_slice)) {
        Ok(None) => (Proof::Safe(Safety::NoObject), None),
        Ok(Some(object)) => {
            // Status is not written with the object, and rules may tie the fields together.
            let is_accepted =
                key != "specReplicasPath" || pipeline::create(&old, upgrade.server, &object).accepted() == Some(true);
            if is_accepted && held(&object, &before) != held(&object, &after) {
                (Proof::breaking(Effect::Altered, Some(Blocked::Read)), Some(object))
            } else {
                (Proof::unknown(key), None)
            }
        }
        Err(keyword) => (Proof::unknown(&keyword), None),
    }
}

/// Field selectors and printer columns that were removed or added.
fn listed(old: &Version<'_>, new: &Version<'_>, changes: &mut Changes) {
    let safe = || Proof::Safe(Safety::NotUsed);
    let keyword = "selectableFields";
    for field in missing(&old.selectable_fields, &new.selectable_fields) {
        let proof = Proof::breaking(Effect::Rejected, Some(Blocked::Read));
        changes.in_version(old.name, keyword, &[keyword], [Some(field.into()), None], proof);
    }
    for field in missing(&new.selectable_fields, &old.selectable_fields) {
        Changes::moot(changes.in_version(old.name, keyword, &[keyword], [None, Some(field.into())], safe()));
    }
    let keyword = "additionalPrinterColumns";
    let gone = missing(&old.printer_columns, &new.printer_columns);
    if !gone.is_empty() {
        changes.in_version(old.name, keyword, &[keyword], [Some(json!(gone)), None], safe());
    }
    let come = missing(&new.printer_columns, &old.printer_columns);
    if !come.is_empty() {
        Changes::moot(changes.in_version(old.name, keyword, &[keyword], [None, Some(json!(come))], safe()));
    }
}
