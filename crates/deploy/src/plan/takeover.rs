//! Takes over objects that another deploy tool wrote: its entries in `managedFields` become one entry of ours,
//! so that fields which the manifest no longer sets are really removed. Afterwards only our apply writes them.

mod autoscaler;
mod blocking;
mod exclusive;
mod preview;
#[cfg(test)]
mod tests;
mod twin;
mod versions;

use pushback_app::identity::ORIGINAL_ANNOTATIONS;
use pushback_cluster::managed_fields::{self as fields, Element, FieldSet, ManagerEntry, Owner};
use pushback_cluster::{FIELD_MANAGER, Patch};
use pushback_crd::definition::listed;
use pushback_objects::object::split_api_version;
use pushback_objects::source::display_path;
use pushback_objects::{ObjectExt, PathSegment};
use serde_json::{Value, json};

use super::diff::FieldChange;

pub use autoscaler::targets;
use blocking::RemovalReason;
pub use blocking::{BlockingField, unblock};
pub use exclusive::{exclusive_paths, is_shared};
pub use preview::{Answer, Autoscaled, Continued, Refused, Scene, continue_work};
use pushback_manifest::config::Path;
use versions::Moved;

/// Deploy tools whose objects are taken over. Manual edits (`kubectl edit`) are never taken over, nor objects created
/// without a manifest (`kubectl create`, `kubectl run`).
const PREDECESSORS: [&str; 4] = ["kapp", "kubectl-client-side-apply", "kubectl", BEFORE_FIRST_APPLY];

/// The API server's name for the unknown managers of an object without entries at its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Annotation in which kubectl stores the last applied manifest.
const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum number of fields that a note names.
const NAMED: usize = 3;

/// The plan for taking over an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Takeover {
    /// The managers whose entries become ours.
    pub from: Vec<String>,
    /// The managers whose fields become ours because a Config makes their ownership exclusive.
    pub shared_with: Vec<String>,
    /// Where it is exclusive.
    pub exclusive: Vec<Path>,
    /// Fields that the server does not accept beside the manifest.
    pub blocking: Vec<BlockingField>,
    /// Changes by the move of entries to the API version of the manifest.
    moved: Moved,
    /// Whether the live number of replicas stays although the manifest no longer sets it: an autoscaler maintains it.
    pub keeps_replicas: bool,
    /// Fields to remove, because nobody else owns them and the manifest does not set them; defaults may return.
    removals: Vec<Vec<Element>>,
    /// Copies of the manifest that predecessors stored in annotations; removed as well.
    copies: Vec<Vec<Element>>,
    /// Our entry afterwards.
    ours: ManagerEntry,
    /// Entries that remain unchanged.
    others: Vec<ManagerEntry>,
    /// Fields that the manifest does not set, the server refuses to remove, and nobody will own.
    left: Vec<String>,
}

/// Why a takeover is impossible: the predecessor's entry is in another API version than the live object, and that is not a
/// custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OtherVersion {
    manager: String,
    api_version: String,
    /// Its fields that the manifest does not set, as far as the paths are comparable.
    stays: Vec<String>,
}

/// Plans the takeover of an object; `None` if no predecessor has written it.
///
/// `known` are the object's entries, `wanted` are the fields that the manifest sets, `blocking` those that have to go.
fn plan(
    live: &Value,
    mut known: Vec<ManagerEntry>,
    wanted: &FieldSet,
    keeps_replicas: bool,
    exclusive: &[Path],
    blocking: &[Vec<Element>],
) -> Result<Option<Takeover>, OtherVersion> {
    let moved = versions::move_entries(&mut known, live);
    let filled_in = twin::filled_in_fields(live, &known, wanted);
    let refused: Vec<Vec<Element>> = blocking.iter().filter(|path| !filled_in.contains(path)).cloned().collect();
    let mut blocking = blocking::claim(&mut known, &refused, live, RemovalReason::Refusal);
    blocking.extend(blocking::claim(&mut known, &filled_in, live, RemovalReason::Twin));
    let claimed = exclusive::claim(&mut known, exclusive, live);
    let (mut old, others): (Vec<ManagerEntry>, Vec<ManagerEntry>) =
        known.into_iter().partition(|entry| is_predecessor(&entry.owner) || is_ours(&entry.owner));
    let mut from: Vec<String> =
        old.iter().filter(|entry| !is_ours(&entry.owner)).map(|entry| entry.owner.manager.clone()).collect();
    from.dedup();
    let mut shared_with: Vec<String> = claimed.iter().map(|entry| entry.owner.manager.clone()).collect();
    shared_with.sort();
    shared_with.dedup();
    if from.is_empty() && shared_with.is_empty() && blocking.is_empty() && moved.versions.is_empty() {
        return Ok(None);
    }
    old.extend(claimed);
    let kept = others.iter().fold(wanted.clone(), |kept, entry| kept.union(&entry.fields));
    let api_version = live.text("/apiVersion");
    if let Some(entry) = old.iter().find(|entry| entry.owner.api_version != api_version) {
        let lost = entry.fields.lost(&kept);
        return Err(OtherVersion {
            manager: entry.owner.manager.clone(),
            api_version: entry.owner.api_version.clone(),
            stays: lost.iter().filter_map(|path| fields::resolve(path, live)).map(|path| display_path(&path)).collect(),
        });
    }
    let mut union = old.iter().fold(FieldSet::default(), |union, entry| union.union(&deployed(entry)));
    for field in &blocking {
        union = union.union(&field.fields);
    }
    if keeps_replicas {
        union = union.without(&replicas());
    }
    let mut copies = copies(&union);
    copies.retain(|copy| !wanted.contains(copy));
    let lost = union.lost(&kept).into_iter().filter(|path| fields::resolve(path, live).is_some());
    let removals = lost.filter(|path| !copies.contains(path) && !names_an_item(path)).collect();
    let latest = old.iter().map(|entry| entry.owner.time.as_str()).max().unwrap_or_default();
    let ours = ManagerEntry {
        owner: Owner {
            manager: FIELD_MANAGER.to_owned(),
            operation: "Apply".to_owned(),
            subresource: String::new(),
            api_version: api_version.to_owned(),
            time: latest.to_owned(),
        },
        fields: union,
    };
    let exclusive = exclusive.to_vec();
    Ok(Some(Takeover {
        from,
        shared_with,
        exclusive,
        blocking,
        moved,
        keeps_replicas,
        removals,
        copies,
        ours,
        others,
        left: Vec::new(),
    }))
}

/// The deployed part of an entry, without fields of the object's life cycle: status belongs to controllers, whoever
/// wrote it first. The managers of an object without entries are unknown, so finalizers and owners count as theirs.
fn deployed(entry: &ManagerEntry) -> FieldSet {
    let metadata = |field: &str| [Element::field("metadata"), Element::field(field)];
    let fields = entry.fields.without(&[Element::field("status")]).without(&metadata("generateName"));
    let fields = if entry.owner.api_version == "v1" { with_data(fields) } else { fields };
    match entry.owner.manager.as_str() {
        BEFORE_FIRST_APPLY => fields.without(&metadata("finalizers")).without(&metadata("ownerReferences")),
        _ => fields,
    }
}

/// The fields of a Secret with `data` for `stringData`: the server stores the values there, but an apply owns what its
/// manifest has. Without this, a key that the manifest no longer has would stay.
fn with_data(fields: FieldSet) -> FieldSet {
    let written = [Element::field("stringData")];
    let Some(keys) = fields.below(&written) else { return fields };
    let mut stored = fields.without(&written);
    for (key, _) in keys.children() {
        stored.insert(&[Element::field("data"), key.clone()]);
    }
    stored
}

/// Whether a path leads to a key field of a list item. As long as the item stays, so does its key: one that the
/// manifest leaves out is the server's default.
fn names_an_item(path: &[Element]) -> bool {
    match path {
        [.., Element::Key(fields), Element::Field(name)] => fields.iter().any(|(field, _)| field == name),
        _ => false,
    }
}

fn replicas() -> [Element; 2] {
    [Element::field("spec"), Element::field("replicas")]
}

/// Copies of the manifest in annotations. Of no use to other tools, and they may contain Secret values in clear text.
fn copies(set: &FieldSet) -> Vec<Vec<Element>> {
    let places = copy_annotations()
        .map(|name| vec![Element::field("metadata"), Element::field("annotations"), Element::field(name)]);
    places.filter(|place| set.contains(place)).collect()
}

fn copy_annotations() -> impl Iterator<Item = &'static str> {
    ORIGINAL_ANNOTATIONS.into_iter().chain([LAST_APPLIED_ANNOTATION])
}

/// The changes without the removal of predecessors' copies of the manifest, which is mere bookkeeping.
#[must_use]
pub fn without_copies(mut changes: Vec<FieldChange>) -> Vec<FieldChange> {
    changes.retain(|change| match change.path.as_slice() {
        [PathSegment::Key(metadata), PathSegment::Key(annotations), PathSegment::Key(name)] => {
            change.new.is_some()
                || metadata != "metadata"
                || annotations != "annotations"
                || !copy_annotations().any(|copy| copy == name)
        }
        _ => true,
    });
    changes
}

impl Takeover {
    /// The patch that makes the predecessors' entries ours and changes nothing else; refused if the object no longer
    /// has `resource_version`.
    #[must_use]
    pub fn rewrite(&self, resource_version: &str) -> Patch {
        let entries: Vec<Value> = std::iter::once(&self.ours).chain(&self.others).map(ManagerEntry::to_value).collect();
        Patch::Json(json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
            // `replace` requires that it exists, and it may not.
            {"op": "add", "path": "/metadata/managedFields", "value": entries},
        ]))
    }

    /// Keeps the entries of the status as this later read of the object has them. Nothing else may have changed.
    pub fn keep_status_of(&mut self, seen: &Value) {
        let Ok(known) = fields::managers(seen) else { return };
        self.others.retain(|entry| entry.owner.subresource != fields::STATUS);
        let mut status: Vec<ManagerEntry> =
            known.into_iter().filter(|entry| entry.owner.subresource == fields::STATUS).collect();
        versions::move_entries(&mut status, seen);
        self.others.extend(status);
    }

    /// Drops removals that the server refuses. Values set by admission may count as set by the client, and cannot
    /// always be removed, such as the class of a claim.
    fn keep(&mut self, refused: &[Vec<Element>], live: &Value) {
        self.removals.retain(|removal| !refused.contains(removal));
        for path in refused {
            self.ours.fields = self.ours.fields.without(path);
            self.left.extend(fields::resolve(path, live).map(|path| display_path(&path)));
        }
    }

    /// Notes that name the predecessors and the fields that have to go. The removals are part of the diff.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let continued = (!self.from.is_empty() || !self.shared_with.is_empty()).then(|| self.note());
        let moved = (!self.moved.versions.is_empty()).then(|| {
            let Moved { versions, lost } = &self.moved;
            let (_, version) = split_api_version(&self.ours.owner.api_version);
            let mut note =
                format!("moves the field ownership recorded for {} to {version} first", listed(versions, NAMED));
            if !lost.is_empty() {
                let lost = listed(lost, NAMED);
                note.push_str(&format!("; {version} does not have {lost}: check by hand where these values are now"));
            }
            note
        });
        continued.into_iter().chain(moved).chain(self.blocking.iter().map(BlockingField::note)).collect()
    }

    fn note(&self) -> String {
        let mut parts = Vec::new();
        if !self.from.is_empty() {
            parts.push(format!("continues the work of {}", self.from.join(", ")));
        }
        if !self.shared_with.is_empty() {
            parts.push(format!("owns alone what {} has set too", self.shared_with.join(", ")));
        }
        let mut note = parts.join("; ");
        if !self.copies.is_empty() {
            note.push_str(", without the copies of the manifest in annotations");
        }
        if self.keeps_replicas {
            note.push_str("; spec.replicas stays, because it is autoscaled");
        }
        if !self.left.is_empty() {
            note.push_str(&format!("; the server does not let go of {}", listed(&self.left, NAMED)));
        }
        note
    }
}

/// Whether the object has entries of a predecessor.
pub(super) fn is_needed(managers: &[ManagerEntry]) -> bool {
    managers.iter().any(|entry| is_predecessor(&entry.owner))
}

pub fn is_predecessor(owner: &Owner) -> bool {
    PREDECESSORS.contains(&owner.manager.as_str()) && owner.subresource.is_empty()
}

fn union(known: &[ManagerEntry]) -> FieldSet {
    known.iter().fold(FieldSet::default(), |union, entry| union.union(&entry.fields))
}

fn is_ours(owner: &Owner) -> bool {
    owner.manager == FIELD_MANAGER && owner.subresource.is_empty()
}
