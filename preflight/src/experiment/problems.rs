//! What is wrong with an experiment: each problem with its place, collected so that all are told at once.

use std::fmt;

use crate::finding::Severity;
use crate::source::{PathSegment, Position, Positions, display_path};

/// What a DNS name is, for messages.
pub(super) const DNS_NAME: &str = "small letters, digits, `-` and `.`, at most 253";

/// Something wrong with an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// An error where a runner or API server refuses it; a warning where one of them might, or ignores what is written.
    pub severity: Severity,
    /// Which demand is not met.
    pub rule: &'static str,
    /// The value at fault; what is missing is named where it belongs.
    pub path: Vec<PathSegment>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Problem {
    /// Where it stands; for what is missing, the map that it is missing in.
    #[must_use]
    pub fn position(&self, positions: &Positions) -> Position {
        positions.locate(&self.path)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", display_path(&self.path))?;
        }
        f.write_str(&self.message)
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Problem>);

impl Findings {
    pub(super) fn error(&mut self, path: &[PathSegment], rule: &'static str, message: String) {
        self.0.push(Problem { severity: Severity::Error, rule, path: path.to_vec(), message });
    }

    pub(super) fn warning(&mut self, path: &[PathSegment], rule: &'static str, message: String) {
        self.0.push(Problem { severity: Severity::Warning, rule, path: path.to_vec(), message });
    }
}

/// The path `a.b.c`.
pub(super) fn at(dotted: &str) -> Vec<PathSegment> {
    dotted.split('.').map(PathSegment::from).collect()
}
