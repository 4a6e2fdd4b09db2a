//! Clients of a version that is removed or no longer served. Moving stored objects does not help them, so that a stored
//! version has a finding about its clients, too. It is hidden while the finding about the objects refuses.

use std::collections::BTreeMap;

use pushback_crd::definition::{Blocked, DefinitionChange, Proof, Safety};
use pushback_crd::schema::contain::Effect;
use pushback_objects::finding::{Finding, FindingRef, STORAGE, Severity, Verdict};
use pushback_objects::invocation::Invocation;
use serde_json::json;

use super::subject::{NAME, Subject};

const STORED: &str = "storedVersionRemoval";
const SERVED: &str = "servedVersionRemoval";
const UNSERVED: &str = "servedVersionUnserved";

/// Adds a change for the clients of each stored version that is removed and was served.
pub(super) fn add(subject: &Subject<'_>, changes: &mut Vec<DefinitionChange>) {
    let of_clients = |change: &DefinitionChange| {
        let version = subject.upgrade.old.version(change.version.as_deref()?).filter(|version| version.served)?;
        let proof = match version.deprecated {
            true => Proof::Safe(Safety::Announced),
            false => Proof::Breaking { effect: Effect::Rejected, blocks: Some(Blocked::Read), damage: None },
        };
        Some(DefinitionChange { keyword: SERVED, old: Some(json!({"served": true})), proof, ..change.clone() })
    };
    let added: Vec<_> = changes.iter().filter(|change| change.keyword == STORED).filter_map(of_clients).collect();
    changes.extend(added);
}

/// Refers to the finding about the objects that are stored in the version, if the check is about its clients.
pub(super) fn told(check: &str, version: Option<&str>) -> Option<FindingRef> {
    let reference = || FindingRef {
        rule: NAME.to_owned(),
        check: STORED.to_owned(),
        version: version.map(str::to_owned),
        path: None,
    };
    (check == SERVED).then(reference)
}

/// Lists the fingerprints of breaking findings about clients in each finding about the same version. A release often
/// removes one version of several CRDs; one command accepts that.
pub(super) fn list_waivers(findings: &mut [Finding]) {
    let key = |finding: &Finding| {
        let check = if finding.check == STORED { SERVED } else { finding.check.as_str() };
        Some((check.to_owned(), finding.version.clone()?))
    };
    let mut waivers: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let of_clients = |finding: &&Finding| [SERVED, UNSERVED].contains(&finding.check.as_str());
    for finding in findings.iter().filter(of_clients).filter(|finding| finding.verdict == Verdict::Breaking) {
        if let Some(key) = key(finding) {
            waivers.entry(key).or_default().push(finding.compute_fingerprint());
        }
    }
    for finding in findings.iter_mut().filter(|finding| [STORED, SERVED, UNSERVED].contains(&finding.check.as_str())) {
        finding.client_waivers = key(finding).and_then(|key| waivers.get(&key)).cloned().unwrap_or_default();
    }
}

/// Copies the waivers for clients of a CRD's versions to the finding that its stored objects cannot be carried over: once they
/// can, the clients are left to decide about.
pub(crate) fn repeat_waivers(findings: &mut [Finding]) {
    let is_open = |finding: &&Finding| finding.severity == Severity::Error && finding.waived.is_none();
    let of_clients = findings.iter().filter(|finding| finding.check == SERVED).filter(is_open);
    let waivers: BTreeMap<_, Vec<String>> =
        of_clients.map(|finding| (finding.object.key(), finding.client_waivers.clone())).collect();
    for finding in findings.iter_mut().filter(|finding| finding.rule == STORAGE) {
        finding.client_waivers = waivers.get(&finding.object.key()).cloned().unwrap_or_default();
    }
}

/// Returns the command line with a waiver for each finding about clients of the version.
pub(in crate::rules) fn accepting(again: &Invocation, finding: &Finding) -> Invocation {
    let reason = format!("no client requests {} any more", finding.version.as_deref().unwrap_or("it"));
    let waive =
        |again: Invocation, fingerprint: &String| again.with_another("--waive", &format!("{fingerprint}={reason}"));
    finding.client_waivers.iter().fold(again.clone(), waive)
}
