//! Why a rule cannot be parsed, and where.

/// Why a rule cannot be parsed. If it only exceeds a limit of this parser, the server may still parse it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {offset}")]
pub struct CelError {
    /// Description of the error.
    pub message: String,
    /// Offset in the rule, in bytes.
    pub offset: usize,
}
