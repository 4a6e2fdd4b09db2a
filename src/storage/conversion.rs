//! What conversions of manifests, and their comparison with recorded ones, give.

use pushback_preflight::Position;
use pushback_preflight::conversion::Lost;

/// A field that is not in a converted object.
#[derive(Clone, Debug)]
pub struct LostField {
    /// Where the object begins.
    pub position: Position,
    /// The object.
    pub object: String,
    /// The field and why.
    pub lost: Lost,
}

/// What was converted.
#[derive(Clone, Debug, Default)]
pub struct ConvertReport {
    /// Texts of all inputs, one after the other; empty if files were written.
    pub text: String,
    /// Number of objects that got another version.
    pub objects: usize,
    /// Files that were written.
    pub written: Vec<String>,
    /// What is not in the objects.
    pub lost: Vec<LostField>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct GoldenReport {
    /// Files that hold what the conversion gives.
    pub equal: Vec<String>,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that differ, are missing, or belong to no conversion.
    pub different: Vec<String>,
}
