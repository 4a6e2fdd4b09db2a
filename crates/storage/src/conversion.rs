//! What conversions of manifests, and their comparison with recorded ones, give.

use pushback_conversion::Lost;
use pushback_objects::Position;
use serde::Serialize;
use serde_json::Value;

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

/// Schema version of the report on a tested plan.
pub const TEST_SCHEMA: u32 = 1;

/// What the test of a conversion plan found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// Schema version.
    pub schema_version: u32,
    /// Name of the CRD.
    pub crd: String,
    /// `failed`, or `noDefects`: samples prove nothing.
    pub outcome: &'static str,
    /// Versions that are served or stored.
    pub versions: Vec<String>,
    /// Number of generated objects.
    pub objects: usize,
    /// Number of round trips that they made.
    pub trips: usize,
    /// Number of objects that another version refuses when they are written back.
    pub refused: usize,
    /// Versions of which no valid object could be made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<String>,
    /// What does not come back as it was.
    pub defects: Vec<TestedDefect>,
    /// Recorded conversions, if a folder is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub golden: Option<TestedGoldens>,
    /// Objects of the cluster, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<TestedObjects>,
}

/// A field that does not come back as it was, with the smallest object that shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestedDefect {
    /// The version of the object.
    pub from: String,
    /// The version through which it goes.
    pub through: String,
    /// `lost`, `changed`, `invented` or `failed`.
    pub kind: &'static str,
    /// The field; empty for the object as a whole.
    pub path: String,
    /// Its value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Why an object cannot be converted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether the plan drops the field on purpose.
    pub acknowledged: bool,
    /// The object.
    pub witness: Value,
}

/// Recorded conversions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestedGoldens {
    /// Number of files that hold what the conversion gives.
    pub equal: usize,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that differ, are missing, or belong to no object, and why.
    pub different: Vec<String>,
}

/// Objects of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestedObjects {
    /// Number of objects.
    pub examined: usize,
    /// Those that do not come back as they were, each with the version and the first field; without values.
    pub affected: Vec<TestedObject>,
}

/// An object of a cluster that does not come back as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestedObject {
    /// Namespace and name.
    pub object: String,
    /// The version through which it goes.
    pub through: String,
    /// The fields, or why it cannot be converted.
    pub paths: Vec<String>,
}

impl TestReport {
    /// Whether something does not come back as it was, and the plan does not say so.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.defects.iter().any(|defect| !defect.acknowledged)
            || !self.untried.is_empty()
            || self.golden.as_ref().is_some_and(|golden| !golden.different.is_empty())
            || self.live.as_ref().is_some_and(|live| !live.affected.is_empty())
    }
}
