//! The ways out of a loss as data: keep the object, or its data.

use pushback_objects::finding::{Finding, Severity};
use pushback_objects::object::ObjectExt;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::json;

use super::loss::{DELETED_SHARE, NAME, REPLACED, REPLICAS};
use super::{storage, webhooks, workload};
use crate::facts::Facts;
use crate::rules::remedies::{keep, kubectl};

/// The ways out of a finding, the best first.
pub(super) fn ways_out(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let Some(remedy) = &finding.remedy else { return Vec::new() };
    let again = &facts.invocation;
    let kept =
        |step: &str, command: String| Remedy::deployer(RemedyKind::Keep, step).commands([command, again.to_string()]);
    let change = facts.changes.find(&finding.object.key());
    let own = match (finding.check.as_str(), change.and_then(|change| change.live.as_deref())) {
        (storage::CLAIM | storage::VOLUME, Some(live)) => {
            let volume = if finding.check == storage::CLAIM { live.text("/spec/volumeName") } else { live.name() };
            let retain = ["-p", r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#];
            let step = "have the volume kept when its claim goes";
            (!volume.is_empty()).then(|| kept(step, kubectl(again, "patch", "persistentvolume", volume, &retain)))
        }
        (REPLACED, Some(live)) => {
            let delete = kubectl(again, "delete", "statefulset", &live.full_name(), &["--cascade=orphan"]);
            Some(kept("delete it without its Pods, which the new one takes over", delete))
        }
        (DELETED_SHARE, _) => {
            let command = again.with_flag("--patch").to_string();
            let step = "check that the manifests are complete; `--patch` deletes nothing";
            Some(Remedy::deployer(RemedyKind::Keep, step).commands([command]))
        }
        _ => None,
    };
    let is_loss_of_an_object =
        ![REPLICAS, workload::CLAIMS, DELETED_SHARE, webhooks::CHECK].contains(&finding.check.as_str());
    let kept = keep(facts, finding).filter(|_| is_loss_of_an_object);
    let mut ways: Vec<Remedy> = own.into_iter().chain(kept).collect();
    if ways.is_empty() {
        ways.push(Remedy::author(remedy));
    }
    if finding.severity == Severity::Error {
        let step = format!("if the loss is intended, set `checks: {{{}: warn}}` for {NAME}", finding.check);
        let settings = json!({"checks": {&finding.check: "warn"}});
        ways.push(Remedy::deployer(RemedyKind::Configure, step).settings(NAME, &settings));
    }
    ways
}
