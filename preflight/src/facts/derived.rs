//! Changes of CRDs that follow from changes of the objects from which controllers make them.

use pushback_objects::object::{ObjectKey, ObjectRef};
use pushback_objects::source::Position;

use super::Change;

/// The CRD changes that follow from a change set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivedCrds {
    /// The changes, sorted by CRD.
    pub changes: Vec<DerivedChange>,
    /// Source objects of which no CRD could be derived.
    pub unreadable: Vec<UnreadableSource>,
}

/// A change of a CRD that follows from the change of its source object.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedChange {
    /// The source object.
    pub source: ObjectRef,
    /// The change of the CRD. Its positions are those in the source object.
    pub change: Change,
}

/// A source object that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadableSource {
    /// The source object.
    pub object: ObjectRef,
    /// Position of the error in the manifest; `None` if the live object could not be read.
    pub position: Option<Position>,
    /// The error, with its path.
    pub message: String,
    /// True if it is the manifest, and not the live object.
    pub is_manifest: bool,
}

impl DerivedCrds {
    /// The source object of a CRD.
    #[must_use]
    pub fn source_of(&self, crd: &ObjectKey) -> Option<&ObjectRef> {
        self.changes.iter().find(|derived| derived.change.object.key() == *crd).map(|derived| &derived.source)
    }
}
