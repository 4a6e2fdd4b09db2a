//! What counts as breaking: harm to objects only (`data`), the published lists to the letter (`published`), or harm to
//! readers as well (`strict`).

use pushback_crd::definition::DefinitionChange;
use pushback_crd::order::without;
use pushback_crd::schema::contain::{Difference, SchemaProof};
use serde::Deserialize;
use serde_json::Value;

use super::checks::{self, Listing};

/// The setting `profile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Profile {
    Data,
    Published,
    Strict,
}

/// What the published lists say of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Prohibited,
    Allowed,
    /// Neither list names it.
    Unlisted,
}

/// The rows of "CRD upgrade safety" of OLM v1, "Prohibited" and "Allowed CRD upgrade changes".
pub(super) fn listed(change: &DefinitionChange) -> Listed {
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    if old == new {
        // The keyword is unchanged but applies to other objects, because of new defaults: no row covers that.
        return Listed::Unlisted;
    }
    match checks::of(change.keyword).listing {
        Listing::Unlisted => Listed::Unlisted,
        Listing::Prohibited => Listed::Prohibited,
        Listing::Required if new.is_some() => Listed::Prohibited,
        Listing::Required => Listed::Allowed,
        Listing::Enumeration => enumeration(old, new),
        Listing::LowerBound => bound(old, new, |old, new| new > old),
        Listing::UpperBound => bound(old, new, |old, new| new < old),
    }
}

fn enumeration(old: Option<&Value>, new: Option<&Value>) -> Listed {
    let values = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
    match (values(old), values(new)) {
        (Some(old), Some(new)) if without(&old, &new).is_empty() => Listed::Allowed,
        _ => Listed::Prohibited,
    }
}

fn bound(old: Option<&Value>, new: Option<&Value>, is_tighter: fn(f64, f64) -> bool) -> Listed {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    match (number(old), number(new)) {
        (_, None) => Listed::Unlisted,
        (Some(old), Some(new)) if !is_tighter(old, new) => Listed::Allowed,
        _ => Listed::Prohibited,
    }
}

/// Whether a reader may see values that were impossible before, by the proof in the opposite direction.
pub(super) fn concerns_readers(difference: &Difference) -> bool {
    matches!(difference.proof, SchemaProof::Breaking { .. }) && !checks::of(difference.keyword).readers_pass_over_it
}
