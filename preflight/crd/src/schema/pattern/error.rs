//! Why a pattern cannot be read, and where.

/// Why a pattern could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {offset})")]
pub struct PatternError {
    /// Where in the pattern, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub reason: String,
    /// Whether the API server refuses a definition with this pattern. Where it is false the pattern may be in order
    /// and is only too large to be judged here, or API servers of different versions disagree about it.
    pub refused: bool,
}
