//! The one comparison of two definitions: all that changes, each with its proof.

use serde_json::Value;

use super::change::{Changes, DefinitionChange, Proof};
use super::{Upgrade, cross_version, lifecycle, offers, schemas};
use crate::schema::invalid::{Problem, problems};

/// What a definition is looked at for; each adds what it finds.
const PARTS: [fn(&Upgrade<'_>, &mut Changes); 7] = [
    lifecycle::identity,
    lifecycle::versions,
    lifecycle::storage,
    lifecycle::conversion,
    offers::compare,
    schemas::compare,
    cross_version::compare,
];

/// All that changes: the definition as a whole first, then its versions, then the schema of each, and what becomes of
/// objects between versions. What is equal, or lets in more in a way that no part of an object can meet, is left out.
///
/// Schemas may be nested deeply: [`crate::stack::with_room`] gives the work the stack that it may take.
#[must_use]
pub fn compare(upgrade: &Upgrade<'_>) -> Vec<DefinitionChange> {
    let name = upgrade.new.value.pointer("/metadata/name").and_then(Value::as_str);
    let mut changes = Changes::of(name.unwrap_or_default());
    if upgrade.new.versions.is_empty() {
        changes.whole("unhandled", &["spec", "versions"], [None, None], Proof::unknown("versions"));
        return changes.found;
    }
    for part in PARTS {
        part(upgrade, &mut changes);
    }
    changes.found
}

/// Why the API server would refuse the new definition. What the old one has already was once taken, by whatever server.
#[must_use]
pub fn refusals(old: Option<&Value>, new: &Value) -> Vec<Problem> {
    let mut found = problems(new);
    if !found.is_empty() {
        let known = old.map(problems).unwrap_or_default();
        found.retain(|problem| !known.contains(problem));
    }
    found
}
