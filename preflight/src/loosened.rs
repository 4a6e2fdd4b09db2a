//! In what the judged manifests ask for less than a policy, or than the defaults: what is told of it, and what it does.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source::{PathSegment, Position};

/// What the manifests' wish for less does where it is not followed, or told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loosening {
    /// It is told.
    #[default]
    Warn,
    /// It refuses.
    Error,
}

/// A rule that somebody asks for, or that runs unless told otherwise, and does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleOff {
    /// Its name.
    pub name: String,
    /// Who has switched it off.
    pub reason: String,
}

/// What a loosening is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoosenedKind {
    /// A rule is left out.
    RuleOff,
    /// A setting is less strict, or nobody can tell.
    LooserSetting,
    /// A waiver is added.
    Waiver,
    /// A setting names what only a source of policy may name.
    OutsideOnly,
}

/// Something in which the judged manifests ask for less than the policy, or than the defaults where there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loosened {
    /// What kind of thing.
    pub kind: LoosenedKind,
    /// Which: `CRDUpgradeSafety checks.enum`, a rule, or what a waiver is of.
    pub what: String,
    /// What the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// What the manifests say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Value>,
    /// Whether the manifests are followed.
    pub followed: bool,
    /// Where they say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The entry of `preflightRules` and the path in it, from which the caller knows the position.
    #[serde(skip)]
    pub place: Option<(usize, Vec<PathSegment>)>,
}
