//! The table of readiness rules, row by row: what kstatus says, what we say, and the gap where that differs.
//! A row without a gap must agree with kstatus, a row with one must not, so that neither can go stale.

mod kinds;
mod workloads;

use super::kstatus::{Kstatus, kstatus};
use super::*;

/// A row.
pub(super) struct Row {
    /// The state of the object in words.
    name: &'static str,
    kstatus: Kstatus,
    ours: State,
    /// A part of what we say.
    message: &'static str,
    /// Why ours differs; empty where it does not.
    gap: &'static str,
    /// What it adds to the kind's base.
    rest: Value,
}

impl Row {
    /// The same with more on top.
    pub(super) fn with(mut self, more: Value) -> Self {
        merge(&mut self.rest, more);
        self
    }
}

/// A row in which we agree with kstatus.
pub(super) fn same(name: &'static str, kstatus: Kstatus, ours: State, message: &'static str, rest: Value) -> Row {
    Row { name, kstatus, ours, message, gap: "", rest }
}

/// A row in which we differ.
pub(super) fn gap(
    name: &'static str,
    (kstatus, ours): (Kstatus, State),
    message: &'static str,
    gap: &'static str,
    rest: Value,
) -> Row {
    Row { name, kstatus, ours, message, gap, rest }
}

#[track_caller]
pub(super) fn check(api_version: &str, kind: &str, base: &Value, rows: Vec<Row>) {
    for row in rows {
        let mut value = object(api_version, kind, base.clone());
        merge(&mut value, row.rest.clone());
        let context = format!("{kind}: {}\n{value:#}", row.name);
        assert_eq!(kstatus(&value), row.kstatus, "what kstatus says of {context}");
        let status = assess(&value, &settled());
        assert_eq!(status.state, row.ours, "{status:?} of {context}");
        assert!(status.message.contains(row.message), "{status:?} lacks {:?} of {context}", row.message);
        assert_eq!(row.gap.is_empty(), row.kstatus.is_same_as(row.ours), "the gap {:?} of {context}", row.gap);
    }
}
