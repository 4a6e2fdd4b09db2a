//! Conversion None only rewrites apiVersion: what one version keeps and another does not name is lost on the way between
//! them. Losses that the old definition had already are not reported again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Upgrade;
use super::schema_change::subschemas;
use super::words;
use crate::finding::{Finding, Verdict};
use crate::rule::Settings;
use pushback_crd::definition::{Crd, Strategy};
use pushback_crd::schema::contain::{Difference, Effect, Proof, SchemaStep, compare};
use pushback_crd::schema::pipeline::Resource;

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

pub(super) fn check(upgrade: &Upgrade<'_>, _settings: &Settings, findings: &mut Vec<Finding>) {
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
        let differences = converted(upgrade, &source, &target);
        let fresh = differences.iter().filter(|difference| !is_told(&told, difference));
        findings.extend(fresh.filter_map(|difference| loss(upgrade, way, difference)));
        if !known {
            let change = Change {
                used,
                is_new: !before_ways.contains_key(&way),
                was_converted: upgrade.old.strategy() == Strategy::Webhook && upgrade.old.version(to).is_some(),
            };
            findings.extend(rejections(upgrade, way, change, &compare(&source, &target, upgrade.server)));
        }
    }
}

/// A difference that is not safe, by its place and keyword, with whether it is proved.
type Losses = BTreeMap<(Vec<SchemaStep>, &'static str), bool>;

fn losses(upgrade: &Upgrade<'_>, source: &Resource<'_>, target: &Resource<'_>) -> Losses {
    let differences = converted(upgrade, source, target).into_iter();
    differences
        .filter(|difference| difference.proof != Proof::Safe)
        .map(|it| ((it.path, it.keyword), matches!(it.proof, Proof::Breaking { .. })))
        .collect()
}

/// What was only perhaps so before is news once it is proved.
fn is_told(told: &Losses, difference: &Difference) -> bool {
    let is_proved = matches!(difference.proof, Proof::Breaking { .. });
    told.get(&(difference.path.clone(), difference.keyword)).is_some_and(|was_proved| *was_proved || !is_proved)
}

/// What conversion drops: nothing is validated on the way, whatever the other version demands of a write.
fn converted(upgrade: &Upgrade<'_>, source: &Resource<'_>, target: &Resource<'_>) -> Vec<Difference> {
    let schema = target.schema.without_demands(source.schema);
    compare(source, &Resource { schema: &schema, ..*target }, upgrade.server)
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
fn loss(upgrade: &Upgrade<'_>, (from, to): Way<'_>, difference: &Difference) -> Option<Finding> {
    // What another default fills in is told where it is lost.
    if difference.keyword == "default" {
        return None;
    }
    let path = words::rooted(&difference.path);
    let (verdict, message) = match &difference.proof {
        Proof::Breaking { damage, .. } if damage.effect == Effect::Pruned => {
            let message = format!(
                "field \"{path}\" of version \"{from}\" is lost in version \"{to}\": conversion strategy None only \
                 rewrites apiVersion"
            );
            (Verdict::Breaking, message)
        }
        Proof::Unknown { keyword, .. } => {
            let message = format!(
                "unable to determine if field \"{path}\" of version \"{from}\" can hold anything that is lost in version \
                 \"{to}\" ({keyword})"
            );
            (Verdict::Unknown, message)
        }
        _ => return None,
    };
    let mut finding = upgrade.finding_in("crossVersionLoss", verdict, to, &["schema"], message);
    finding.path = Some(words::field_path(&difference.path)).filter(|path| !path.is_empty());
    finding.effect = Some("pruned".to_owned());
    finding.blocks = Some("read".to_owned());
    if let Proof::Breaking { witness, .. } = &difference.proof {
        finding.witness = Some(Arc::new(witness.clone()));
    }
    let [source, target] = [from, to].map(|version| upgrade.schemas.new.get(version));
    let content = subschemas(source, target, &difference.path);
    finding = finding.values(Some(from.into()), Some(to.into())).bound_to(&content);
    Some(finding.remedy(format!(
        "name the field in the schema of \"{to}\" too, convert with a webhook, or do not serve and store both versions"
    )))
}

/// How a way came to be one on which nothing is converted.
#[derive(Clone, Copy, Debug)]
struct Change {
    used: Use,
    /// Objects that were there before go a way that they did not go.
    is_new: bool,
    /// A webhook converted them before.
    was_converted: bool,
}

impl Change {
    /// Whether old objects suffer from a difference that is between the versions of the way: where no webhook converts them
    /// any more, from any that refuses them; where a version is new, from one of types, as clients of it cannot read them.
    fn harms(self, difference: &Difference) -> bool {
        let (is_refused, is_of_types) = match &difference.proof {
            Proof::Breaking { damage, .. } => (damage.effect == Effect::Rejected, damage.keyword == "type"),
            _ => (true, ["type", "x-kubernetes-int-or-string"].contains(&difference.keyword)),
        };
        self.is_new && is_refused && (self.was_converted || is_of_types)
    }
}

/// One line for all that is valid in one version and not in the other: it takes a write in the other to be refused, unless
/// it cannot even be read there. What the defaults of the storage version change, they change on every read.
fn rejections(
    upgrade: &Upgrade<'_>,
    (from, to): Way<'_>,
    change: Change,
    differences: &[Difference],
) -> Option<Finding> {
    let served = upgrade.new.version(to).is_some_and(|version| version.served);
    let effect = |difference: &Difference| match &difference.proof {
        Proof::Breaking { damage, .. } => Some(damage.effect),
        _ => None,
    };
    let is_harmed = |it: &&Difference| served && effect(it).is_some_and(|effect| effect != Effect::Pruned);
    let is_altered = |it: &&Difference| change.used == Use::Stored && effect(it) == Some(Effect::Altered);
    let is_open = |it: &&Difference| served && matches!(it.proof, Proof::Unknown { .. });
    let all = || differences.iter();
    let place = |first: &Difference| format!("{} ({})", words::rooted(&first.path), first.keyword);
    let more = |count: usize| if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    let breaking: Vec<&Difference> = all().filter(is_harmed).filter(|it| change.harms(it)).collect();
    let (first, verdict, message) = if let Some(first) = breaking.first() {
        let message = format!(
            "objects of version \"{from}\" are {} in version \"{to}\", as conversion strategy None only rewrites \
             apiVersion: {}{}",
            if is_unreadable(first) { "unreadable" } else { "refused" },
            place(first),
            more(breaking.len())
        );
        (*first, Verdict::Breaking, message)
    } else if let Some(first) = all().find(is_altered) {
        let message = format!(
            "unable to determine if objects of version \"{from}\" may change: they are stored in version \"{to}\", which \
             has other defaults: {}",
            place(first)
        );
        (first, Verdict::Unknown, message)
    } else if let Some(first) = all().filter(is_open).find(|it| change.harms(it)) {
        let message = format!(
            "unable to determine if objects of version \"{from}\" are refused in version \"{to}\": {}",
            place(first)
        );
        (first, Verdict::Unknown, message)
    } else {
        let first = all().find(is_harmed)?;
        let message = format!(
            "an object of version \"{from}\" may be refused or changed when it is written in version \"{to}\": {}{}",
            place(first),
            more(all().filter(is_harmed).count())
        );
        (first, Verdict::Change, message)
    };
    let mut finding = upgrade.finding_in("crossVersionRejection", verdict, to, &["schema"], message);
    if let Proof::Breaking { witness, damage } = &first.proof {
        finding.witness = Some(Arc::new(witness.clone()));
        if verdict == Verdict::Breaking {
            let (effect, blocks) =
                if is_unreadable(first) { ("unreadable", "read") } else { (damage.effect.as_str(), "create") };
            finding.effect = Some(effect.to_owned());
            finding.blocks = Some(blocks.to_owned());
            finding.remedy = Some(format!(
                "let \"{to}\" take what \"{from}\" takes, convert with a webhook, or do not serve both versions"
            ));
        }
    }
    let [source, target] = [from, to].map(|version| upgrade.schemas.new.get(version));
    Some(finding.values(Some(from.into()), Some(to.into())).bound_to(&subschemas(source, target, &[])))
}

/// Whether a client that knows the other version alone cannot decode the object.
fn is_unreadable(difference: &Difference) -> bool {
    matches!(&difference.proof, Proof::Breaking { damage, .. } if damage.keyword == "type")
}
