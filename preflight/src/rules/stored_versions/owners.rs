//! Field owners at versions that are removed: the API server forgets them at the next write, and answers 500 to their
//! next server-side apply.

use pushback_objects::finding::{Finding, LiveObjects, Severity, Verdict};
use serde_json::{Value, json};

use super::{NAME, OWNERS, Subject};
use crate::facts::{Facts, Folded, Need};
use crate::rules::stored_remedy;

/// Maximum number of managers in a message.
const SHOWN: usize = 5;

/// A finding for each version that is removed and that nothing is stored in, if field owners are recorded at it.
/// Migrating the objects moves them, so there is nothing to add where a stored version is removed.
pub(super) fn check(subject: &Subject<'_>, facts: &Facts) -> Vec<Finding> {
    let gone = subject.gone();
    let need = Need::objects_of(&subject.live).filter(|_| !gone.is_empty());
    let Some(folded) = need.as_ref().and_then(|need| facts.folded(NAME, need)) else { return Vec::new() };
    let mut findings = Vec::new();
    for version in gone {
        let (message, objects) = match folded {
            Folded::State { state, examined, .. } => {
                let counts = &state[version];
                let Some(affected) = counts["objects"].as_u64() else { continue };
                let managers = counts["managers"].as_object().into_iter().flatten();
                let owners: Vec<&str> = managers.map(|(manager, _)| manager.as_str()).take(SHOWN).collect();
                let owners = owners.join(", ");
                let names = counts["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let names: Vec<String> = names.map(str::to_owned).collect();
                let message = format!(
                    "version \"{version}\" is removed, and fields of {affected} objects are owned at it by {owners}: these \
                     owners are forgotten, or their next apply fails"
                );
                (message, Some(LiveObjects::exactly(affected, examined, names)))
            }
            Folded::Unable(reason) => {
                let message = format!(
                    "unable to determine whether fields are owned at version \"{version}\", which is removed: {reason}"
                );
                (message, None)
            }
        };
        let mut finding = subject
            .finding(OWNERS, Verdict::Change, version, message)
            .values(Some(version.into()), None)
            .bound_to(&json!(version))
            .remedy(stored_remedy::of_owners(&subject.live));
        finding.severity = Severity::Warning;
        finding.live_objects = objects;
        findings.push(finding);
    }
    findings
}
