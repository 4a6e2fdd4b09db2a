//! Conversion strategy None only rewrites apiVersion: a field that the target version does not name is lost. Losses
//! that the old definition already had are not reported again.

use std::collections::BTreeMap;

use super::change::{Blocked, CROSS_VERSION_LOSS, Changes, Place, Proof, Safety};
use super::{Crd, Strategy, Upgrade};
use crate::schema::contain::{self, Difference, Effect, SchemaStep};
use crate::schema::pipeline::Resource;

/// A conversion from one version to another.
type Conversion<'a> = (&'a str, &'a str);

/// When a conversion happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Objects are read in the target version; a client that writes them back loses data.
    Read,
    /// Objects are stored in the target version; every write loses data.
    Stored,
}

/// What happens to objects in every conversion.
pub(super) fn compare(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    if upgrade.new.strategy() != Strategy::None {
        return;
    }
    let stored = upgrade.old.stored_versions();
    let conversions_before =
        if upgrade.old.strategy() == Strategy::None { conversions(&upgrade.old, &stored) } else { BTreeMap::new() };
    for (conversion, used) in conversions(&upgrade.new, &stored) {
        let (from, to) = conversion;
        let known = conversions_before.get(&conversion).is_some_and(|before| *before >= used);
        // Only objects that the old definition accepted can lose data: a new version has no objects yet, and no object
        // has a new field yet.
        let (Some(source), Some(target)) = (upgrade.old_resource(from), upgrade.new_resource(to)) else { continue };
        let before = upgrade.old_resource(to).filter(|_| known);
        let is_unchanged = before.is_some_and(|before| before.schema.digest == target.schema.digest);
        if is_unchanged || source.schema.digest == target.schema.digest {
            continue;
        }
        let mut reported = Losses::new();
        for before in targets_before(upgrade, conversion, used) {
            note(&mut reported, losses(upgrade, &source, &before));
        }
        // What the version itself no longer keeps is reported at its schema.
        if let Some(after) = upgrade.new_resource(from).filter(|after| after.schema.digest != source.schema.digest) {
            note(&mut reported, losses(upgrade, &source, &after));
        }
        let differences = converted(upgrade, &source, &target).into_iter();
        for difference in differences.filter(|difference| !is_reported(&reported, difference)) {
            loss(conversion, difference, changes);
        }
        let change = Change {
            used,
            is_new: !known && !conversions_before.contains_key(&conversion),
            was_converted: upgrade.old.strategy() == Strategy::Webhook && upgrade.old.version(to).is_some(),
            is_served: upgrade.new.version(to).is_some_and(|version| version.served),
        };
        let mut differences = upgrade.compare(&source, &target);
        if !change.was_converted {
            let seen = retyped_before(upgrade, &source, to);
            differences.retain(|difference| !is_of_types(difference) || !seen.contains(&difference.path));
        }
        if let Some(before) = before {
            // Changes of a field that the version had are reported at its own schema.
            differences.retain(|it| is_of_types(it) && SchemaStep::follow(&it.path, before.schema).is_none());
        }
        rejections(conversion, change, &differences, changes);
    }
}

/// Returns the old versions that an object passed through, so that fields they lack were lost before: the storage version
/// and, if clients only read it there, the target version.
fn targets_before<'u>(upgrade: &'u Upgrade<'_>, (from, to): Conversion<'_>, used: Use) -> Vec<Resource<'u>> {
    if upgrade.old.strategy() != Strategy::None {
        return Vec::new();
    }
    let storage = upgrade.old.versions.iter().find(|version| version.storage).map(|version| version.name);
    // An object stored in another version was not converted to the storage version.
    let is_stored_elsewhere = upgrade.old.stored_versions().contains(&from);
    let written = storage.filter(|storage| *storage != from && !is_stored_elsewhere);
    let was_served = upgrade.old.version(to).is_some_and(|version| version.served);
    let read = Some(to).filter(|_| used == Use::Read && was_served);
    written.into_iter().chain(read).filter_map(|version| upgrade.old_resource(version)).collect()
}

/// The nodes at which clients of the version read values of another type already.
fn retyped_before(upgrade: &Upgrade<'_>, source: &Resource<'_>, to: &str) -> Vec<Vec<SchemaStep>> {
    let was_served = upgrade.old.strategy() == Strategy::None && upgrade.old.version(to).is_some_and(|it| it.served);
    let Some(before) = upgrade.old_resource(to).filter(|_| was_served) else { return Vec::new() };
    let differences = upgrade.compare(source, &before).into_iter();
    differences.filter(is_of_types).map(|difference| difference.path).collect()
}

/// Returns whether values are of another type, so that clients of the version cannot decode them.
fn is_of_types(difference: &Difference) -> bool {
    match &difference.proof {
        contain::SchemaProof::Breaking { damage, .. } => damage.keyword == "type",
        contain::SchemaProof::Unknown { .. } => ["type", "x-kubernetes-int-or-string"].contains(&difference.keyword),
        contain::SchemaProof::Safe => false,
    }
}

/// Differences that are not safe, by node and keyword, with whether each is proved.
type Losses = BTreeMap<(Vec<SchemaStep>, &'static str), bool>;

fn note(known: &mut Losses, losses: Losses) {
    for (place, is_proved) in losses {
        *known.entry(place).or_default() |= is_proved;
    }
}

fn losses(upgrade: &Upgrade<'_>, source: &Resource<'_>, target: &Resource<'_>) -> Losses {
    let differences = converted(upgrade, source, target).into_iter();
    differences
        .filter(|difference| difference.proof != contain::SchemaProof::Safe)
        .map(|it| ((it.path, it.keyword), matches!(it.proof, contain::SchemaProof::Breaking { .. })))
        .collect()
}

/// Whether a loss was there before. One that was only possible before is news once it is proved. Where a field was lost,
/// everything in it was.
fn is_reported(reported: &Losses, difference: &Difference) -> bool {
    let is_proved = matches!(difference.proof, contain::SchemaProof::Breaking { .. });
    let covers = |path: &[SchemaStep], keyword| {
        reported.get(&(path.to_vec(), keyword)).is_some_and(|was_proved| *was_proved || !is_proved)
    };
    let path = difference.path.as_slice();
    covers(path, difference.keyword) || (0..path.len()).any(|length| covers(&path[..length], "existingFieldRemoval"))
}

/// What conversion drops. Conversion does not validate, whatever the target version requires of a write.
fn converted(upgrade: &Upgrade<'_>, source: &Resource<'_>, target: &Resource<'_>) -> Vec<Difference> {
    let schema = target.schema.without_constraints(source.schema);
    upgrade.compare(source, &Resource { schema: &schema, scale: None, ..*target })
}

/// Every conversion: clients write in a served version, objects are stored in the storage version, and clients read
/// them in served versions.
fn conversions<'a>(crd: &Crd<'a>, stored: &[&'a str]) -> BTreeMap<Conversion<'a>, Use> {
    let mut conversions = BTreeMap::new();
    for from in &crd.versions {
        for to in &crd.versions {
            let written = from.served && to.storage;
            let read = (from.storage || stored.contains(&from.name)) && to.served;
            if from.name != to.name && (written || read) {
                conversions.insert((from.name, to.name), if written { Use::Stored } else { Use::Read });
            }
        }
    }
    conversions
}

/// Adds the data that a conversion loses.
fn loss((from, to): Conversion<'_>, difference: Difference, changes: &mut Changes) {
    // Values from a changed default are reported where they are lost.
    if difference.keyword == "default" {
        return;
    }
    let (proof, witness) = match difference.proof {
        contain::SchemaProof::Breaking { witness, damage } if damage.effect == Effect::Pruned => {
            let (effect, blocks) = (damage.effect, Some(Blocked::Read));
            (Proof::Breaking { effect, blocks, damage: Some(damage) }, Some(witness))
        }
        contain::SchemaProof::Unknown { keyword, reason } => (Proof::Unknown { keyword, reason }, None),
        _ => return,
    };
    let values = [Some(from.into()), Some(to.into())];
    changes.push(Some(to), Place::Schema(difference.path), CROSS_VERSION_LOSS, values, proof).witness = witness;
}

/// Why a conversion uses strategy None now.
#[derive(Clone, Copy, Debug)]
struct Change {
    used: Use,
    /// Existing objects did not go through this conversion before.
    is_new: bool,
    /// A webhook converted them before.
    was_converted: bool,
    /// The target version is served.
    is_served: bool,
}

impl Change {
    /// Whether a difference between the two versions affects existing objects. If a webhook no longer converts them,
    /// every rejection does; otherwise only a difference of types does, since clients of the version cannot decode the
    /// values.
    fn harms(self, difference: &Difference) -> bool {
        let is_refused = match &difference.proof {
            contain::SchemaProof::Breaking { damage, .. } => damage.effect == Effect::Rejected,
            _ => true,
        };
        is_refused && (is_of_types(difference) || (self.is_new && self.was_converted))
    }
}

/// One change for everything that is valid in one version and not in the other. Only a write in the other version is
/// rejected, unless the object cannot even be read there. Defaults of the storage version apply on every read.
fn rejections((from, to): Conversion<'_>, change: Change, differences: &[Difference], changes: &mut Changes) {
    let effect = |difference: &Difference| match &difference.proof {
        contain::SchemaProof::Breaking { damage, .. } => Some(damage.effect),
        _ => None,
    };
    let is_harmed = |it: &&Difference| change.is_served && effect(it).is_some_and(|effect| effect != Effect::Pruned);
    let is_altered = |it: &&Difference| change.used == Use::Stored && effect(it) == Some(Effect::Altered);
    let is_open = |it: &&Difference| change.is_served && matches!(it.proof, contain::SchemaProof::Unknown { .. });
    let harmed: Vec<&Difference> = differences.iter().filter(is_harmed).collect();
    let breaking: Vec<&Difference> = harmed.iter().copied().filter(|it| change.harms(it)).collect();
    let (first, count, proof) = if let Some(first) = breaking.first() {
        (*first, breaking.len(), breaking_between(first))
    } else if let Some(first) = differences.iter().find(is_altered) {
        (first, 1, Proof::unknown(first.keyword))
    } else if let Some(first) = differences.iter().filter(is_open).find(|it| change.harms(it)) {
        (first, 1, Proof::unknown(first.keyword))
    } else if let Some(first) = harmed.first() {
        (*first, harmed.len(), Proof::Safe(Safety::OnlyNewWrites))
    } else {
        return;
    };
    let (path, keyword) = (first.path.clone(), first.keyword);
    let place = Place::Between { from: from.to_owned(), path, keyword, more: count - 1 };
    let values = [Some(from.into()), Some(to.into())];
    let added = changes.push(Some(to), place, "crossVersionRejection", values, proof);
    if let contain::SchemaProof::Breaking { witness, .. } = &first.proof {
        added.witness = Some(witness.clone());
    }
}

/// A client that knows only the other version cannot decode a value of another type.
fn breaking_between(first: &Difference) -> Proof {
    let contain::SchemaProof::Breaking { damage, .. } = &first.proof else { return Proof::unknown(first.keyword) };
    let (effect, blocks) = match damage.keyword.as_str() {
        "type" => (Effect::Unreadable, Blocked::Read),
        _ => (damage.effect, Blocked::Create),
    };
    Proof::Breaking { effect, blocks: Some(blocks), damage: Some(damage.clone()) }
}
