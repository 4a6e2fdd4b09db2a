//! A loss, as the checks of DestructiveChange report it: whose it is, what the settings make of it, and the ways out.

use serde::Deserialize;

use crate::facts::{Change, Facts, Operation};
use crate::finding::{Finding, Severity, Verdict};
use crate::rule::Judgement;
use crate::rules::levels::{Level, Levels};

pub(super) const NAME: &str = "DestructiveChange";

/// Its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OwnSettings {
    pub(super) checks: Levels,
    pub(super) deleted_share: Share,
}

/// From where on the check of that name speaks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Share {
    pub(super) percent: u64,
    pub(super) at_least: u64,
}

/// A judgement under way.
pub(super) struct Judge<'a> {
    pub(super) facts: &'a Facts,
    pub(super) settings: &'a OwnSettings,
    pub(super) judgement: Judgement,
}

/// Whose wish a loss would be against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It is the app's own: who deletes the app by its name wants it gone.
    Own,
    /// It is not the app's, or nobody has named it.
    Others,
}

impl Judge<'_> {
    pub(super) fn is_off(&self, check: &str) -> bool {
        self.settings.checks.of(check) == Level::Off
    }

    /// Reports a loss, as far as the check's setting and the user's wish make one of it.
    pub(super) fn lose(&mut self, lost: Lost, mut finding: Finding) {
        let is_wanted = lost == Lost::Own && self.facts.changes.deletes_app;
        match self.settings.checks.of(&finding.check) {
            Level::Off => return,
            Level::Warn => finding = warning(finding),
            Level::Error if is_wanted => finding = warning(finding),
            Level::Error => {}
        }
        self.judgement.findings.push(finding);
    }

    /// Reports what is worth knowing, and is no loss.
    pub(super) fn note(&mut self, finding: Finding) {
        if !self.is_off(&finding.check) {
            self.judgement.findings.push(finding);
        }
    }

    /// The ways out of a deletion.
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

/// `deleted`, or `deleted and created again`.
pub(super) fn fate(change: &Change) -> &'static str {
    if change.operation == Operation::Replace { "deleted and created anew" } else { "deleted" }
}
