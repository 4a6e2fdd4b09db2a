//! Phrases that several modules share.

/// `1 finding`, `2 findings`.
#[must_use]
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `3 experiments written to suite`.
#[must_use]
pub(crate) fn written_experiments(count: usize, folder: &str) -> String {
    format!("{} written to {folder}", counted(count, "experiment"))
}
