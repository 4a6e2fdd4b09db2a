//! Writes that succeeded, also those of objects that failed afterwards.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pushback_objects::{ObjectKey, ObjectRef};
use pushback_preflight::Operation;

use crate::plan::Planned;

/// The last successful write of each object.
#[derive(Debug, Default)]
pub(in crate::apply) struct SuccessfulWrites(Mutex<BTreeMap<ObjectKey, Operation>>);

impl SuccessfulWrites {
    /// Notes that a write of the object succeeded.
    pub(super) fn note(&self, planned: &Planned, operation: Operation) {
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writes.insert(planned.object.key(), operation);
    }

    /// The last successful write of an object.
    pub(in crate::apply) fn of(&self, object: &ObjectRef) -> Option<Operation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&object.key()).copied()
    }
}
