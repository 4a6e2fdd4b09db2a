//! Builds paths from constants, to look up the position of an error or warning.

use pushback_objects::PathSegment;

/// The path with these keys.
pub(super) fn path(segments: &[&str]) -> Vec<PathSegment> {
    segments.iter().map(|&segment| segment.into()).collect()
}
