//! The comparison of two definitions: every change, each with its proof.

use serde_json::Value;

use super::change::{Changes, DefinitionChange, Place, Proof};
use super::path::node_at;
use super::{Upgrade, cross_version, lifecycle, offers, schemas};
use crate::schema::contain::Effect;
use crate::schema::invalid::{Problem, problems_on};
use crate::schema::pipeline::Server;

/// All changes, in order: the definition as a whole, its versions, the schema of each version, and the conversion
/// between versions. Unchanged parts are left out.
///
/// Schemas may be deeply nested: call it within [`crate::stack::with_room`].
#[must_use]
pub fn compare(upgrade: &Upgrade<'_>) -> Vec<DefinitionChange> {
    let of_wholes = if upgrade.new.versions.is_empty() { Vec::new() } else { wholes(upgrade) };
    of_wholes.into_iter().chain(proofs(upgrade)).collect()
}

/// Changes outside the schemas: of the definition and its versions.
pub(super) fn wholes(upgrade: &Upgrade<'_>) -> Vec<DefinitionChange> {
    found(
        upgrade,
        &[lifecycle::identity, lifecycle::versions, lifecycle::storage, lifecycle::conversion, offers::compare],
    )
}

/// Changes in the schemas and their effect on objects.
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

/// A definition without versions cannot be compared.
fn incomparable(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    if upgrade.new.versions.is_empty() {
        changes.whole("unhandled", &["spec", "versions"], [None, None], Proof::unknown("versions"));
    }
}

/// Errors for which every API server rejects the new definition and that the old one did not have: those of CEL rules,
/// each at its node, and all others.
pub(super) fn refused(upgrade: &Upgrade<'_>) -> [Vec<DefinitionChange>; 2] {
    let (definition, mut of_rules, mut of_others) = (upgrade.new.value, changes(upgrade), changes(upgrade));
    for problem in refusals(Some(upgrade.old.value), definition, upgrade.server) {
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

/// Why the API server would reject the new definition. Errors that the old definition has too are left out: some server
/// accepted them.
#[must_use]
pub fn refusals(old: Option<&Value>, new: &Value, server: Server) -> Vec<Problem> {
    let mut found = problems_on(server, new);
    if !found.is_empty() {
        let known = old.map(|old| problems_on(server, old)).unwrap_or_default();
        found.retain(|problem| !known.contains(problem));
    }
    found
}
