//! The table of readiness rules, row by row: kstatus' result, ours, and the reason for a difference. A row without a
//! gap must agree with kstatus, and a row with one must not, so neither goes stale.

mod kinds;
mod workloads;

use super::kstatus::{Kstatus, kstatus};
use super::*;

/// One row of the table.
pub(super) struct Row {
    /// The object's state in words.
    name: &'static str,
    kstatus: Kstatus,
    ours: State,
    /// Part of our message.
    message: &'static str,
    /// Why our result differs; empty if it does not.
    gap: &'static str,
    /// Fields added to the kind's base.
    rest: Value,
}

impl Row {
    /// The same with more fields.
    pub(super) fn with(mut self, more: Value) -> Self {
        merge(&mut self.rest, more);
        self
    }
}

/// A row that agrees with kstatus.
pub(super) fn same(name: &'static str, kstatus: Kstatus, ours: State, message: &'static str, rest: Value) -> Row {
    Row { name, kstatus, ours, message, gap: "", rest }
}

/// A row that differs from kstatus.
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
