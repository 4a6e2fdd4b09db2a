//! Paths as constants write them.
//! Where an error or a warning stands is looked up by one.

use pushback_preflight::PathSegment;

/// The path of these keys.
pub(super) fn path(segments: &[&str]) -> Vec<PathSegment> {
    segments.iter().map(|&segment| segment.into()).collect()
}
