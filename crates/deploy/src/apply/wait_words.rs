//! Words for the state of an awaited object, in place of the engine's.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::readiness::MatchedCondition;

/// Words for the state of an awaited object.
pub trait WaitWords: fmt::Debug + Send + Sync {
    /// Returns the message about an object that is not ready, and the lines about what lies below it.
    fn in_progress(&self, waited: &WaitedObject<'_>, below: &[Arc<Value>]) -> (String, Vec<String>);

    /// Returns the message about an object that is ready.
    fn ready(&self, waited: &WaitedObject<'_>) -> String;

    /// Returns the message about an object that has failed.
    fn failed(&self, waited: &WaitedObject<'_>) -> String;
}

/// Last observed state of an awaited object.
#[derive(Clone, Copy, Debug)]
pub struct WaitedObject<'o> {
    /// The object, if it exists.
    pub live: Option<&'o Value>,
    /// The condition by which a wait rule judges it.
    pub matched: Option<&'o MatchedCondition>,
    /// The engine's message about it.
    pub message: &'o str,
}
