//! Whether a change can do nothing but have the server reject what somebody writes. Such harm is loud: the writer sees the
//! error, so the objects that are there may decide. What is dropped, changed or hidden is noticed by nobody.

use pushback_crd::definition::{Blocked, DefinitionChange, Proof};
use pushback_crd::schema::cel::Program;
use pushback_crd::schema::contain::{DISAGREEMENT, Effect};
use serde_json::Value;

use super::checks::{self, OnlyRejects};

/// The types of values that hold no others, as changes of types name them.
const SCALARS: [&str; 5] = ["string", "integer", "number", "boolean", "int-or-string"];

/// Whether all that a change can do is to have writes rejected. This follows from what changes, not from its witness,
/// which shows one effect of perhaps several; so it is known of a change that nothing is proved about, too.
pub(super) fn only_rejects(change: &DefinitionChange) -> OnlyRejects {
    let is_quiet = match &change.proof {
        Proof::Breaking { effect, blocks, .. } => {
            *effect != Effect::Rejected || matches!(blocks, Some(Blocked::Read | Blocked::Apply))
        }
        // Then what is said about the objects that are there cannot be relied on either.
        Proof::Unknown { reason, .. } => reason.as_deref() == Some(DISAGREEMENT),
        Proof::Safe(_) => false,
    };
    let of_check = checks::of(change.keyword).only_rejects;
    let rejects = match of_check {
        _ if is_quiet => false,
        OnlyRejects::BetweenScalars => [&change.old, &change.new].into_iter().all(is_scalar),
        // What is proved of no object may concern owners.
        OnlyRejects::WithoutObjects => matches!(change.proof, Proof::Breaking { .. }),
        OnlyRejects::Always => !judges_edits(change),
        OnlyRejects::Never => false,
    };
    match of_check {
        _ if !rejects => OnlyRejects::Never,
        OnlyRejects::WithoutObjects => OnlyRejects::WithoutObjects,
        _ => OnlyRejects::Always,
    }
}

fn is_scalar(kind: &Option<Value>) -> bool {
    kind.as_ref().and_then(Value::as_str).is_some_and(|kind| SCALARS.contains(&kind))
}

/// Whether one of the new rules compares an object with its previous state: objects do not show which edits are made.
fn judges_edits(change: &DefinitionChange) -> bool {
    let rules = change.new.as_ref().filter(|_| change.keyword == "x-kubernetes-validations");
    let mut rules = rules.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    rules.any(|rule| Program::compile(rule).map_or(true, |program| program.uses_old_self()))
}
