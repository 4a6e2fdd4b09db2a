//! Phrases that several modules share.

use std::fmt::Display;

/// `1 finding`, `2 findings`.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `3 experiments written to suite`.
#[must_use]
pub fn written_experiments(count: usize, folder: &str) -> String {
    format!("{} written to {folder}", counted(count, "experiment"))
}
