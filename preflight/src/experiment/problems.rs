//! Problems in an experiment, each with its place, collected so that all are reported at once.

use std::fmt;

use pushback_objects::finding::Severity;
use pushback_objects::source::{PathSegment, Position, Positions, display_path};

/// The definition of a DNS name, for messages.
pub(super) const DNS_NAME: &str = "small letters, digits, `-` and `.`, at most 253";

/// A problem in an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// An error if a runner or API server rejects it; a warning if one of them might, or ignores the field.
    pub severity: Severity,
    /// The violated rule.
    pub rule: &'static str,
    /// Path of the offending value, or of the missing one.
    pub path: Vec<PathSegment>,
    /// Description, with a remedy.
    pub message: String,
}

impl Problem {
    /// Position of the value; for a missing one, of the map that lacks it.
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

/// The problems found so far.
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
