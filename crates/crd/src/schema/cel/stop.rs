//! Why evaluation stops without a value: the server fails too, its result is unknown, or the budget is exhausted.

/// Why evaluation stops without a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stop {
    /// The API server also fails with an error here and rejects the object.
    Error(String),
    /// The server's result is unknown.
    Unknown(String),
    /// The server aborts the whole rule; enclosing operators do not absorb this error.
    Abort(String),
    /// The budget is exhausted.
    Budget,
    /// The server stops the rule, as one call costs too much, and rejects the object.
    Cost,
}

impl Stop {
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }

    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(message.into())
    }

    /// The one that counts if neither operand decides: unknown takes precedence.
    pub(super) fn or(self, other: Self) -> Self {
        if matches!(self, Self::Error(_)) && !matches!(other, Self::Error(_)) { other } else { self }
    }
}
