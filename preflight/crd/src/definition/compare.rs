//! The one comparison of two definitions: all that changes, each with its proof.

use serde_json::Value;

use super::change::{Changes, DefinitionChange, Place, Proof};
use super::path::node_at;
use super::{Upgrade, cross_version, lifecycle, offers, schemas};
use crate::schema::contain::Effect;
use crate::schema::invalid::{Problem, problems};

/// All that changes: the definition as a whole first, then its versions, then the schema of each, and what becomes of
/// objects between versions. What is equal is left out.
///
/// Schemas may be nested deeply: [`crate::stack::with_room`] gives the work the stack that it may take.
#[must_use]
pub fn compare(upgrade: &Upgrade<'_>) -> Vec<DefinitionChange> {
    let of_wholes = if upgrade.new.versions.is_empty() { Vec::new() } else { wholes(upgrade) };
    of_wholes.into_iter().chain(proofs(upgrade)).collect()
}

/// What the definition and its versions say beside their schemas.
pub(super) fn wholes(upgrade: &Upgrade<'_>) -> Vec<DefinitionChange> {
    found(
        upgrade,
        &[lifecycle::identity, lifecycle::versions, lifecycle::storage, lifecycle::conversion, offers::compare],
    )
}

/// What the schemas do to objects.
pub(super) fn proofs(upgrade: &Upgrade<'_>) -> Vec<DefinitionChange> {
    found(upgrade, &[incomparable, schemas::compare, cross_version::compare])
}

fn found(upgrade: &Upgrade<'_>, parts: &[fn(&Upgrade<'_>, &mut Changes)]) -> Vec<DefinitionChange> {
    let mut changes = changes(upgrade);
    for part in parts {
        part(upgrade, &mut changes);
    }
    changes.found
}

fn changes(upgrade: &Upgrade<'_>) -> Changes {
    let name = upgrade.new.value.pointer("/metadata/name").and_then(Value::as_str);
    Changes::of(name.unwrap_or_default())
}

/// Nothing can be said of a definition without versions.
fn incomparable(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    if upgrade.new.versions.is_empty() {
        changes.whole("unhandled", &["spec", "versions"], [None, None], Proof::unknown("versions"));
    }
}

/// What no API server takes of the new definition, and did not have to before: of CEL rules, each at its node, and of all else.
pub(super) fn refused(upgrade: &Upgrade<'_>) -> [Vec<DefinitionChange>; 2] {
    let (definition, mut of_rules, mut of_others) = (upgrade.new.value, changes(upgrade), changes(upgrade));
    for problem in refusals(Some(upgrade.old.value), definition) {
        let proof = match problem.is_certain {
            true => Proof::breaking(Effect::Rejected, None),
            false => Proof::unknown("invalid"),
        };
        let values = [None, Some(problem.to_string().into())];
        let is_of_a_rule = problem.path.contains(&"x-kubernetes-validations".into());
        let found = if is_of_a_rule { &mut of_rules } else { &mut of_others };
        match node_at(definition, &problem.path).filter(|_| is_of_a_rule) {
            Some((version, node)) => found.push(Some(&version), Place::Schema(node), "invalid", values, proof),
            None => found.push(None, Place::Document(problem.path), "invalid", values, proof),
        };
    }
    [of_rules.found, of_others.found]
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
