//! What single checks of a rule do: the setting `checks`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Error,
    Warn,
    Off,
}

/// What each check of a rule does, by its name.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Levels(BTreeMap<String, Level>);

impl Levels {
    /// Of a check that the rule declares a setting for.
    pub(super) fn of(&self, check: &str) -> Level {
        match self.0.get(check) {
            Some(level) => *level,
            None => unreachable!("check {check} has no setting"),
        }
    }
}
