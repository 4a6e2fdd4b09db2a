//! Where the judged manifests are less strict than a policy or the defaults, and what happens then.

use pushback_objects::source::{PathSegment, Position};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens if manifests loosen a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loosening {
    /// The loosening is reported.
    #[default]
    Warn,
    /// The loosening refuses the run.
    Error,
}

/// A rule that is requested or enabled by default, and does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleOff {
    /// Name of the rule.
    pub name: String,
    /// Who switched it off.
    pub reason: String,
}

/// The kind of loosening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LoosenedKind {
    /// A rule is omitted.
    RuleOff,
    /// A setting is less strict, or cannot be compared.
    LooserSetting,
    /// A waiver is added.
    Waiver,
    /// A setting names an external source, which only a policy source may do.
    OutsideOnly,
    /// A rule is defined, which only a policy source may do.
    CustomRule,
}

/// One way in which the judged manifests are less strict than the policy, or than the defaults if there is no policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loosened {
    /// The kind of loosening.
    pub kind: LoosenedKind,
    /// What is loosened: `CRDUpgradeSafety checks.enum`, a rule, or the subject of a waiver.
    pub what: String,
    /// The policy's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// The manifests' value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Value>,
    /// Whether the manifests' value is in effect.
    pub followed: bool,
    /// Position of the manifests' value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Index of the entry in `preflightRules` and the path within it, from which the caller derives the position.
    #[serde(skip)]
    pub place: Option<(usize, Vec<PathSegment>)>,
}
