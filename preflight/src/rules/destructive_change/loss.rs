//! A loss as the checks of DestructiveChange report it: who owns it, its severity by the settings, and the remedies.

use pushback_objects::finding::{Finding, Severity, Verdict};
use serde::Deserialize;

use crate::facts::{Change, Facts, Operation};
use crate::rule::Judgement;
use crate::rules::levels::{Level, Levels};

pub(super) const NAME: &str = "DestructiveChange";

pub(super) const REPLICAS: &str = "replicasReset";
pub(super) const REPLACED: &str = "statefulSetReplaced";
pub(super) const DELETED_SHARE: &str = "deletedShare";
/// Checks of losses that a later apply can restore.
const RESTORABLE: [&str; 3] = [REPLACED, REPLICAS, DELETED_SHARE];

/// The rule's own settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OwnSettings {
    pub(super) checks: Levels,
    pub(super) losses: Losses,
    pub(super) unlisted: Unlisted,
    pub(super) deleted_share: Share,
}

/// The losses that the rule looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Losses {
    All,
    /// Data, and objects of others.
    Irreversible,
}

/// The effect of a kind that cannot be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unlisted {
    Unable,
    Warn,
}

impl OwnSettings {
    /// The level of a check; checks of other losses than those looked for are off.
    pub(super) fn level(&self, check: &str) -> Level {
        let is_left_out = self.losses == Losses::Irreversible && RESTORABLE.contains(&check);
        if is_left_out { Level::Off } else { self.checks.of(check) }
    }

    /// Whether a kind that cannot be listed only causes a warning.
    pub(super) fn only_warns_of_unlisted(&self) -> bool {
        self.unlisted == Unlisted::Warn
    }
}

/// The minimum size from which the check of this name reports.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Share {
    pub(super) percent: u64,
    pub(super) at_least: u64,
}

/// A judgement in progress.
pub(super) struct Judge<'a> {
    pub(super) facts: &'a Facts,
    pub(super) settings: &'a OwnSettings,
    pub(super) judgement: Judgement,
}

/// Who would have to agree to a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostFrom {
    /// The app's own objects: deleting the app by name asks for their deletion.
    App,
    /// Objects of others, or objects not named by the user.
    Others,
}

impl Judge<'_> {
    pub(super) fn is_off(&self, check: &str) -> bool {
        self.settings.level(check) == Level::Off
    }

    /// Reports a loss, depending on the check's setting and on whether the user asked for it.
    pub(super) fn lose(&mut self, from: LostFrom, mut finding: Finding) {
        let is_wanted = from == LostFrom::App && self.facts.changes.deletes_app;
        match self.settings.level(&finding.check) {
            Level::Off => return,
            Level::Warn => finding = warning(finding),
            Level::Error if is_wanted => finding = warning(finding),
            Level::Error => {}
        }
        self.judgement.findings.push(finding);
    }

    /// Reports a change that is worth knowing and not a loss.
    pub(super) fn note(&mut self, finding: Finding) {
        if !self.is_off(&finding.check) {
            self.judgement.findings.push(finding);
        }
    }

    /// The remedies for a deletion.
    pub(super) fn ways_out(&self, change: &Change, check: &str) -> String {
        let keep = match change.operation {
            Operation::Replace => "change it in place, or create it under another name and move the data",
            _ if self.facts.changes.deletes_app => {
                "annotate it with kapp.k14s.io/delete-strategy: orphan to keep it when the app is deleted"
            }
            _ => {
                "keep it in the input; to take it out of the app and leave it where it is, annotate the live object with \
                 kapp.k14s.io/delete-strategy: orphan"
            }
        };
        format!("{keep}; if the loss is intended, waive this finding or set `checks: {{{check}: warn}}`")
    }
}

fn warning(mut finding: Finding) -> Finding {
    finding.verdict = Verdict::Change;
    finding.severity = Severity::Warning;
    finding
}

pub(super) fn finding(change: &Change, check: &str, verdict: Verdict, message: String) -> Finding {
    Finding::new(NAME, check, verdict, change.object.clone(), message).at(change.locate(&[]))
}

pub(super) fn is_core(change: &Change, kind: &str) -> bool {
    change.object.group.is_empty() && change.object.kind == kind
}

/// Describes the deletion, depending on whether the object is created again.
pub(super) fn fate(change: &Change) -> &'static str {
    if change.operation == Operation::Replace { "deleted and created anew" } else { "deleted" }
}
