//! Confirms a witness with the pipeline, under the old definition and then under the new one. A witness counts only if
//! the old one accepts it and the new one damages it at the place of the difference.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::formula::{child, free_values};
use super::solve::size_of;
use super::step::SchemaStep;
use crate::path::{PathSegment, display_path};
use crate::schema::model::Schema;
use crate::schema::pipeline::{self, Admission, Path, Resource, SchemaError, Server};
use crate::words;

words! {
    /// What happens to an object.
    pub enum Effect {
        /// The server rejects it.
        Rejected = "rejected",
        /// Data in it is pruned.
        Pruned = "pruned",
        /// Values in it change, or defaults appear.
        Altered = "altered",
        /// No client can read it.
        Unreadable = "unreadable",
    }
}

/// The reason given when the search and the pipeline contradict each other: neither can be relied on then.
pub const DISAGREEMENT: &str = "the two ways in which it is checked disagree";

/// What happens to a witness, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Damage {
    /// What happens to it.
    pub effect: Effect,
    /// Path of the damage in the object.
    pub path: Path,
    /// The violated keyword; empty if nothing is rejected.
    pub keyword: String,
    /// The server's error, or a description of the damage.
    pub message: String,
    /// The CEL rule that it breaks, if it breaks one.
    pub rule: Option<String>,
    /// How much else the new definition rejects or drops in the object.
    pub others: usize,
    /// True if only values are affected that the server lets through by a quirk: a list in a string with a format, a
    /// fraction in an integer or string.
    pub is_unusual: bool,
}

impl Damage {
    /// Describes a rejection by the server.
    pub(super) fn rejected(error: &SchemaError) -> Self {
        let SchemaError { path, keyword, message, rule, .. } = error.clone();
        Self { keyword: keyword.to_owned(), rule, ..Self::kept(Effect::Rejected, path, message) }
    }

    /// Describes an object that the server accepts otherwise than it was.
    fn kept(effect: Effect, path: Path, message: String) -> Self {
        Self { effect, path, keyword: String::new(), message, rule: None, others: 0, is_unusual: false }
    }
}

/// The pipeline's verdict on a candidate witness.
#[derive(Clone, Debug)]
pub(super) enum Confirmed {
    Damaged(Damage),
    /// Both definitions treat it alike.
    Unharmed,
    /// The old definition rejects it, at this path for this keyword.
    NotAccepted(Path, String),
    /// This keyword cannot be evaluated.
    Undecided(String),
}

impl Confirmed {
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Damaged(damage) => damage.message.clone(),
            Self::Unharmed => DISAGREEMENT.to_owned(),
            Self::NotAccepted(path, keyword) => {
                format!("no example was found that also meets {keyword} of {}", shown(path))
            }
            Self::Undecided(reason) => reason.clone(),
        }
    }
}

fn shown(path: &[PathSegment]) -> String {
    if path.is_empty() { "the object".to_owned() } else { display_path(path) }
}

/// Maximum number of values that the pipeline examines in one comparison: several times what upgrades of large CRDs take.
pub(super) const VALUES: u64 = 400_000;

/// The reason given when [`VALUES`] is used up.
pub(super) const TOO_MANY: &str = "there are too many or too large changes to try them all";

/// Runs the pipeline on an object, as sent and as then stored; `values` is the rest of [`VALUES`].
pub(super) fn confirm(
    old: &Resource<'_>,
    new: &Resource<'_>,
    server: Server,
    (path, keyword): (&[SchemaStep], &str),
    object: &Value,
    values: &Cell<u64>,
) -> Confirmed {
    if values.get() == 0 {
        return Confirmed::Undecided(TOO_MANY.to_owned());
    }
    let before = pipeline::create(old, server, object);
    spend(values, &before);
    if let Some(error) = before.errors.first() {
        return Confirmed::NotAccepted(error.path.clone(), error.keyword.to_owned());
    }
    if let Some(lost) = before.pruned.first().or(before.dropped_nulls.first()) {
        return Confirmed::NotAccepted(lost.clone(), "the schema".to_owned());
    }
    if let Some(open) = before.unevaluated.first() {
        return Confirmed::Undecided(format!("{} of {}: {}", open.keyword, shown(&open.path), open.reason));
    }
    let stored = &before.object;
    let mut undecided = None;
    let sent_again = (stored != object).then_some(object);
    for sent in std::iter::once(stored).chain(sent_again) {
        let mut after = pipeline::create(new, server, &in_version(sent, new));
        let is_new = |error: &pipeline::SchemaError| !before.status_errors.contains(error);
        after.errors.extend(std::mem::take(&mut after.status_errors).into_iter().filter(is_new));
        spend(values, &after);
        let noted = after.errors.len() + after.pruned.len() + after.dropped_nulls.len();
        if let Some(damage) = damage(&after, path, keyword) {
            return Confirmed::Damaged(Damage { others: noted.saturating_sub(1), ..damage });
        }
        // Rules are evaluated only if there are no other errors; otherwise they are undecided.
        if let Some(place) = altered(old.schema, stored, &after.object, path).into_iter().next() {
            let message = format!("{} changes", shown(&place));
            return Confirmed::Damaged(Damage { others: noted, ..Damage::kept(Effect::Altered, place, message) });
        }
        if let Some(damage) = unapplied(old, new, stored, &after, path) {
            return Confirmed::Damaged(damage);
        }
        if let Some(open) = after.unevaluated.first() {
            undecided = Some(format!("{} of {}: {}", open.keyword, shown(&open.path), open.reason));
        }
    }
    undecided.map_or(Confirmed::Unharmed, Confirmed::Undecided)
}

/// The error of a valid object that could be applied before and cannot be applied now.
fn unapplied(
    old: &Resource<'_>,
    new: &Resource<'_>,
    stored: &Value,
    after: &Admission,
    path: &[SchemaStep],
) -> Option<Damage> {
    let error = pipeline::apply::problem(new.schema, &after.object).filter(|error| reaches(path, &error.path))?;
    let is_new = after.errors.is_empty() && pipeline::apply::problem(old.schema, stored).is_none();
    is_new.then(|| Damage::rejected(&error))
}

fn spend(values: &Cell<u64>, admission: &Admission) {
    let noted = admission.errors.len() + admission.pruned.len() + admission.defaulted.len();
    values.set(values.get().saturating_sub(size_of(&admission.object) + noted as u64));
}

/// The schema node of a place in an object.
pub(super) fn node_of(schema: &Schema, place: &[PathSegment]) -> Vec<SchemaStep> {
    let mut node = Some(schema);
    place
        .iter()
        .map(|segment| match segment {
            PathSegment::Index(_) => {
                node = node.and_then(|node| node.items.as_deref());
                SchemaStep::Items
            }
            PathSegment::Key(key) => {
                let additional = node.and_then(free_values);
                let named = node.and_then(|node| node.properties.get(key));
                let is_free = named.is_none() && additional.is_some();
                node = named.or(additional);
                if is_free { SchemaStep::Additional } else { SchemaStep::Property(key.clone()) }
            }
        })
        .collect()
}

/// Returns an object as read in another version of the same CRD.
#[must_use]
pub fn in_version(object: &Value, resource: &Resource<'_>) -> Value {
    let mut object = object.clone();
    if let Some(version) = object.get_mut("apiVersion") {
        *version = format!("{}/{}", resource.group, resource.version).into();
    }
    object
}

/// The damage at the place of the difference or below, preferably that of the keyword that changed.
fn damage(after: &Admission, path: &[SchemaStep], keyword: &str) -> Option<Damage> {
    let errors = || after.errors.iter().filter(|error| reaches(path, &error.path));
    if let Some(error) = errors().find(|error| error.keyword == keyword).or_else(|| errors().next()) {
        return Some(Damage::rejected(error));
    }
    let lost = |places: &[Path]| places.iter().find(|place| reaches(path, place)).cloned();
    let (place, message) = match (lost(&after.pruned), lost(&after.dropped_nulls)) {
        (Some(place), _) => (place, "is dropped"),
        (None, Some(place)) => (place, "is null, which is dropped"),
        (None, None) => return None,
    };
    let message = format!("{} {message}", shown(&place));
    Some(Damage::kept(Effect::Pruned, place, message))
}

/// Whether a place in an object is at a schema node or below it.
fn reaches(node: &[SchemaStep], place: &[PathSegment]) -> bool {
    node.len() <= place.len() && may_reach(node, place)
}

/// Whether a place in an object is above a schema node, at it, or below it.
fn may_reach(node: &[SchemaStep], place: &[PathSegment]) -> bool {
    node.iter().zip(place).all(|(step, segment)| match (step, segment) {
        (SchemaStep::Property(name), PathSegment::Key(key)) => name == key,
        (SchemaStep::Additional, PathSegment::Key(_)) | (SchemaStep::Items, PathSegment::Index(_)) => true,
        _ => false,
    })
}

/// Finds the places at or below `node` where an object differs, among the fields of the old schema. Differences
/// elsewhere do not hide them. New fields may get defaults.
pub(super) fn altered(schema: &Schema, before: &Value, after: &Value, node: &[SchemaStep]) -> Vec<Path> {
    let mut found = Vec::new();
    collect_altered(schema, (before, after), &Path::new(), node, &mut found);
    found
}

fn collect_altered(
    schema: &Schema,
    values: (&Value, &Value),
    place: &Path,
    node: &[SchemaStep],
    found: &mut Vec<Path>,
) {
    match values {
        (Value::Object(before), Value::Object(after)) => collect_fields(schema, (before, after), place, node, found),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let items = schema.items.as_deref().unwrap_or(schema);
            for (index, values) in before.iter().zip(after).enumerate() {
                let inner = with(place, index.into());
                if may_reach(node, &inner) {
                    collect_altered(items, values, &inner, node, found);
                }
            }
        }
        (before, after) => {
            if reaches(node, place) && !super::values::same(before, after) {
                found.push(place.clone());
            }
        }
    }
}

fn collect_fields(
    schema: &Schema,
    (before, after): (&Map<String, Value>, &Map<String, Value>),
    place: &Path,
    node: &[SchemaStep],
    found: &mut Vec<Path>,
) {
    let known = |name: &str| child(schema, name);
    let mut own = |name: &String, value: &Value| {
        let inner = with(place, name.as_str().into());
        // Reading in another version rewrites it.
        if !may_reach(node, &inner) || place.is_empty() && name == "apiVersion" {
            return;
        }
        match after.get(name) {
            Some(after) => collect_altered(known(name).unwrap_or(schema), (value, after), &inner, node, found),
            None if reaches(node, &inner) => found.push(inner),
            None => {}
        }
    };
    // Only one field of an object leads to a named one.
    if let Some(SchemaStep::Property(name)) = node.get(place.len())
        && let Some((name, value)) = before.get_key_value(name)
    {
        return own(name, value);
    }
    before.iter().for_each(|(name, value)| own(name, value));
    let added = |name: &&String| !before.contains_key(*name) && known(name).is_some();
    let added = after.keys().filter(added).map(|name| with(place, name.as_str().into()));
    found.extend(added.filter(|inner| reaches(node, inner)));
}

fn with(place: &Path, segment: PathSegment) -> Path {
    let mut longer = place.clone();
    longer.push(segment);
    longer
}
