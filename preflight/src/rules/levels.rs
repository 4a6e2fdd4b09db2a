//! The effect of a rule's single checks: the setting `checks`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The effect of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Error,
    Warn,
    Off,
}

/// The effect of each check of a rule, by name.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Levels(BTreeMap<String, Level>);

impl Levels {
    /// The level of a check that the rule declares.
    pub(super) fn of(&self, check: &str) -> Level {
        match self.0.get(check) {
            Some(level) => *level,
            None => unreachable!("check {check} has no setting"),
        }
    }
}
