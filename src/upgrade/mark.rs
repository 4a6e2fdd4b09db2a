//! How an object says that an experiment has changed or created it.

use super::place::Place;

/// On journals and on the objects that experiments create, a label; on the objects that they change, an annotation
/// that names the journal and its digest.
pub const MARK: &str = "pushback.dev/experiment";

/// Where an object that is changed says so.
#[must_use]
pub fn mark_place() -> Place {
    Place::keys(["metadata", "annotations", MARK])
}
