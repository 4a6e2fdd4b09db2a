//! Why a rule cannot be read, and where.

/// Why a rule cannot be read. The server may read it still, where only a limit of this reader is met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {offset}")]
pub struct CelError {
    /// What is wrong.
    pub message: String,
    /// Where in the rule.
    pub offset: usize,
}
