//! The subject of the rule: a definition that changes in place, together with its change.

use pushback_crd::definition::{Crd, Upgrade};
use pushback_objects::source::PathSegment;
use serde_json::Value;

use crate::facts::Change;

/// Name of the rule in its findings.
pub(crate) const NAME: &str = "CRDUpgradeSafety";

/// Whether a change is about a CustomResourceDefinition.
pub(super) fn is_crd(change: &Change) -> bool {
    change.object.is_definition()
}

/// The definition before and after; `None` if one of them is unknown.
pub(super) fn sides(change: &Change) -> Option<(&Value, &Value)> {
    change.live.as_deref().zip(change.after())
}

/// A definition that changes in place, with its change.
pub(super) struct Subject<'a> {
    pub(super) change: &'a Change,
    pub(super) upgrade: Upgrade<'a>,
}

impl Subject<'_> {
    /// Path of a version in the manifest; the server's answer may list versions in another order.
    pub(super) fn path_of(&self, version: &str, keys: &[&str]) -> Vec<PathSegment> {
        match self.change.desired.as_deref() {
            Some(manifest) => Crd::of(manifest).path_of(version, keys),
            None => self.upgrade.new.path_of(version, keys),
        }
    }
}
