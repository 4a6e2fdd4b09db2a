//! Rule CRDUpgradeSafety: whether a CustomResourceDefinition can be changed without breaking stored objects and clients.
//! This release judges the definition as a whole and the life of its versions; schema changes it reports as unknown.

mod crd;
pub(super) mod deletion;
mod lifecycle;
mod schema_change;

use serde_json::Value;

use crate::facts::{Change, ChangeSet, Facts, Need, Needs, Operation};
use crate::finding::{Finding, Verdict};
use crate::rule::{Checked, Judgement, Rule, RuleMeta, Setting, SettingKind, Settings};
use crd::{Crd, is_crd};

pub(super) const NAME: &str = "CRDUpgradeSafety";

const DELETION: deletion::Names =
    deletion::Names { rule: NAME, deletion: "crdDeletion", replacement: "crdReplacement" };

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct CrdUpgradeSafety;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "a CustomResourceDefinition changes without breaking stored objects and clients",
    docs: include_str!("crd_upgrade_safety/docs.md"),
    checks: &[
        ("scope", "the scope changes"),
        ("group", "the API group changes"),
        ("names", "kind, plural, list kind, singular or short names change"),
        ("storedVersionRemoval", "a version is removed that objects are stored in"),
        ("servedVersionRemoval", "a version is removed that clients could use"),
        ("servedVersionUnserved", "a version is no longer served"),
        ("unservedVersionRemoval", "a version is removed that was neither served nor stored"),
        ("versionDeprecated", "a version becomes deprecated"),
        ("storageVersionChange", "objects are stored in another version from now on"),
        ("conversion", "objects are converted between versions in another way"),
        ("statusSubresource", "the status subresource is removed or added"),
        ("scaleSubresource", "the scale subresource is removed or points elsewhere"),
        ("selectableFields", "a field can no longer be used in field selectors"),
        ("preserveUnknownFields", "fields that no schema names are no longer kept"),
        ("additionalPrinterColumns", "a column disappears from tables"),
        ("unhandled", "a schema changes in a way that this release does not judge"),
        ("crdDeletion", "the definition is deleted, and all objects of its kind with it"),
        ("crdReplacement", "the definition is deleted and created anew, and all objects of its kind are deleted"),
    ],
    settings: &[Setting {
        name: "versions",
        doc: "what it takes to give up a version that is not stored",
        kind: SettingKind::Map(&[
            Setting {
                name: "removed",
                doc: "a served version is removed: `error` refuses unless it was deprecated before, `warn` only warns",
                kind: SettingKind::Choice(&["error", "warn"]),
            },
            Setting {
                name: "unserved",
                doc: "a version is no longer served: `error` refuses unless it was deprecated before, `warn` only warns",
                kind: SettingKind::Choice(&["error", "warn"]),
            },
        ]),
    }],
    needs: "the live definition with its status; where a definition is deleted or replaced, a list of the objects of its kind",
    default: true,
    on_directory: true,
};

impl Rule for CrdUpgradeSafety {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, changes: &ChangeSet, _settings: &Settings) -> Needs {
        changes
            .changes
            .iter()
            .filter(|change| deletion::concerns(change))
            .filter_map(|change| deletion::need(change, changes))
            .collect()
    }

    fn check(&self, facts: &Facts, settings: &Settings) -> Checked {
        let mut judgement = Judgement::default();
        for change in facts.changes.changes.iter().filter(|change| is_crd(change)) {
            if deletion::concerns(change) {
                deletion::check(&DELETION, change, facts, &mut judgement);
            } else if change.operation == Operation::Update {
                match (change.live.as_deref(), change.after()) {
                    (Some(live), Some(after)) => {
                        let upgrade = Upgrade { change, old: Crd::of(live), new: Crd::of(after) };
                        judgement.findings.extend(lifecycle::check(&upgrade, settings));
                    }
                    _ => judgement.unable.push(format!("{}: the live definition is not known", change.object)),
                }
            }
        }
        Checked::Done(judgement)
    }

    fn fold(&self, _need: &Need, state: &mut Value, page: &[Value]) {
        deletion::fold(state, page);
    }
}

/// A definition that changes in place.
struct Upgrade<'a> {
    change: &'a Change,
    old: Crd<'a>,
    new: Crd<'a>,
}

impl Upgrade<'_> {
    /// A finding at a path of the definition; `keys` may begin with `spec`, or with a version through
    /// [`Upgrade::finding_in`].
    fn finding(&self, check: &str, verdict: Verdict, keys: &[&str], message: String) -> Finding {
        let path: Vec<_> = keys.iter().map(|key| (*key).into()).collect();
        Finding::new(NAME, check, verdict, self.change.object.clone(), message)
            .at(self.change.locate(&path))
            .path(keys.join("."))
    }

    /// A finding about a version, placed at `keys` below it. The path names the version, not its index, so that the
    /// fingerprint stays when versions are reordered.
    fn finding_in(&self, check: &str, verdict: Verdict, version: &str, keys: &[&str], message: String) -> Finding {
        // Places are those of the manifest; the server's answer may list versions in another order.
        let written = self
            .change
            .desired
            .as_deref()
            .map_or_else(|| self.new.path_of(version, keys), |manifest| Crd::of(manifest).path_of(version, keys));
        let mut finding =
            Finding::new(NAME, check, verdict, self.change.object.clone(), message).at(self.change.locate(&written));
        finding.version = Some(version.to_owned());
        if !keys.is_empty() {
            finding.path = Some(keys.join("."));
        }
        finding
    }
}

/// The line that CRD upgrade checks of kapp and OLM print for a finding, where they have a validator for it:
/// `CustomResourceDefinition N failed upgrade safety validation. "NoScopeChange" validation failed: …`.
#[must_use]
pub fn refusal_line(finding: &Finding) -> Option<String> {
    if finding.rule != NAME {
        return None;
    }
    let validator = match finding.check.as_str() {
        "scope" => "NoScopeChange",
        "storedVersionRemoval" => "NoStoredVersionRemoved",
        "unhandled" => "ChangeValidator",
        _ => return None,
    };
    Some(format!(
        "CustomResourceDefinition {} failed upgrade safety validation. \"{validator}\" validation failed: {}",
        finding.object.name, finding.message
    ))
}

#[cfg(test)]
mod tests;
