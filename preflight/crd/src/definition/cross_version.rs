//! Conversion None only rewrites apiVersion: what one version keeps and another does not name is lost on the way between
//! them. Losses that the old definition had already are not told again.

use std::collections::BTreeMap;

use super::change::{Blocked, Changes, Place, Proof, Safety};
use super::{Crd, Strategy, Upgrade};
use crate::schema::contain::{self, Difference, Effect, SchemaStep};
use crate::schema::pipeline::Resource;

/// A way that an object takes between two versions.
type Way<'a> = (&'a str, &'a str);

/// What happens on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Objects are read in the other version; they lose data when a client of it writes them back.
    Read,
    /// Objects are stored in the other version; every write loses data.
    Stored,
}

/// What becomes of objects on all ways between versions.
pub(super) fn compare(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    if upgrade.new.strategy() != Strategy::None {
        return;
    }
    let stored = upgrade.old.stored_versions();
    let before_ways =
        if upgrade.old.strategy() == Strategy::None { ways(&upgrade.old, &stored) } else { BTreeMap::new() };
    for (way, used) in ways(&upgrade.new, &stored) {
        let (from, to) = way;
        let known = before_ways.get(&way).is_some_and(|before| *before >= used);
        // Only objects that the old definition let in can lose anything: a version that is new has none, and a field that
        // is new is in none.
        let (Some(source), Some(target)) = (upgrade.old_resource(from), upgrade.new_resource(to)) else { continue };
        let before = upgrade.old_resource(to).filter(|_| known);
        let is_unchanged = before.is_some_and(|before| before.schema.digest == target.schema.digest);
        if is_unchanged || source.schema.digest == target.schema.digest {
            continue;
        }
        let mut told = before.map(|before| losses(upgrade, &source, &before)).unwrap_or_default();
        // What the version itself no longer keeps is told there.
        if let Some(after) = upgrade.new_resource(from).filter(|after| after.schema.digest != source.schema.digest) {
            for (place, is_proved) in losses(upgrade, &source, &after) {
                *told.entry(place).or_default() |= is_proved;
            }
        }
        let differences = converted(upgrade, &source, &target).into_iter();
        for difference in differences.filter(|difference| !is_told(&told, difference)) {
            loss(way, difference, changes);
        }
        if !known {
            let change = Change {
                used,
                is_new: !before_ways.contains_key(&way),
                was_converted: upgrade.old.strategy() == Strategy::Webhook && upgrade.old.version(to).is_some(),
                is_served: upgrade.new.version(to).is_some_and(|version| version.served),
            };
            rejections(way, change, &contain::compare(&source, &target, upgrade.server), changes);
        }
    }
}

/// A difference that is not safe, by its place and keyword, with whether it is proved.
type Losses = BTreeMap<(Vec<SchemaStep>, &'static str), bool>;

fn losses(upgrade: &Upgrade<'_>, source: &Resource<'_>, target: &Resource<'_>) -> Losses {
    let differences = converted(upgrade, source, target).into_iter();
    differences
        .filter(|difference| difference.proof != contain::Proof::Safe)
        .map(|it| ((it.path, it.keyword), matches!(it.proof, contain::Proof::Breaking { .. })))
        .collect()
}

/// What was only perhaps so before is news once it is proved.
fn is_told(told: &Losses, difference: &Difference) -> bool {
    let is_proved = matches!(difference.proof, contain::Proof::Breaking { .. });
    told.get(&(difference.path.clone(), difference.keyword)).is_some_and(|was_proved| *was_proved || !is_proved)
}

/// What conversion drops: nothing is validated on the way, whatever the other version asks of a write.
fn converted(upgrade: &Upgrade<'_>, source: &Resource<'_>, target: &Resource<'_>) -> Vec<Difference> {
    let schema = target.schema.without_constraints(source.schema);
    contain::compare(source, &Resource { schema: &schema, ..*target }, upgrade.server)
}

/// Every way between versions: clients write in a served version, objects are stored in the storage version, and are read
/// in served versions from those in which they are stored.
fn ways<'a>(crd: &Crd<'a>, stored: &[&'a str]) -> BTreeMap<Way<'a>, Use> {
    let mut ways = BTreeMap::new();
    for from in &crd.versions {
        for to in &crd.versions {
            let written = from.served && to.storage;
            let read = (from.storage || stored.contains(&from.name)) && to.served;
            if from.name != to.name && (written || read) {
                ways.insert((from.name, to.name), if written { Use::Stored } else { Use::Read });
            }
        }
    }
    ways
}

/// Data that does not arrive.
fn loss((from, to): Way<'_>, difference: Difference, changes: &mut Changes) {
    // What another default fills in is told where it is lost.
    if difference.keyword == "default" {
        return;
    }
    let (proof, witness) = match difference.proof {
        contain::Proof::Breaking { witness, damage } if damage.effect == Effect::Pruned => {
            let (effect, blocks) = (damage.effect, Some(Blocked::Read));
            (Proof::Breaking { effect, blocks, damage: Some(damage) }, Some(witness))
        }
        contain::Proof::Unknown { keyword, reason } => (Proof::Unknown { keyword, reason }, None),
        _ => return,
    };
    let values = [Some(from.into()), Some(to.into())];
    changes.push(Some(to), Place::Schema(difference.path), "crossVersionLoss", values, proof).witness = witness;
}

/// How a way came to be one on which nothing is converted.
#[derive(Clone, Copy, Debug)]
struct Change {
    used: Use,
    /// Objects that were there before go a way that they did not go.
    is_new: bool,
    /// A webhook converted them before.
    was_converted: bool,
    /// Clients can use the version at its end.
    is_served: bool,
}

impl Change {
    /// Whether old objects suffer from a difference that is between the versions of the way: where no webhook converts them
    /// any more, from any that refuses them; where a version is new, from one of types, as clients of it cannot read them.
    fn harms(self, difference: &Difference) -> bool {
        let (is_refused, is_of_types) = match &difference.proof {
            contain::Proof::Breaking { damage, .. } => (damage.effect == Effect::Rejected, damage.keyword == "type"),
            _ => (true, ["type", "x-kubernetes-int-or-string"].contains(&difference.keyword)),
        };
        self.is_new && is_refused && (self.was_converted || is_of_types)
    }
}

/// One change for all that is valid in one version and not in the other: it takes a write in the other to be refused,
/// unless it cannot even be read there. What the defaults of the storage version change, they change on every read.
fn rejections((from, to): Way<'_>, change: Change, differences: &[Difference], changes: &mut Changes) {
    let effect = |difference: &Difference| match &difference.proof {
        contain::Proof::Breaking { damage, .. } => Some(damage.effect),
        _ => None,
    };
    let is_harmed = |it: &&Difference| change.is_served && effect(it).is_some_and(|effect| effect != Effect::Pruned);
    let is_altered = |it: &&Difference| change.used == Use::Stored && effect(it) == Some(Effect::Altered);
    let is_open = |it: &&Difference| change.is_served && matches!(it.proof, contain::Proof::Unknown { .. });
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
    let told = changes.push(Some(to), place, "crossVersionRejection", values, proof);
    if let contain::Proof::Breaking { witness, .. } = &first.proof {
        told.witness = Some(witness.clone());
    }
}

/// A client that knows the other version alone cannot decode an object of another type.
fn breaking_between(first: &Difference) -> Proof {
    let contain::Proof::Breaking { damage, .. } = &first.proof else { return Proof::unknown(first.keyword) };
    let (effect, blocks) = match damage.keyword.as_str() {
        "type" => (Effect::Unreadable, Blocked::Read),
        _ => (damage.effect, Blocked::Create),
    };
    Proof::Breaking { effect, blocks: Some(blocks), damage: Some(damage.clone()) }
}
