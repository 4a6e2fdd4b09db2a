//! Marks on objects that an experiment has changed or created.

use super::place::Place;

/// A label on journals and on objects that experiments create; an annotation, with the journal's name and digest, on
/// objects that they change.
pub const MARK: &str = "pushback.dev/experiment";

/// Location of the mark on a changed object.
#[must_use]
pub fn mark_place() -> Place {
    Place::keys(["metadata", "annotations", MARK])
}
