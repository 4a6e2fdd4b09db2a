//! Names of workloads that the API server accepts and that are too long for what the controller makes of them.

use pushback_objects::finding::{Finding, Verdict};

use super::NAME;
use super::pod::{LABEL, SUBDOMAIN};
use super::template::{WorkloadKind, WorkloadTemplate};
use crate::facts::Operation;

/// The check for the name of a workload.
pub(super) const CHECK: &str = "name";

/// Most characters of the hash that a controller appends with a hyphen: a number of 32 bits in decimal.
const HASH: usize = 10;
/// Length that the hash of 98 of 100 templates has at least.
const USUAL_HASH: usize = 9;
/// Most characters of a CronJob's name: its Jobs get eleven more.
const CRON_JOB: usize = 52;

/// A name of which no Pods can be made.
#[derive(Debug)]
pub(super) struct NameProblem {
    /// The finding.
    pub(super) finding: Finding,
    /// True if the API server refuses every Pod for it.
    pub(super) is_certain: bool,
}

/// The problem with the name of a workload.
pub(super) fn problem(of: &WorkloadTemplate<'_>) -> Option<NameProblem> {
    let name = of.change.object.name.as_str();
    let length = name.len();
    let is_new = of.change.operation != Operation::Update;
    let limited = |most: usize, made: &str| {
        let room = most.saturating_sub(length + 1);
        if room >= HASH {
            return None;
        }
        let verdict = if is_new && room < USUAL_HASH { Verdict::Breaking } else { Verdict::Unknown };
        let usual = most - HASH - 1;
        let message = format!(
            "its name has {length} characters, and {made} is the name with a hash of up to {HASH} digits, of at most {most} \
             characters: the controller cannot make Pods"
        );
        Some((verdict, message, format!("shorten the name to {usual} characters"), room == 0))
    };
    let refused = |most: usize| {
        let message = format!("its name has {length} characters, and the API server accepts {most} at most");
        (length > most && is_new)
            .then(|| (Verdict::Breaking, message, format!("shorten the name to {most} characters"), true))
    };
    let (verdict, message, remedy, is_certain) = match of.kind {
        WorkloadKind::StatefulSet if name.contains('.') => {
            let message = "its name has a dot, and the host names of its Pods, which begin with it, may have none";
            Some((Verdict::Breaking, message.to_owned(), "take the dot out of the name".to_owned(), true))
        }
        WorkloadKind::StatefulSet => limited(LABEL, "the label controller-revision-hash of its Pods"),
        WorkloadKind::Deployment => limited(SUBDOMAIN, "the name of its ReplicaSet"),
        WorkloadKind::Job => refused(LABEL),
        WorkloadKind::CronJob => refused(CRON_JOB),
        WorkloadKind::DaemonSet | WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => None,
    }?;
    let finding = Finding::new(NAME, CHECK, verdict, of.change.object.clone(), message)
        .at(of.change.locate(&["metadata".into(), "name".into()]))
        .path("metadata.name")
        .remedy(remedy);
    Some(NameProblem { finding, is_certain })
}
