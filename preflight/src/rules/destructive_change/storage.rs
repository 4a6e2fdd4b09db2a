//! Deleted claims and volumes: the reclaim policy of the volume decides whether the data is lost.

use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::object::{ObjectExt, ObjectRef};
use serde_json::{Value, json};

use super::loss::{Judge, LostFrom, fate, finding, is_core};
use crate::facts::{Answer, Change, ClusterSide, Need};

pub(super) const CLAIM: &str = "persistentVolumeClaimDeleted";
pub(super) const VOLUME: &str = "persistentVolumeDeleted";

/// The need for the volume of a claim.
pub(super) fn need(change: &Change) -> Option<Need> {
    let volume = change.live.as_deref()?.text("/spec/volumeName");
    volume_need(volume).filter(|_| is_core(change, "PersistentVolumeClaim"))
}

/// The need for a volume by its name.
pub(super) fn volume_need(volume: &str) -> Option<Need> {
    (!volume.is_empty()).then(|| Need::Object {
        object: ObjectRef {
            version: "v1".to_owned(),
            kind: "PersistentVolume".to_owned(),
            name: volume.to_owned(),
            ..ObjectRef::default()
        },
    })
}

pub(super) fn check(judge: &mut Judge<'_>, change: &Change) {
    let Some(live) = change.live.as_deref().filter(|live| !live.is_terminating()) else { return };
    if !change.ends_live_object() {
        return;
    }
    if is_core(change, "PersistentVolumeClaim") && !judge.is_off(CLAIM) {
        claim(judge, change, live);
    } else if is_core(change, "PersistentVolume") {
        volume(judge, change, live);
    }
}

fn claim(judge: &mut Judge<'_>, change: &Change, live: &Value) {
    let fate = fate(change);
    let on_directory = judge.facts.cluster.side == ClusterSide::Directory;
    let name = live.text("/spec/volumeName");
    let answer = need(change).map(|need| judge.facts.answer(&need));
    let unknown = match answer {
        None if on_directory => "a folder does not show whether it holds data".to_owned(),
        None => {
            let message = format!("the claim is {fate}; no volume is bound to it");
            return judge.note(finding(change, CLAIM, Verdict::Change, message));
        }
        Some(Answer::Object { object: Some(volume) }) => return bound_claim(judge, change, &volume),
        Some(Answer::Object { object: None }) if !on_directory => {
            let message = format!("the claim is {fate}; its volume {name} is gone already");
            return judge.note(finding(change, CLAIM, Verdict::Change, message));
        }
        Some(Answer::Unable { reason }) => {
            format!("it is not known whether its volume {name} is deleted with it: {reason}")
        }
        Some(_) => format!("it is not known whether its volume {name} is deleted with it"),
    };
    let finding = finding(change, CLAIM, Verdict::Unknown, format!("the claim is {fate}; {unknown}"));
    judge.lose(LostFrom::App, finding.remedy(judge.ways_out(change, CLAIM)));
}

fn bound_claim(judge: &mut Judge<'_>, change: &Change, volume: &Value) {
    let fate = fate(change);
    let name = volume.name();
    if !deletes_data(volume) {
        let message = format!(
            "the claim is {fate}; its volume {name} and the data stay (reclaim policy {}), and no new claim gets them by itself",
            policy(volume)
        );
        return judge.note(worth_a_warning(finding(change, CLAIM, Verdict::Change, message)));
    }
    let size = capacity(volume);
    let message =
        format!("the claim is {fate}, and its volume {name}{size} with all data (reclaim policy {})", policy(volume));
    let finding = finding(change, CLAIM, Verdict::Breaking, message).values(Some(json!({"volume": name})), None);
    let keep =
        format!("to keep the data, set `persistentVolumeReclaimPolicy: Retain` on PersistentVolume {name} first");
    let ways_out = judge.ways_out(change, CLAIM);
    judge.lose(LostFrom::App, finding.remedy(format!("{keep}; or {ways_out}")));
}

fn volume(judge: &mut Judge<'_>, change: &Change, live: &Value) {
    let fate = fate(change);
    let claim = match (live.text("/spec/claimRef/namespace"), live.text("/spec/claimRef/name")) {
        (_, "") => String::new(),
        (namespace, name) => format!(" of claim {namespace}/{name}"),
    };
    if !deletes_data(live) {
        let message = format!("the volume{claim} is {fate}; its storage stays (reclaim policy {})", policy(live));
        return judge.note(worth_a_warning(finding(change, VOLUME, Verdict::Change, message)));
    }
    let message = format!(
        "the volume{claim} is {fate}, and its storage{} with all data (reclaim policy {})",
        capacity(live),
        policy(live)
    );
    let finding =
        finding(change, VOLUME, Verdict::Breaking, message).values(Some(json!({"reclaimPolicy": policy(live)})), None);
    let ways_out = judge.ways_out(change, VOLUME);
    judge.lose(
        LostFrom::App,
        finding.remedy(format!("set `persistentVolumeReclaimPolicy: Retain` first; or {ways_out}")),
    );
}

/// A volume without a policy retains its storage.
fn policy(volume: &Value) -> &str {
    match volume.text("/spec/persistentVolumeReclaimPolicy") {
        "" => "Retain",
        policy => policy,
    }
}

/// `Recycle` erases the volume as well.
pub(super) fn deletes_data(volume: &Value) -> bool {
    policy(volume) != "Retain"
}

pub(super) fn capacity(volume: &Value) -> String {
    match volume.text("/spec/capacity/storage") {
        "" => String::new(),
        size => format!(" ({size})"),
    }
}

fn worth_a_warning(mut finding: Finding) -> Finding {
    finding.severity = Severity::Warning;
    finding
}
