//! The list of what can go wrong.
use crate::support::TestCase;
pub(super) fn tests() -> Vec<TestCase> {
    Vec::new()
}
