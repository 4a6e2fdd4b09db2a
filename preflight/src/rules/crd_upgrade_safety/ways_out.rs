//! The ways out of a finding as data. Who deploys comes first: the definition is rarely theirs.

use pushback_crd::definition::{CROSS_VERSION_LOSS, Upgrade};
use pushback_crd::schema::contain::Effect;
use pushback_crd::stack;
use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::json;

use super::subject::{NAME, sides};
use super::{checks, lost_field, renamed_kind, version_clients, whole};
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
            let is_open = finding.verdict == Verdict::Unknown && !facts.are_of_a_server();
            let step = "check it against the cluster, which shows whether there are objects";
            let ask = is_open.then(|| ask_cluster(facts, step));
            let copy = renamed_kind::copy_objects(facts, finding);
            ask.into_iter().chain(copy).chain(keep(facts, finding)).chain(author).collect()
        }
        _ if is_of_objects && facts.are_of_a_server() => {
            let correct = correct_objects(facts, finding).map(|correct| then_decided(correct, finding));
            let convert = convert(facts, finding).into_iter();
            convert.chain(correct).chain(decided(finding)).chain(author).collect()
        }
        "unservedVersionRemoval" if !facts.are_of_a_server() => {
            let step = "check it against the cluster, which lists the stored versions";
            [ask_cluster(facts, step)].into_iter().chain(author).collect()
        }
        _ if is_of_objects && finding.effect.as_deref() == Some(Effect::Rejected.as_str()) => {
            let step = "check it against the cluster: if no object there is affected, this is only a warning";
            let ask = ask_cluster(facts, step);
            let correct = correct_objects(facts, finding);
            // The objects are those of files, which kubectl does not edit.
            let correct = correct.map(|correct| correct.commands([]));
            correct.into_iter().chain([ask]).chain(author).collect()
        }
        _ if is_of_objects => convert(facts, finding).into_iter().chain(author).collect(),
        _ => author.collect(),
    }
}

fn ask_cluster(facts: &Facts, step: &str) -> Remedy {
    let command = facts.invocation.with("--cluster", "kube").to_string();
    Remedy::deployer(RemedyKind::AskCluster, step).commands([command])
}

/// Converts objects between two versions of the CRD, where a field that one of them lacks seems to have another name there.
fn convert(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let to = finding.version.as_deref().filter(|_| finding.check == CROSS_VERSION_LOSS)?;
    let from = finding.old.as_ref()?.as_str()?;
    let change = facts.changes.find(&finding.object.key())?;
    let (old, new) = sides(change)?;
    let upgrade = Upgrade::of(old, new, facts.cluster.judged_server());
    let field = finding.path.as_deref()?;
    let name = stack::with_room(|| lost_field::renamed_at(&upgrade, (from, to), field))?;
    let is_bridged = upgrade.new.version(from).is_none_or(|version| !version.served);
    let steps = [
        format!("`{field}` of {from} may be `{name}` of {to}: draft a conversion plan, and check each of its lines"),
        if is_bridged {
            "put the plan among the manifests, and apply with `--storage=bridge`, which converts the objects".to_owned()
        } else {
            format!(
                "as long as both versions are served, convert with `pushback serve-conversion` and the plan; or remove {from}, \
                 put the plan among the manifests, and apply with `--storage=bridge`"
            )
        },
    ];
    let suggest = stored_remedy::suggest(facts, change)?;
    Some(Remedy { steps: steps.into(), ..Remedy::deployer(RemedyKind::Change, "").commands([suggest]) })
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
