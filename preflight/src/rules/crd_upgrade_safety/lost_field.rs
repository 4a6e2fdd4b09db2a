//! Remedies for a field that a version loses: in its own schema, or on the way from another version. With conversion
//! strategy None a field survives only in versions that all have it, so a remedy names each version that needs it.

use std::collections::BTreeSet;

use pushback_conversion::{likeness, resembles};
use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{Crd, DefinitionChange, PairLoss, Strategy, Upgrade, converted_losses, listed};
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::{Budget, SchemaStep};
use pushback_crd::schema::pipeline::Resource;
use pushback_crd::stack;
use pushback_objects::finding::Verdict;

/// Most fields that a remedy names.
const SHOWN: usize = 4;

/// Most fields of one parent, and most that are new among them, where a new name is looked for. Every lost field is
/// compared with all of these.
const SIBLINGS: usize = 300;
const NEW_NAMES: usize = 30;

/// The remedy for a field that another version lacks.
pub(super) fn between_versions(upgrade: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    let to = change.version.as_deref().unwrap_or_default();
    let from = change.old.as_ref().and_then(|from| from.as_str()).unwrap_or_default();
    let path = change.node()?;
    let keep = match missing(upgrade.schemas.old.get(from), upgrade.schemas.new.get(to), path) {
        MissingPart::Field => format!("name the field in the schema of \"{to}\" too"),
        MissingPart::Null => {
            format!("set `nullable: true` in the schema of \"{to}\" too: it has the field, and only null is lost")
        }
        MissingPart::Unknown => {
            format!("set `x-kubernetes-preserve-unknown-fields: true` there in the schema of \"{to}\" too")
        }
        MissingPart::Values => format!("keep in \"{to}\" what \"{from}\" has there"),
    };
    Some(match renamed_to(upgrade, (from, to), path) {
        Some(name) => format!(
            "{keep}; or, if it is called `{name}` there, convert it: `pushback storage suggest` drafts the conversion plan"
        ),
        None => format!("{keep}; or convert with a webhook, or do not serve and store both versions"),
    })
}

/// The remedy for a field that its version no longer has.
pub(super) fn removed(upgrade: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    let version = change.version.as_deref().unwrap_or_default();
    let path = change.node()?;
    let others = versions_without(upgrade, version, path);
    let place = match others.as_slice() {
        [] => String::new(),
        others => format!(" in {}", quoted_list([version].into_iter().chain(others.iter().copied()))),
    };
    let way = match renamed_to(upgrade, (version, version), path) {
        Some(name) => format!(
            "or, if it is called `{name}` now, rename it in a new version with a conversion plan, which `pushback storage \
             suggest` drafts"
        ),
        None => "or remove it in a new version with a conversion webhook".to_owned(),
    };
    Some(format!("keep the field{place}, deprecated in its description, until no object uses it; {way}"))
}

/// Fields that other versions need so that a removed version can be kept, as `, and keep spec.a in "v1" too`; empty if none.
pub(super) fn needed_to_keep(upgrade: &Upgrade<'_>, version: &str) -> String {
    let Some(source) = upgrade.old_resource(version) else { return String::new() };
    // Together they may take as much work as one comparison.
    let budget = Budget::of_one();
    let lost = |target: Option<Resource<'_>>| {
        target.map(|target| converted_losses(&source, &target, upgrade.server, &budget)).unwrap_or_default()
    };
    let storage = upgrade.old.versions.iter().find(|it| it.storage).map(|it| it.name);
    let is_stored = upgrade.old.stored_versions().contains(&version);
    let mut needed = BTreeSet::new();
    for other in with_conversion(&upgrade.new, version) {
        // What is lost by the way of objects today is not lost anew.
        let is_read_only = upgrade.new.version(other).is_some_and(|it| !it.storage);
        let read = Some(other).filter(|_| is_read_only && upgrade.old.version(other).is_some_and(|it| it.served));
        let ways = storage.filter(|storage| *storage != version && !is_stored).into_iter().chain(read);
        let known: Vec<PairLoss> = stack::with_room(|| ways.flat_map(|way| lost(upgrade.old_resource(way))).collect());
        let losses = stack::with_room(|| lost(upgrade.new_resource(other))).into_iter();
        let losses = losses.filter(|loss| !known.iter().any(|known| known.includes(loss)));
        needed.extend(losses.map(|loss| (field_path(&loss.path), other)));
    }
    let names: Vec<String> = needed.into_iter().map(|(field, other)| format!("`{field}` in \"{other}\"")).collect();
    if names.is_empty() { String::new() } else { format!(", and keep {} too", listed(&names, SHOWN)) }
}

/// Part of a value that a version lacks and another one keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingPart {
    /// The field.
    Field,
    /// Null as its value.
    Null,
    /// Fields without a name in the schema.
    Unknown,
    /// Values of another kind.
    Values,
}

fn missing(source: Option<&Schema>, target: Option<&Schema>, path: &[SchemaStep]) -> MissingPart {
    let source = source.and_then(|source| SchemaStep::follow(path, source));
    let Some(target) = target.and_then(|target| SchemaStep::follow(path, target)) else { return MissingPart::Field };
    let Some(source) = source else { return MissingPart::Values };
    if source.keeps_unknown() && !target.keeps_unknown() {
        MissingPart::Unknown
    } else if source.nullable && !target.nullable && source.kind == target.kind {
        MissingPart::Null
    } else {
        MissingPart::Values
    }
}

/// Versions that would lose the field once this version keeps it, and that did not lose it before.
fn versions_without<'u>(upgrade: &'u Upgrade<'_>, version: &str, path: &[SchemaStep]) -> Vec<&'u str> {
    let has = |schema: Option<&Schema>| schema.is_some_and(|schema| SchemaStep::follow(path, schema).is_some());
    let others = with_conversion(&upgrade.new, version).into_iter();
    others
        .filter(|other| !has(upgrade.schemas.new.get(*other)))
        .filter(|other| upgrade.old.version(other).is_none() || has(upgrade.schemas.old.get(*other)))
        .collect()
}

/// The other versions between which and this one objects are converted by strategy None.
fn with_conversion<'a>(crd: &Crd<'a>, version: &str) -> Vec<&'a str> {
    if crd.strategy() != Strategy::None {
        return Vec::new();
    }
    let others = crd.versions.iter().filter(|other| other.name != version);
    others.filter(|other| other.served || other.storage).map(|other| other.name).collect()
}

/// The field of the other version that this one may have become: one of the same parent and type that only the other
/// version has, with a name like it, or the only one where only this field is gone.
pub(in crate::rules) fn renamed_to<'u>(
    upgrade: &'u Upgrade<'_>,
    (from, to): (&str, &str),
    path: &[SchemaStep],
) -> Option<String> {
    let (SchemaStep::Property(name), parent) = path.split_last()? else { return None };
    let before = SchemaStep::follow(parent, upgrade.schemas.old.get(from)?)?;
    let after = SchemaStep::follow(parent, upgrade.schemas.new.get(to)?)?;
    let kind = before.properties.get(name)?.kind;
    if before.properties.len().max(after.properties.len()) > SIBLINGS {
        return None;
    }
    let only_in = |one: &'u Schema, other: &'u Schema| {
        let names = one.properties.iter().filter(move |(_, field)| field.kind == kind).map(|(name, _)| name);
        names.filter(|name| !other.properties.contains_key(*name))
    };
    let come: Vec<&String> = only_in(after, before).take(NEW_NAMES + 1).collect();
    match come.as_slice() {
        [] => None,
        [only] if only_in(before, after).take(2).count() == 1 => Some((*only).clone()),
        come if come.len() > NEW_NAMES => None,
        come => {
            let alike = |other: &String| likeness(name, other);
            let best = come.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)))?;
            resembles(name, best).then(|| (*best).clone())
        }
    }
}

/// Name that a field may have in the new CRD, by the path of a finding; `None` for items and free keys on the way.
pub(super) fn renamed_at(upgrade: &Upgrade<'_>, versions: (&str, &str), field: &str) -> Option<String> {
    let paths = upgrade.schemas.old.get(versions.0).map(|schema| path_of(schema, field))?;
    renamed_to(upgrade, versions, &paths?)
}

/// The node of a schema that a path names, as [`field_path`] writes it.
fn path_of(schema: &Schema, field: &str) -> Option<Vec<SchemaStep>> {
    let mut steps = Vec::new();
    let mut at = schema;
    for part in field.split('.') {
        let name = part.split('[').next().unwrap_or_default();
        steps.push(SchemaStep::Property(name.into()));
        at = at.properties.get(name)?;
        for _ in 0..part.matches("[*]").count() {
            let (step, inner) = match &at.items {
                Some(items) => (SchemaStep::Items, items.as_ref()),
                None => (SchemaStep::Additional, at.additional_schema()?),
            };
            steps.push(step);
            at = inner;
        }
    }
    (field_path(&steps) == field).then_some(steps)
}

/// `"v1" and "v1beta1"`.
fn quoted_list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" and ")
}
