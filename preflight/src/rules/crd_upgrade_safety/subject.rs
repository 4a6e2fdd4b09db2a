//! What the rule looks at: a definition that changes in place, beside the change that brings it.

use pushback_crd::definition::crd::{GROUP, KIND};
use pushback_crd::definition::{Crd, Upgrade};
use serde_json::Value;

use crate::facts::Change;
use crate::object::ObjectRef;
use crate::source::PathSegment;

/// The rule, as its findings name it.
pub(in crate::rules) const NAME: &str = "CRDUpgradeSafety";

/// Whether a change is about a CustomResourceDefinition.
pub(super) fn is_crd(change: &Change) -> bool {
    is_definition(&change.object)
}

pub(super) fn is_definition(object: &ObjectRef) -> bool {
    object.group == GROUP && object.kind == KIND
}

/// The definition before and after; `None` if one of the sides is not known.
pub(super) fn sides(change: &Change) -> Option<(&Value, &Value)> {
    change.live.as_deref().zip(change.after())
}

/// A definition that changes in place, and the change that brings it.
pub(super) struct Subject<'a> {
    pub(super) change: &'a Change,
    pub(super) upgrade: Upgrade<'a>,
}

impl Subject<'_> {
    /// Where a version stands. Places are those of the manifest; the server's answer may list versions in another
    /// order.
    pub(super) fn path_of(&self, version: &str, keys: &[&str]) -> Vec<PathSegment> {
        match self.change.desired.as_deref() {
            Some(manifest) => Crd::of(manifest).path_of(version, keys),
            None => self.upgrade.new.path_of(version, keys),
        }
    }
}
