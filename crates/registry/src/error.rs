//! The error of a request to a registry or a server of manifests.
//! No message quotes an answer's text, a credential or a query: any of them can be secret.

/// The class of an error, for callers that judge the absence of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The reference is invalid.
    Reference,
    /// The registry answered that there is no such manifest, tag or repository.
    Absent,
    /// The registry demands other credentials.
    Denied,
    /// The registry limits the rate of requests.
    Throttled,
    /// There was no answer, or one of a failed server.
    Unreachable,
    /// The answer or its content is invalid or exceeds a limit.
    Invalid,
}

/// The reason why a registry or server could not be read: a fragment without a full stop, and hints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RegistryError {
    /// Class of the error.
    pub kind: ErrorKind,
    /// The message, without the name of the source.
    pub message: String,
    /// Ways out, each a sentence.
    pub hints: Vec<String>,
}

impl RegistryError {
    /// An error with one way out.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        let hints = if hint.is_empty() { Vec::new() } else { vec![hint] };
        Self { kind, message: message.into(), hints }
    }

    /// An invalid or too large answer.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message, "")
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
