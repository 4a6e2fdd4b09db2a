//! What keeps an object that is being deleted.
//! Finalizers, and for a namespace what the namespace controller says about its contents.

use serde_json::Value;

use super::conditions::{all, list, short};

/// Conditions of a namespace that say what is left in it.
const NAMESPACE_CONDITIONS: &[&str] = &[
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

/// What keeps a terminating object, in one line; empty where nothing that is known does.
#[must_use]
pub fn deletion_blockers(object: &Value) -> String {
    let conditions =
        all(object).filter(|condition| NAMESPACE_CONDITIONS.contains(&condition.kind) && condition.is("True")).map(
            |condition| if condition.message.is_empty() { condition.kind.to_owned() } else { short(condition.message) },
        );
    let mut blockers: Vec<String> = conditions.collect();
    let finalizers: Vec<&str> = list(object, "/metadata/finalizers").iter().filter_map(Value::as_str).collect();
    match finalizers.as_slice() {
        [] => {}
        [one] => blockers.push(format!("finalizer {one}")),
        several => blockers.push(format!("finalizers {}", several.join(", "))),
    }
    blockers.join("; ")
}
