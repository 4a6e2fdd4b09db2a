//! Stored objects: streamed page by page through the pipeline of the new definition, and counted by the schema node at
//! which they fail. This turns "an object could" into "these three do", and never proves more than that.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{Blocked, CROSS_VERSION_LOSS, Upgrade};
use pushback_crd::schema::contain::{AffectedObject, Effect, SchemaStep, affected_object, in_version};
use pushback_crd::schema::pipeline::{self, Resource};
use pushback_objects::finding::{Decided, Decider, Finding, Severity, Verdict};
use serde::Deserialize;
use serde_json::Value;

use super::checks::{self, OnlyRejects};
use super::subject::NAME;
use super::{Found, clients, usage, whole};
use crate::facts::{Change, ClusterSide, Facts, Folded, Need};
use crate::rules::counters::{count_object, entry, read_counter};
use crate::rules::planned_objects::{PlannedObject, PlannedObjects, in_version_of_list};
use crate::rules::writers;

/// Objects that fail at the node itself, or lack something in it.
const AT: &str = "at";
/// Objects that fail at the node or anywhere below.
const AT_OR_BELOW: &str = "atOrBelow";
/// Part of the state: counts by version that objects meet, and in it by node.
const TARGETS: &str = "targets";
/// Part of the state: who writes in which version.
const WRITERS: &str = "writers";

/// The setting `liveObjects`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    Report,
    Auto,
    Decide,
    Off,
}

/// Returns the stream for a finding: all objects, in the version of the finding.
pub(super) fn need(upgrade: &Upgrade<'_>, finding: &Finding) -> Option<Need> {
    let of_a_schema = checks::find(&finding.check).is_some_and(|check| check.is_of_a_schema);
    // The version to list, as the live definition serves it.
    let named =
        if finding.check == CROSS_VERSION_LOSS { finding.old.as_ref()?.as_str() } else { finding.version.as_deref() };
    let version = upgrade.old.version(named?).filter(|version| version.served)?;
    // Stored objects do not show what happens to an apply.
    let of_a_schema = of_a_schema && finding.blocks.as_deref() != Some(Blocked::Apply.as_str());
    (of_a_schema && finding.verdict != Verdict::Change).then(|| Need::Objects {
        group: upgrade.old.group().to_owned(),
        version: version.name.to_owned(),
        kind: upgrade.old.kind().to_owned(),
        resource: upgrade.old.plural().to_owned(),
        limit: 0,
    })
}

/// Adds a page to the state: who writes in which version; and for each node that a finding is about, the number of objects
/// that fail there or below, with some of their names. Other nodes are not counted: there may be as many as objects. An
/// object counts as this run leaves it.
pub(super) fn fold(
    upgrade: &Upgrade<'_>,
    version: &str,
    asked: &[&Found],
    planned: &PlannedObjects<'_>,
    state: &mut Value,
    page: &[&Value],
) {
    if asked.iter().any(|found| usage::concerns(&found.finding) || clients::concerns(&found.finding)) {
        writers::fold(upgrade.old.group(), entry(state, WRITERS), page);
    }
    clients::fold(upgrade, asked, state, page);
    whole::fold(upgrade, version, asked, planned, state, page);
    let mut wanted = Wanted::new();
    for Found { finding, .. } in asked.iter().filter(|found| is_of_a_node(&found.finding)) {
        let nodes = wanted.entry(finding.version.as_deref().unwrap_or_default()).or_default();
        let is_unreadable = nodes.entry(finding.path.as_deref().unwrap_or_default()).or_default();
        *is_unreadable |= finding.effect.as_deref() == Some(Effect::Unreadable.as_str());
    }
    let mut targets = upgrade.targets(version);
    targets.retain(|target, _| wanted.contains_key(target));
    let Some(old) = upgrade.old_resource(version).filter(|_| !targets.is_empty()) else { return };
    let by_target = entry(state, TARGETS);
    for object in page {
        let planned = planned.after(object);
        for (target, resource) in &targets {
            let judged = Judged::new((&old, resource), upgrade, object, &planned);
            let counts = entry(by_target, target);
            if !judged.is_decided {
                count_object(entry(counts, "undecided"), object, false);
            }
            if !judged.met_rules {
                count_object(entry(counts, "withoutRules"), object, false);
            }
            let of_finding = |nodes: &BTreeSet<Vec<SchemaStep>>, is_corrected: bool| {
                let mut counted = counted_nodes(nodes);
                counted.retain(|(node, _)| {
                    // Nobody can write or delete an object that cannot be read.
                    wanted[*target].get(node.as_str()).is_some_and(|is_unreadable| *is_unreadable || !is_corrected)
                });
                counted
            };
            let mut certain = of_finding(&judged.nodes, false);
            certain.extend(of_finding(&judged.corrected_nodes, true));
            let possible = of_finding(&judged.possible_nodes, false);
            let by_node = entry(counts, "nodes");
            for (node, extent) in &certain {
                count_object(entry(entry(by_node, node), extent), object, false);
            }
            for (node, extent) in possible.difference(&certain) {
                count_object(entry(entry(by_node, node), extent), object, true);
            }
        }
    }
}

/// The nodes that findings are about, by version; for each, whether objects become unreadable there.
type Wanted<'a> = BTreeMap<&'a str, BTreeMap<&'a str, bool>>;

/// Returns whether a finding is about the content of objects at a schema node.
fn is_of_a_node(finding: &Finding) -> bool {
    !usage::concerns(finding) && !clients::concerns(finding) && !whole::concerns(finding)
}

/// The nodes at which an object is affected once the run is done.
#[derive(Default)]
struct Judged {
    nodes: BTreeSet<Vec<SchemaStep>>,
    possible_nodes: BTreeSet<Vec<SchemaStep>>,
    /// Nodes at which only the present object is affected, which the run corrects or deletes.
    corrected_nodes: BTreeSet<Vec<SchemaStep>>,
    is_decided: bool,
    met_rules: bool,
}

impl Judged {
    fn new(
        sides: (&Resource<'_>, &Resource<'_>),
        upgrade: &Upgrade<'_>,
        object: &Value,
        planned: &PlannedObject,
    ) -> Self {
        let (old, new) = sides;
        let judge = |object: &Value| affected_object(old, new, upgrade.server, object);
        let now = judge(object);
        let later = match planned {
            PlannedObject::Unchanged | PlannedObject::Terminating => None,
            PlannedObject::Deleted => Some(Vec::new()),
            PlannedObject::Written(after) => in_version_of_list(upgrade, old, after),
        };
        let Some(later) = later else {
            let AffectedObject { nodes, mut possible_nodes, is_decided, met_rules } = now;
            if *planned == PlannedObject::Terminating {
                possible_nodes.extend(nodes.iter().cloned());
                return Self { possible_nodes, corrected_nodes: nodes, is_decided, met_rules, ..Self::default() };
            }
            return Self { nodes, possible_nodes, is_decided, met_rules, ..Self::default() };
        };
        let mut judged = Self { is_decided: true, met_rules: true, ..Self::default() };
        let mut common: Option<BTreeSet<Vec<SchemaStep>>> = None;
        for after in &later {
            let AffectedObject { mut nodes, possible_nodes, is_decided, met_rules } = judge(after);
            judged.possible_nodes.extend(possible_nodes);
            judged.is_decided &= is_decided;
            judged.met_rules &= met_rules;
            // The write itself may be rejected, as by a rule that compares with the old object, which then stays.
            let update = pipeline::update(new, upgrade.server, &in_version(object, new), &in_version(after, new));
            if update.accepted() != Some(true) {
                judged.possible_nodes.extend(now.nodes.iter().chain(&now.possible_nodes).cloned());
                judged.is_decided &= now.is_decided;
                judged.met_rules &= now.met_rules;
            }
            if update.accepted() == Some(false) {
                nodes.extend(now.nodes.iter().cloned());
            }
            judged.possible_nodes.extend(nodes.iter().cloned());
            common = Some(common.map_or_else(|| nodes.clone(), |known| &known & &nodes));
        }
        judged.nodes = common.unwrap_or_default();
        judged.corrected_nodes = now.nodes.into_iter().filter(|node| !judged.nodes.contains(node)).collect();
        judged
    }
}

/// Collects the nodes at which an object counts: once for each node, and once for every node above.
fn counted_nodes(affected: &BTreeSet<Vec<SchemaStep>>) -> BTreeSet<(String, &'static str)> {
    let mut nodes = BTreeSet::new();
    for node in affected {
        nodes.extend((0..=node.len()).map(|length| (field_path(&node[..length]), AT_OR_BELOW)));
        nodes.insert((field_path(node), AT));
    }
    nodes
}

/// Returns a finding with the number of affected objects. If none is affected, the setting may make it a warning.
/// `said` holds the reasons already reported for this definition: they apply to the kind, not to one finding.
pub(super) fn annotated(
    facts: &Facts,
    mode: Mode,
    change: &Change,
    found: Found,
    said: &mut BTreeSet<String>,
) -> Finding {
    let Found { mut finding, only_rejects, objects: Some(need), .. } = found else { return found.finding };
    match (facts.folded(NAME, &need), change.live.as_deref()) {
        (Some(Folded::State { state, examined, .. }), Some(live)) if usage::concerns(&finding) => {
            let version = finding.version.as_deref().unwrap_or_default();
            finding.version_use = Some(usage::of(version, live, &state[WRITERS], examined));
        }
        (Some(Folded::State { state, examined, .. }), Some(live)) if clients::concerns(&finding) => {
            clients::annotate(&mut finding, live, state, &state[WRITERS], examined);
        }
        (Some(Folded::State { state, examined, .. }), Some(_)) if whole::is_only_counted(&finding) => {
            finding.live_objects = whole::counted(&finding, state, examined);
        }
        (Some(Folded::State { state, examined, cut }), _) => {
            let seen = Seen { is_of_server: facts.cluster.side == ClusterSide::Server, examined, cut };
            count(&seen, mode, only_rejects, &mut finding, state);
        }
        // The verdict on a version that goes does not depend on its objects.
        (Some(Folded::Unable(_)), _) if usage::concerns(&finding) || clients::concerns(&finding) => {}
        (Some(Folded::Unable(reason)), _) if said.insert(reason.to_owned()) => {
            finding.message.push_str(&format!(" (its objects could not be listed: {reason})"));
        }
        (Some(Folded::Unable(_)) | None, _) => {}
    }
    finding
}

/// The objects that were examined.
struct Seen {
    is_of_server: bool,
    examined: u64,
    cut: bool,
}

fn count(seen: &Seen, mode: Mode, only_rejects: OnlyRejects, finding: &mut Finding, state: &Value) {
    let examined = seen.examined;
    let is_breaking = finding.verdict == Verdict::Breaking;
    if examined == 0 && !seen.is_of_server {
        if mode == Mode::Decide && is_breaking {
            finding.message.push_str(" (there are no objects of the kind here to decide)");
        }
        return;
    }
    let counts = &state[TARGETS][finding.version.as_deref().unwrap_or_default()];
    let live_objects = whole::counted(finding, state, examined).unwrap_or_else(|| {
        let is_of_the_node_alone = checks::find(&finding.check).is_some_and(|check| check.is_of_the_node_alone);
        let node = &counts["nodes"][finding.path.as_deref().unwrap_or_default()];
        read_counter(&node[if is_of_the_node_alone { AT } else { AT_OR_BELOW }], examined)
    });
    let affected = live_objects.affected;
    finding.live_objects = Some(live_objects);
    let is_loud = match only_rejects {
        OnlyRejects::Always => true,
        OnlyRejects::WithoutObjects => examined == 0,
        OnlyRejects::Never | OnlyRejects::BetweenScalars => false,
    };
    let (by_auto, by_decide) = (is_loud && seen.is_of_server, is_loud || is_breaking);
    let decides = match mode {
        Mode::Auto => by_auto,
        Mode::Decide => by_decide,
        Mode::Report | Mode::Off => false,
    };
    let way = match (by_auto, by_decide && seen.is_of_server) {
        (true, _) => Some("auto"),
        (false, true) => Some("decide"),
        (false, false) => None,
    };
    if affected > 0 {
        finding.passes_once_corrected = way.filter(|_| !decides);
        return;
    }
    let open = |counter: &str| counts[counter]["count"].as_u64().unwrap_or(0);
    let of_rules = if finding.check == "x-kubernetes-validations" { open("withoutRules") } else { 0 };
    match open("undecided").max(of_rules) {
        0 if seen.cut => {}
        0 if decides => {
            finding.decided = Some(Decided { by: Decider::LiveObjects, was: finding.verdict });
            finding.verdict = Verdict::Change;
            finding.severity = Severity::Warning;
            finding.message.push_str(" (no live object is affected)");
        }
        // The objects of a folder are rarely those of the cluster.
        0 => finding.passes_under = way,
        open if decides => {
            finding.message.push_str(&format!(" (not decided by live objects: {open} of them cannot be judged)"));
        }
        _ => {}
    }
}
