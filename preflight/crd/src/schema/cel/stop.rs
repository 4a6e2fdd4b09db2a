//! Why a rule has no value: what the server refuses too, what is not known, and what takes too long.

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stop {
    /// The API server stops with an error here, too, and refuses the object.
    Error(String),
    /// What the server would answer is not known.
    Unknown(String),
    /// The server stumbles and gives the whole rule up, whatever the operators around would make of an error.
    Abort(String),
    /// Out of steps.
    Budget,
}

impl Stop {
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }

    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(message.into())
    }

    /// The one that decides when neither operand does: not knowing wins.
    pub(super) fn or(self, other: Self) -> Self {
        if matches!(self, Self::Error(_)) && !matches!(other, Self::Error(_)) { other } else { self }
    }
}
