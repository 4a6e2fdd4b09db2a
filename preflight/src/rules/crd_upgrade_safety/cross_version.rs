//! Conversion None only rewrites apiVersion: what one version keeps and another does not name is lost on the way between
//! them. Losses that the old definition had already are not reported again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Upgrade;
use super::crd::{Crd, Strategy};
use super::words;
use crate::finding::{Finding, Verdict};
use crate::rule::Settings;
use crate::schema::contain::{Difference, Effect, Proof, SchemaStep, compare};
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

pub(super) fn check(upgrade: &Upgrade<'_>, _settings: &Settings, findings: &mut Vec<Finding>) {
    if upgrade.new.strategy() != Strategy::None {
        return;
    }
    let stored = upgrade.old.stored_versions();
    let known = if upgrade.old.strategy() == Strategy::None { ways(&upgrade.old, &stored) } else { BTreeMap::new() };
    for (way, used) in ways(&upgrade.new, &stored) {
        let (from, to) = way;
        let known = known.get(&way).is_some_and(|before| *before >= used);
        let (Some(source), Some(target)) = (upgrade.new_resource(from), upgrade.new_resource(to)) else { continue };
        if source.schema.digest == target.schema.digest {
            continue;
        }
        let before = match (upgrade.old_resource(from), upgrade.old_resource(to)) {
            (Some(source), Some(target)) if known => Some((source, target)),
            _ => None,
        };
        let unchanged = before.is_some_and(|(old_source, old_target)| {
            old_source.schema.digest == source.schema.digest && old_target.schema.digest == target.schema.digest
        });
        if unchanged {
            continue;
        }
        let key = |difference: &Difference| (difference.path.clone(), difference.keyword);
        let old: BTreeSet<(Vec<SchemaStep>, &str)> = before
            .map(|(source, target)| {
                let differences = converted(upgrade, &source, &target);
                differences.iter().filter(|difference| difference.proof != Proof::Safe).map(key).collect()
            })
            .unwrap_or_default();
        let differences = converted(upgrade, &source, &target);
        let fresh = differences.iter().filter(|it| !old.contains(&key(it)));
        findings.extend(fresh.filter_map(|difference| loss(upgrade, way, difference)));
        if !known {
            findings.extend(rejections(upgrade, way, used, &compare(&source, &target, upgrade.server)));
        }
    }
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
    finding = finding.values(Some(from.into()), Some(to.into()));
    Some(finding.remedy(format!(
        "name the field in the schema of \"{to}\" too, convert with a webhook, or do not serve and store both versions"
    )))
}

/// One line for all that is valid in one version and not in the other: it takes a write in the other to be refused. What
/// the defaults of the storage version change, they change on every read.
fn rejections(upgrade: &Upgrade<'_>, (from, to): Way<'_>, used: Use, differences: &[Difference]) -> Option<Finding> {
    let served = upgrade.new.version(to).is_some_and(|version| version.served);
    let effect = |difference: &&Difference| match &difference.proof {
        Proof::Breaking { damage, .. } => Some(damage.effect),
        _ => None,
    };
    let altered = differences.iter().find(|it| used == Use::Stored && effect(it) == Some(Effect::Altered));
    let mut harmed =
        differences.iter().filter(|it| effect(it).is_some_and(|effect| effect != Effect::Pruned) && served);
    let (first, verdict, message) = match (altered, harmed.next()) {
        (Some(first), _) => {
            let message = format!(
                "unable to determine if objects of version \"{from}\" may change: they are stored in version \"{to}\", which \
                 has other defaults: {} ({})",
                words::rooted(&first.path),
                first.keyword
            );
            (first, Verdict::Unknown, message)
        }
        (None, Some(first)) => {
            let more = match harmed.count() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let message = format!(
                "an object of version \"{from}\" may be refused or changed when it is written in version \"{to}\": {} ({}){more}",
                words::rooted(&first.path),
                first.keyword
            );
            (first, Verdict::Change, message)
        }
        (None, None) => return None,
    };
    let mut finding = upgrade.finding_in("crossVersionRejection", verdict, to, &["schema"], message);
    if let Proof::Breaking { witness, .. } = &first.proof {
        finding.witness = Some(Arc::new(witness.clone()));
    }
    Some(finding.values(Some(from.into()), Some(to.into())))
}
