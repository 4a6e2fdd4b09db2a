//! Stored objects: streamed page by page through the pipeline of the new definition, and counted by the schema node at
//! which they fail. This turns "an object could" into "these three do", and never proves more than that.

use std::collections::BTreeSet;

use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{Blocked, CROSS_VERSION_LOSS, Upgrade};
use pushback_crd::schema::contain::suffering;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::checks;
use super::subject::NAME;
use crate::facts::{ClusterSide, Facts, Folded, Need};
use crate::finding::{Finding, LiveObjects, Severity, Verdict};
use crate::object::ObjectExt;

/// Objects that fail at the node itself, or lack something in it.
const AT: &str = "at";
/// Objects that fail at the node or anywhere below.
const AT_OR_BELOW: &str = "atOrBelow";
/// Maximum number of names kept for each node.
const SHOWN: usize = 5;

/// The setting `liveObjects`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    Report,
    Decide,
    Off,
}

/// The stream for a finding: all objects, in the version that the finding is about.
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

/// Adds a page to the state: for each node, the number of objects that fail there or below, and some of their names.
pub(super) fn fold(upgrade: &Upgrade<'_>, version: &str, state: &mut Value, page: &[Value]) {
    let targets = upgrade.targets(version);
    let Some(old) = upgrade.old_resource(version) else { return };
    for object in page {
        for (target, resource) in &targets {
            let suffers = suffering(&old, resource, upgrade.server, object);
            let counts = entry(state, target);
            if !suffers.is_decided {
                bump(entry(counts, "undecided"), object);
            }
            if !suffers.met_rules {
                bump(entry(counts, "withoutRules"), object);
            }
            // An object counts once per node, and once for every node above a failure.
            let mut nodes = BTreeSet::new();
            for node in suffers.at {
                nodes.extend((0..=node.len()).map(|length| (field_path(&node[..length]), AT_OR_BELOW)));
                nodes.insert((field_path(&node), AT));
            }
            let by_node = entry(counts, "nodes");
            for (node, extent) in nodes {
                bump(entry(entry(by_node, &node), extent), object);
            }
        }
    }
}

fn entry<'s>(state: &'s mut Value, key: &str) -> &'s mut Value {
    if !state.is_object() {
        *state = Value::Object(Map::new());
    }
    &mut state[key]
}

fn bump(counter: &mut Value, object: &Value) {
    if !counter.is_object() {
        *counter = json!({"count": 0, "names": []});
    }
    counter["count"] = json!(counter["count"].as_u64().unwrap_or(0) + 1);
    if let Some(names) = counter["names"].as_array_mut().filter(|names| names.len() < SHOWN) {
        names.push(object.full_name().into());
    }
}

/// Adds the number of affected objects to a finding; a finding that affects none is a warning if the setting says so.
/// `said` holds the reasons already reported for this definition: they apply to the kind, not to one finding.
pub(super) fn annotate(facts: &Facts, mode: Mode, need: &Need, finding: &mut Finding, said: &mut BTreeSet<String>) {
    match facts.folded(NAME, need) {
        Some(Folded::State { state, examined, cut }) => {
            count(facts, mode, finding, state, (examined, cut));
        }
        Some(Folded::Unable(reason)) if said.insert(reason.to_owned()) => {
            finding.message.push_str(&format!(" (its objects could not be listed: {reason})"));
        }
        Some(Folded::Unable(_)) | None => {}
    }
}

fn count(facts: &Facts, mode: Mode, finding: &mut Finding, state: &Value, (examined, cut): (u64, bool)) {
    let of_server = facts.cluster.side == ClusterSide::Server;
    let decides = mode == Mode::Decide && finding.verdict == Verdict::Breaking;
    if examined == 0 && !of_server {
        if decides {
            finding.message.push_str(" (there are no objects of the kind here to decide)");
        }
        return;
    }
    let counts = &state[finding.version.as_deref().unwrap_or_default()];
    let is_of_the_node_alone = checks::find(&finding.check).is_some_and(|check| check.is_of_the_node_alone);
    let node = &counts["nodes"][finding.path.as_deref().unwrap_or_default()]
        [if is_of_the_node_alone { AT } else { AT_OR_BELOW }];
    let affected = node["count"].as_u64().unwrap_or(0);
    let names = node["names"].as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned);
    finding.live_objects = Some(LiveObjects { affected, examined, names: names.collect() });
    let is_none = |counter: &str| counts[counter]["count"].as_u64().unwrap_or(0) == 0;
    let of_rules = finding.check == "x-kubernetes-validations";
    let all_judged = !cut && is_none("undecided") && (!of_rules || is_none("withoutRules"));
    if decides && affected == 0 && all_judged {
        finding.verdict = Verdict::Change;
        finding.severity = Severity::Warning;
        finding.message.push_str(" (no live object is affected)");
    }
}
