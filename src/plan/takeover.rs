//! Objects that another deploy tool has written: its entries in `managedFields` become one entry of ours,
//! so that fields which the manifest no longer sets really go. Afterwards only an apply of ours writes them.

mod autoscaler;
mod preview;
#[cfg(test)]
mod tests;

use pushback_preflight::source::display_path;
use pushback_preflight::{ObjectExt, PathSegment};
use serde_json::{Value, json};

use super::diff::FieldChange;
use super::fields::{self, Element, FieldSet, ManagerEntry, Owner};
use crate::app::identity::ORIGINAL_ANNOTATIONS;
use crate::cluster::{FIELD_MANAGER, Patch};

pub use autoscaler::targets;
pub use preview::{Answer, Autoscaled, Continued, Refused, Scene, continue_work};

/// Deploy tools whose work we continue. What people did by hand (`kubectl edit`) is never continued, nor what was
/// created without a manifest to go by (`kubectl create`, `kubectl run`).
const PREDECESSORS: [&str; 4] = ["kapp", "kubectl-client-side-apply", "kubectl", BEFORE_FIRST_APPLY];

/// What the API server calls the unknown authors of an object that had no entries when it was applied first.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Where kubectl keeps the manifest that it applied last.
const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How many fields a note names.
const NAMED: usize = 3;

/// How an object is taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct Takeover {
    /// Whose entries become ours.
    pub from: Vec<String>,
    /// Whether the live number of replicas stays, although the manifest gives it up: it is an autoscaler's.
    pub keeps_replicas: bool,
    /// Fields that go, because nobody else owns them and the manifest does not set them; the server may put its
    /// defaults in their place.
    removals: Vec<Vec<Element>>,
    /// Copies of the manifest that predecessors kept in annotations; they go, too.
    copies: Vec<Vec<Element>>,
    /// What becomes ours.
    ours: ManagerEntry,
    /// Entries that stay as they are.
    others: Vec<ManagerEntry>,
    /// Fields that the manifest does not set, that the server does not let go, and that nobody owns from now on.
    left: Vec<String>,
}

/// Why the work of predecessors cannot be continued: their entry is in another API version than the object is read in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OtherVersion {
    manager: String,
    api_version: String,
    /// What the manifest does not set of it, as far as the paths are the same.
    stays: Vec<String>,
}

/// What taking an object over means; `None` where no predecessor has written it.
///
/// `known` are the object's entries, `wanted` is what the manifest sets of it.
fn plan(
    live: &Value,
    known: Vec<ManagerEntry>,
    wanted: &FieldSet,
    keeps_replicas: bool,
) -> Result<Option<Takeover>, OtherVersion> {
    let (old, others): (Vec<ManagerEntry>, Vec<ManagerEntry>) =
        known.into_iter().partition(|entry| is_predecessor(&entry.owner) || is_ours(&entry.owner));
    let mut from: Vec<String> =
        old.iter().filter(|entry| !is_ours(&entry.owner)).map(|entry| entry.owner.manager.clone()).collect();
    from.dedup();
    if from.is_empty() {
        return Ok(None);
    }
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
    if keeps_replicas {
        union = union.without(&replicas());
    }
    let copies = copies(&union);
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
    Ok(Some(Takeover { from, keeps_replicas, removals, copies, ours, others, left: Vec::new() }))
}

/// What of an entry was deployed, and not come with the object's life: status is its controller's, whoever wrote it
/// first. The authors of an object without entries are unknown, so what controllers have put there to hold on to it
/// counts as theirs.
fn deployed(entry: &ManagerEntry) -> FieldSet {
    let metadata = |field: &str| [Element::field("metadata"), Element::field(field)];
    let fields = entry.fields.without(&[Element::field("status")]).without(&metadata("generateName"));
    match entry.owner.manager.as_str() {
        BEFORE_FIRST_APPLY => fields.without(&metadata("finalizers")).without(&metadata("ownerReferences")),
        _ => fields,
    }
}

/// Whether a path leads to what names an item of a list. Where the item stays, so does its name: what a manifest leaves
/// out of it is the server's default.
fn names_an_item(path: &[Element]) -> bool {
    match path {
        [.., Element::Key(fields), Element::Field(name)] => fields.iter().any(|(field, _)| field == name),
        _ => false,
    }
}

fn replicas() -> [Element; 2] {
    [Element::field("spec"), Element::field("replicas")]
}

/// Copies of the manifest in annotations. They are of use to nobody else, and may hold Secret values in clear text.
fn copies(set: &FieldSet) -> Vec<Vec<Element>> {
    let places = copy_annotations()
        .map(|name| vec![Element::field("metadata"), Element::field("annotations"), Element::field(name)]);
    places.filter(|place| set.contains(place)).collect()
}

fn copy_annotations() -> impl Iterator<Item = &'static str> {
    ORIGINAL_ANNOTATIONS.into_iter().chain([LAST_APPLIED_ANNOTATION])
}

/// The changes without the end of copies that predecessors kept of the manifest: bookkeeping that is nobody's setting.
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
    /// The patch that makes the predecessors' entries ours, and changes nothing else; refused where the object has
    /// moved on since it had `resource_version`.
    #[must_use]
    pub fn rewrite(&self, resource_version: &str) -> Patch {
        let entries: Vec<Value> = std::iter::once(&self.ours).chain(&self.others).map(ManagerEntry::to_value).collect();
        Patch::Json(json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
            // It replaces what is there, and there may be nothing.
            {"op": "add", "path": "/metadata/managedFields", "value": entries},
        ]))
    }

    /// Gives up removals that the server refuses. What admission has filled in may count as set by whoever sent the
    /// object, and cannot always be taken out again, such as the class of a claim.
    fn keep(&mut self, refused: &[Vec<Element>], live: &Value) {
        self.removals.retain(|removal| !refused.contains(removal));
        for path in refused {
            self.ours.fields = self.ours.fields.without(path);
            self.left.extend(fields::resolve(path, live).map(|path| display_path(&path)));
        }
    }

    /// For people: whose work it is. What goes is part of the diff.
    #[must_use]
    pub fn note(&self) -> String {
        let mut note = format!("continues the work of {}", self.from.join(", "));
        if !self.copies.is_empty() {
            note.push_str(", without the copies of the manifest in annotations");
        }
        if self.keeps_replicas {
            note.push_str("; spec.replicas stays, because it is autoscaled");
        }
        if !self.left.is_empty() {
            note.push_str(&format!("; the server does not let go of {}", named(&self.left)));
        }
        note
    }
}

fn named(places: &[String]) -> String {
    let shown = places[..places.len().min(NAMED)].join(", ");
    match places.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Whether a predecessor's entries are in the object.
pub(super) fn is_needed(managers: &[ManagerEntry]) -> bool {
    managers.iter().any(|entry| is_predecessor(&entry.owner))
}

pub(super) fn is_predecessor(owner: &Owner) -> bool {
    PREDECESSORS.contains(&owner.manager.as_str()) && owner.subresource.is_empty()
}

fn is_ours(owner: &Owner) -> bool {
    owner.manager == FIELD_MANAGER && owner.subresource.is_empty()
}
