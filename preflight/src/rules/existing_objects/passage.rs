//! The passage of one object through the new definition: read in the version that it is stored in, converted, and
//! written back unchanged at each version, as a migration or an empty patch would. Errors under the live definition are
//! left out.
//!
//! k8s.io/apiextensions-apiserver: `pkg/apiserver/customresource_handler.go` (defaults are those of the stored version,
//! and conversion prunes), `pkg/registry/customresource/strategy.go` (only the version of the request validates).

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition::{StoredState, Strategy, Upgrade};
use pushback_crd::path::{PathSegment, display_path};
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::{bare_object, in_version};
use pushback_crd::schema::pipeline::{self, Admission, Path, Resource, SchemaError};
use pushback_objects::finding::Verdict;
use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use crate::rules::counters::{NAMES, UP_TO, entry};
use crate::rules::planned_objects::{PlannedObject, PlannedObjects, in_version_of_list};

/// Maximum number of fields counted for each fate: maps with free keys have no end of them.
const FIELDS: usize = 50;
/// Where further fields are counted.
const OTHER_FIELDS: &str = "other fields";

/// An effect of the new definition on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    Lossy,
    Altered,
    Blocked,
    Untyped,
    Ratcheted,
    Bumped,
    Undecided,
}

impl Fate {
    pub(super) const ALL: [Self; 7] =
        [Self::Lossy, Self::Altered, Self::Blocked, Self::Untyped, Self::Ratcheted, Self::Bumped, Self::Undecided];

    pub(super) const fn check(self) -> &'static str {
        match self {
            Self::Lossy => "lossy",
            Self::Altered => "altered",
            Self::Blocked => "migrationBlocked",
            Self::Untyped => "applyBroken",
            Self::Ratcheted => "ratcheted",
            Self::Bumped => "generation",
            Self::Undecided => "undecided",
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Lossy | Self::Altered | Self::Blocked | Self::Untyped => Verdict::Breaking,
            Self::Undecided => Verdict::Unknown,
            Self::Ratcheted | Self::Bumped => Verdict::Change,
        }
    }

    pub(super) fn warns(self) -> bool {
        self == Self::Ratcheted
    }

    pub(super) fn says(self, count: u64) -> &'static str {
        match (self, count) {
            (Self::Lossy, 1) => "loses fields at its next write",
            (Self::Lossy, _) => "lose fields at their next write",
            (Self::Altered, 1) => "loses or changes values that come from defaults",
            (Self::Altered, _) => "lose or change values that come from defaults",
            (Self::Blocked, _) => "cannot be written back unchanged",
            (Self::Untyped, 1) => "has a value of another type, and cannot be applied",
            (Self::Untyped, _) => "have a value of another type, and cannot be applied",
            (Self::Ratcheted, 1) => "is invalid, and tolerated as long as that part does not change",
            (Self::Ratcheted, _) => "are invalid, and tolerated as long as that part does not change",
            (Self::Bumped, 1) => "gets another generation at its next write, and is reconciled",
            (Self::Bumped, _) => "get another generation at their next write, and are reconciled",
            (Self::Undecided, _) => "cannot be judged",
        }
    }

    pub(super) fn effect(self) -> Option<&'static str> {
        match self {
            Self::Lossy => Some("pruned"),
            Self::Blocked | Self::Untyped | Self::Ratcheted => Some("rejected"),
            Self::Altered | Self::Bumped => Some("altered"),
            Self::Undecided => None,
        }
    }

    pub(super) fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Lossy => {
                Some("keep the fields in the schema, move their values to others first, or convert with a webhook")
            }
            Self::Altered => Some("keep the default, or set the field in the objects first"),
            Self::Blocked => Some("correct the objects first, or leave out the default or the constraint"),
            Self::Untyped => Some("keep the type, or serve a new version with a conversion webhook"),
            Self::Ratcheted => Some("correct the objects, or keep the schema as wide as it was"),
            Self::Bumped | Self::Undecided => None,
        }
    }
}

/// Fields, by their effect on the object.
type Fates = BTreeMap<Fate, BTreeSet<String>>;

/// Adds a page: for each version and fate the number of objects, some of their names, and the fields. An object counts as
/// this run leaves it.
pub(super) fn fold(
    upgrade: &Upgrade<'_>,
    live: &StoredState,
    planned: &PlannedObjects<'_>,
    state: &mut Value,
    page: &[&Value],
) {
    let Some(seen) = live.readable() else { return };
    for object in page {
        let name = object.full_name();
        for (version, fates) in judge_planned(upgrade, seen, object, planned.after(object)) {
            for (fate, Fields { certain, possible }) in fates {
                add(entry(entry(state, version), fate.check()), &name, &certain, &possible);
            }
        }
    }
}

/// The fields that decide a fate, and those that do so only if no value is stored that a read may have filled in.
#[derive(Debug, Default)]
struct Fields {
    certain: BTreeSet<String>,
    possible: BTreeSet<String>,
}

/// Returns the fates of an object as the run leaves it, by version.
fn judge_planned<'u>(
    upgrade: &'u Upgrade<'_>,
    seen: &str,
    object: &Value,
    planned: PlannedObject,
) -> BTreeMap<&'u str, BTreeMap<Fate, Fields>> {
    let old = upgrade.old_resource(seen);
    let later = match (&planned, &old) {
        (PlannedObject::Deleted, _) => return BTreeMap::new(),
        (PlannedObject::Written(after), Some(old)) => in_version_of_list(upgrade, old, after),
        (PlannedObject::Written(_) | PlannedObject::Terminating | PlannedObject::Unchanged, _) => None,
    };
    let stays = planned != PlannedObject::Terminating;
    let mut all: BTreeMap<&str, BTreeMap<Fate, Fields>> = BTreeMap::new();
    for (object, is_certain) in outcomes(upgrade, seen, object, later.as_deref()) {
        for (version, fates) in judge(upgrade, seen, object) {
            for (fate, names) in fates {
                let fields = all.entry(version).or_default().entry(fate).or_default();
                if is_certain && stays { &mut fields.certain } else { &mut fields.possible }.extend(names);
            }
        }
        for (version, fates) in judge_bare(upgrade, seen, object) {
            for (fate, fields) in fates {
                all.entry(version).or_default().entry(fate).or_default().possible.extend(fields);
            }
        }
    }
    for fields in all.values_mut().flat_map(BTreeMap::values_mut) {
        let Fields { certain, possible } = fields;
        possible.retain(|field| !certain.contains(field));
    }
    all
}

/// Collects the states in which the run may leave an object, and whether it certainly does. A write that the new
/// definition rejects leaves the present one.
fn outcomes<'o>(
    upgrade: &Upgrade<'_>,
    seen: &str,
    object: &'o Value,
    later: Option<&'o [Value]>,
) -> Vec<(&'o Value, bool)> {
    let Some(later) = later else { return vec![(object, true)] };
    // Without the version, the write is made in another one.
    let Some(new) = upgrade.new_resource(seen) else { return later.iter().map(|after| (after, true)).collect() };
    let accepted = |after: &Value| {
        pipeline::update(&new, upgrade.server, &in_version(object, &new), &in_version(after, &new)).accepted()
    };
    let answers: Vec<Option<bool>> = later.iter().map(accepted).collect();
    let written = later.iter().zip(&answers).filter(|(_, answer)| **answer != Some(false));
    let mut found: Vec<(&Value, bool)> = written.map(|(after, _)| (after, true)).collect();
    if answers.iter().any(|answer| *answer != Some(true)) {
        found.push((object, found.is_empty()));
    }
    found
}

/// Returns the fates of an object if no value is stored that a read may have filled in.
fn judge_bare<'u>(upgrade: &'u Upgrade<'_>, seen: &str, object: &Value) -> BTreeMap<&'u str, Fates> {
    let (Some(old), Some(new)) = (upgrade.old_resource(seen), upgrade.new_resource(seen)) else {
        return BTreeMap::new();
    };
    let Some(bare) = bare_object(&old, &new, object) else { return BTreeMap::new() };
    let mut judged = judge(upgrade, seen, &bare.object);
    // A removed field is lost in any case.
    let is_kept = |place: &&Path| node_exists(new.schema, place);
    let altered: BTreeSet<String> = bare.altered.iter().filter(is_kept).map(field).collect();
    if !altered.is_empty() {
        judged.entry(new.version).or_default().insert(Fate::Altered, altered);
    }
    judged
}

/// Returns the fates of an object, which was read at `seen`, by version of the new definition.
fn judge<'u>(upgrade: &'u Upgrade<'_>, seen: &str, object: &Value) -> BTreeMap<&'u str, Fates> {
    let mut judged = BTreeMap::new();
    let (old, new) = (&upgrade.old, &upgrade.new);
    let storage = new.versions.iter().find(|version| version.storage).map(|version| version.name);
    // The version that the object is stored in; one that goes is carried over to the new storage version.
    let Some(stored) = upgrade.new_resource(seen).or_else(|| upgrade.new_resource(storage?)) else { return judged };
    let (Some(before), converts) = (upgrade.old_resource(seen), new.strategy() == Strategy::None) else {
        return judged;
    };
    let was_invalid = known_problems(&pipeline::create(&before, upgrade.server, object));
    let read = relabelled(&stored, object);
    let hidden = lost(&read).difference(&lost(&pipeline::read(&before, object))).cloned().collect::<BTreeSet<_>>();
    for version in &new.versions {
        let is_own = version.name == stored.version;
        if !(version.served || version.storage) || !(is_own || converts) {
            continue;
        }
        let Some(target) = upgrade.new_resource(version.name) else { continue };
        let mut fates = Fates::new();
        let converted = if is_own { read.clone() } else { pipeline::convert(&target, &read.object) };
        // Fields that the conversion lost before are not reported.
        let lost_before = match old.version(version.name).and_then(|_| upgrade.old_resource(version.name)) {
            Some(target) if !is_own && old.strategy() == Strategy::None => lost(&pipeline::convert(&target, object)),
            _ => BTreeSet::new(),
        };
        let mut lossy: BTreeSet<String> = lost(&converted).difference(&lost_before).cloned().collect();
        if is_own {
            lossy.clone_from(&hidden);
        }
        note(&mut fates, Fate::Lossy, lossy);
        let fresh = pipeline::create(&target, upgrade.server, &converted.object);
        let written = pipeline::write_back(&target, upgrade.server, &converted.object);
        let invalid = new_errors(&fresh, &was_invalid);
        let refused = new_errors(&written, &was_invalid);
        let untyped = fresh.errors.iter().filter(|error| is_of_a_type(error.keyword)).map(|error| field(&error.path));
        let untyped: BTreeSet<String> = untyped.filter(|field| invalid.contains(field)).collect();
        let is_blocked = !refused.is_empty();
        note(&mut fates, Fate::Blocked, refused);
        note(&mut fates, Fate::Untyped, untyped);
        if !is_blocked && !fates.contains_key(&Fate::Untyped) {
            note(&mut fates, Fate::Ratcheted, invalid);
        }
        // Defaults of the stored version have been filled in by the read, so that only those of another one are a change.
        note(&mut fates, Fate::Bumped, written.defaulted.iter().filter(|_| !is_blocked).map(field).collect());
        if written.errors.is_empty() {
            let open =
                written.unevaluated.iter().filter(|it| !was_invalid.contains(&(it.path.clone(), it.keyword, None)));
            note(&mut fates, Fate::Undecided, open.map(|it| field(&it.path)).collect());
        }
        if !fates.is_empty() {
            judged.insert(target.version, fates);
        }
    }
    judged
}

/// Returns whether a schema has a node for a place in an object.
fn node_exists(schema: &Schema, place: &[PathSegment]) -> bool {
    let node = place.iter().try_fold(schema, |schema, segment| match segment {
        PathSegment::Key(name) => schema.properties.get(name).or_else(|| schema.additional_schema()),
        PathSegment::Index(_) => schema.items.as_deref(),
    });
    node.is_some()
}

/// The object as it is read from etcd in its version, with the defaults of that version.
fn relabelled(stored: &Resource<'_>, object: &Value) -> Admission {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), format!("{}/{}", stored.group, stored.version).into());
    }
    pipeline::read(stored, &object)
}

fn note(fates: &mut Fates, fate: Fate, fields: BTreeSet<String>) {
    if !fields.is_empty() {
        fates.insert(fate, fields);
    }
}

fn is_of_a_type(keyword: &str) -> bool {
    ["type", "x-kubernetes-int-or-string"].contains(&keyword)
}

fn lost(admission: &Admission) -> BTreeSet<String> {
    admission.pruned.iter().chain(&admission.dropped_nulls).map(field).collect()
}

/// A reason to reject an object, or a question that stays open: its place, the keyword, and the rule.
type Problem = (Path, &'static str, Option<String>);

/// Collects the errors and open questions of an object.
fn known_problems(admission: &Admission) -> BTreeSet<Problem> {
    let open = admission.unevaluated.iter().map(|it| (it.path.clone(), it.keyword, None));
    admission.write_errors().map(problem).chain(open).collect()
}

fn problem(error: &SchemaError) -> Problem {
    (error.path.clone(), error.keyword, error.rule.clone())
}

/// Collects the fields with errors that were not there before.
fn new_errors(admission: &Admission, before: &BTreeSet<Problem>) -> BTreeSet<String> {
    admission.write_errors().filter(|error| !before.contains(&problem(error))).map(|error| field(&error.path)).collect()
}

/// The path of a field, without the numbers of items: `spec.ports[*].name`.
fn field(path: &Path) -> String {
    let mut text = String::new();
    for part in path.split_inclusive(|segment| matches!(segment, PathSegment::Index(_))) {
        let (keys, is_item) = match part.split_last() {
            Some((PathSegment::Index(_), keys)) => (keys, true),
            _ => (part, false),
        };
        let shown = display_path(keys);
        if !text.is_empty() && !shown.is_empty() && !shown.starts_with('[') {
            text.push('.');
        }
        text.push_str(&shown);
        if is_item {
            text.push_str("[*]");
        }
    }
    if text.is_empty() { "the object".to_owned() } else { text }
}

fn add(counts: &mut Value, name: &str, certain: &BTreeSet<String>, possible: &BTreeSet<String>) {
    if !counts.is_object() {
        *counts = json!({"objects": 0, "names": [], "fields": {}});
    }
    counts["objects"] = json!(counts["objects"].as_u64().unwrap_or_default() + 1);
    if certain.is_empty() {
        counts[UP_TO] = true.into();
    }
    if let Some(names) = counts["names"].as_array_mut().filter(|names| names.len() < NAMES) {
        names.push(name.into());
    }
    let certain = certain.iter().map(|field| (field, false));
    for (field, is_possible) in certain.chain(possible.iter().map(|field| (field, true))) {
        let Some(known) = counts["fields"].as_object_mut() else { return };
        let field = if known.contains_key(field) || known.len() < FIELDS { field.as_str() } else { OTHER_FIELDS };
        let counted = known.entry(field).or_insert_with(|| json!({"objects": 0, "example": name}));
        counted["objects"] = json!(counted["objects"].as_u64().unwrap_or_default() + 1);
        if is_possible {
            counted[UP_TO] = true.into();
        }
    }
}
