//! The ways out of a finding as data. Who deploys comes first: the definition is rarely theirs.

use pushback_crd::schema::contain::Effect;
use pushback_objects::finding::Finding;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::json;

use super::subject::NAME;
use super::{checks, version_clients, whole};
use crate::facts::{Change, Facts};
use crate::rules::remedies::{correct_objects, keep};
use crate::rules::stored_remedy;

/// The ways out of a finding, the best first.
pub(super) fn ways_out(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let author = finding.remedy.iter().map(Remedy::author);
    let is_of_a_schema = checks::find(&finding.check).is_some_and(|check| check.is_of_a_schema);
    let is_of_objects = is_of_a_schema || finding.live_objects.is_some() && !whole::is_only_counted(finding);
    match finding.check.as_str() {
        "storedVersionRemoval" | "storageVersionChange" => stored_remedy::ways(facts, finding),
        "servedVersionRemoval" | "servedVersionUnserved" => {
            given_up_by(facts, finding).into_iter().chain(author).collect()
        }
        _ if facts.changes.find(&finding.object.key()).is_some_and(Change::ends_live_object) => {
            keep(facts, finding).into_iter().chain(author).collect()
        }
        _ if is_of_objects && facts.are_of_a_server() => {
            let correct = correct_objects(finding, &facts.invocation).map(|correct| then_decided(correct, finding));
            correct.into_iter().chain(decided(finding)).chain(author).collect()
        }
        _ if is_of_objects && finding.effect.as_deref() == Some(Effect::Rejected.as_str()) => {
            let step = "judge it against the cluster: a change that affects no object there, and that writers see as an \
                        error, is a warning";
            let command = facts.invocation.with("--cluster", "kube").to_string();
            let ask = Remedy::deployer(RemedyKind::AskCluster, step).commands([command]);
            let correct = correct_objects(finding, &facts.invocation);
            // The objects are those of files, which kubectl does not edit.
            let correct = correct.map(|correct| correct.commands([]));
            correct.into_iter().chain([ask]).chain(author).collect()
        }
        _ => author.collect(),
    }
}

/// Lets the objects decide, as none is affected.
fn decided(finding: &Finding) -> Option<Remedy> {
    let mode = finding.passes_under?;
    let step = format!("{}: no object that is there is affected{}", decide_by(mode), accepting(mode));
    Some(Remedy::deployer(RemedyKind::Configure, step).settings(NAME, &json!({"liveObjects": mode})))
}

/// Where the change would be refused even then, lets the corrected objects decide.
fn then_decided(mut correct: Remedy, finding: &Finding) -> Remedy {
    let Some(mode) = finding.passes_once_corrected else { return correct };
    correct.steps.push(format!("then {}: no object is affected any more{}", decide_by(mode), accepting(mode)));
    correct.settings(NAME, &json!({"liveObjects": mode}))
}

fn decide_by(mode: &str) -> String {
    format!("set `liveObjects: {mode}` for {NAME} in preflightRules")
}

/// What a mode lets happen later.
fn accepting(mode: &str) -> &'static str {
    if mode == "decide" {
        "; values that are written later are dropped or changed without an error"
    } else {
        ", and writers would see an error"
    }
}

/// What who deploys can do about a version that clients can no longer use.
fn given_up_by(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let key = if finding.check == "servedVersionRemoval" { "removed" } else { "unserved" };
    let version = finding.version.clone().unwrap_or_default();
    let used = finding.version_use.as_ref();
    let writers: Vec<&str> =
        used.into_iter().flat_map(|used| &used.writers).map(|writer| writer.manager.as_str()).collect();
    let clients = match writers.as_slice() {
        [] => "clients".to_owned(),
        names => names.join(", "),
    };
    let mut ways = Vec::from_iter(stored_remedy::before_unserving(facts, finding));
    if !finding.client_waivers.is_empty() {
        let mut accept =
            Remedy::deployer(RemedyKind::Accept, format!("have {clients} use another version than {version}"));
        accept
            .steps
            .push(format!("once none uses it any more, accept by `--waive` that requests for {version} get 404"));
        ways.push(accept.commands([version_clients::accepting(&facts.invocation, finding).to_string()]));
    }
    let settle = format!("set `versions: {{{key}: warn}}` for {NAME} in preflightRules: it then warns for every CRD");
    ways.push(Remedy::deployer(RemedyKind::Configure, settle).settings(NAME, &json!({"versions": {key: "warn"}})));
    ways
}
