//! Why a pattern cannot be parsed, and where.

/// Why a pattern cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {offset})")]
pub struct PatternError {
    /// Offset in the pattern, in bytes.
    pub offset: usize,
    /// Description of the error.
    pub reason: String,
    /// Whether the API server rejects a definition with this pattern. If false, the pattern may be valid and only be
    /// too large to be judged here, or API servers of different versions disagree about it.
    pub refused: bool,
}
