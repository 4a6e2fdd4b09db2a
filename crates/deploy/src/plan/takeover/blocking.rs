//! Finds fields that the manifest does not have and that keep the server from accepting it, such as the `rollingUpdate`
//! of a Deployment that becomes `Recreate`. Their removal is part of the same update.

use std::collections::BTreeSet;

use pushback_cluster::managed_fields::{self as fields, Element, FieldSet, ManagerEntry, Owner, is_of_control_plane};
use pushback_cluster::{ClusterError, estimate, server_message};
use pushback_objects::PathSegment;
use pushback_objects::source::{display_path, value_at};
use serde_json::Value;

use super::preview::{Continued, Scene, attempt, halves};
use super::{is_ours, union};

/// Maximum number of dry-runs to find the smallest set of fields.
const ATTEMPTS: usize = 40;

/// Reason for the removal of a field that the manifest never had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemovalReason {
    /// The server refuses the manifest beside it.
    Refusal,
    /// The server filled it in from a field that the manifest no longer has, and would fill in that one from it.
    Twin,
}

/// A field that is removed although the manifest never had it.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockingField {
    /// The field.
    pub path: Vec<Element>,
    /// Its path for display.
    shown: String,
    /// The managers that have set it; none for a default.
    owners: Vec<Owner>,
    reason: RemovalReason,
    /// The field with everything below it, as a set from the root.
    pub(super) fields: FieldSet,
}

impl BlockingField {
    /// Describes the removal for the reader of the plan.
    pub(super) fn note(&self) -> String {
        let set_by = |owner: &Owner| match owner.time.as_str() {
            "" => owner.manager.clone(),
            time => format!("{} at {time}", owner.manager),
        };
        let origin = match self.owners.as_slice() {
            [] => "filled in by the server".to_owned(),
            owners => format!("set by {}", owners.iter().map(set_by).collect::<Vec<_>>().join(", ")),
        };
        let reason = match self.reason {
            RemovalReason::Refusal => "the server refuses the manifest as long as it is there",
            RemovalReason::Twin => "it is the other name of a field that the manifest no longer has",
        };
        format!("removes {}, {origin}: {reason}", self.shown)
    }
}

/// Takes these fields out of the entries of their managers.
pub(super) fn claim(
    known: &mut [ManagerEntry],
    paths: &[Vec<Element>],
    live: &Value,
    reason: RemovalReason,
) -> Vec<BlockingField> {
    let claimed = paths.iter().filter_map(|path| {
        let place = fields::resolve(path, live)?;
        let mut set = FieldSet::default();
        insert_all(&mut set, &mut path.clone(), value_at(live, &place)?);
        let mut owners = Vec::new();
        for entry in known.iter_mut().filter(|entry| !is_ours(&entry.owner) && entry.owner.subresource.is_empty()) {
            let theirs = entry.fields.only(path);
            if !theirs.is_empty() {
                entry.fields = entry.fields.without(path);
                set = set.union(&theirs);
                owners.push(entry.owner.clone());
            }
        }
        Some(BlockingField { path: path.clone(), shown: display_path(&place), owners, reason, fields: set })
    });
    claimed.collect()
}

/// Inserts a path and all maps below it.
fn insert_all(set: &mut FieldSet, path: &mut Vec<Element>, value: &Value) {
    set.insert(path);
    for (name, value) in value.as_object().into_iter().flatten() {
        path.push(Element::field(name));
        insert_all(set, path, value);
        path.pop();
    }
}

/// Finds the smallest set of fields whose removal lets the server accept the manifest, beginning beside the fields that
/// the refusal names. `None` if the manifest is refused without them, too, or if the dry-runs do not suffice to find the
/// smallest set: a larger one would remove fields that do not block.
///
/// # Errors
/// The cluster does not answer, or the object has changed.
pub async fn unblock(scene: Scene<'_>, refusal: &ClusterError) -> Result<Option<Continued>, ClusterError> {
    let Ok(known) = fields::managers(scene.live) else { return Ok(None) };
    let candidates = candidates(&scene, &known);
    let mut attempts = Attempts { scene, left: ATTEMPTS, is_exhausted: false };
    for set in levels(&candidates, refusal, scene.body) {
        if let Some(found) = attempts.remove(&set).await? {
            let smallest = attempts.minimise((set, found)).await?;
            return Ok(Some(smallest).filter(|_| !attempts.is_exhausted));
        }
    }
    Ok(None)
}

/// A set of fields, and the accepted result without them.
type Removal = (Vec<Vec<Element>>, Continued);

/// A bounded number of dry-runs of removals.
struct Attempts<'a> {
    scene: Scene<'a>,
    left: usize,
    /// True once a dry-run was left out because of the bound.
    is_exhausted: bool,
}

impl Attempts<'_> {
    /// Asks the server whether the manifest is accepted without these fields.
    async fn remove(&mut self, blocking: &[Vec<Element>]) -> Result<Option<Continued>, ClusterError> {
        let Some(left) = self.left.checked_sub(1) else {
            self.is_exhausted = true;
            return Ok(None);
        };
        self.left = left;
        attempt(&Scene { blocking, ..self.scene }).await
    }

    /// Keeps each field that does not block, then each part of a field.
    async fn minimise(&mut self, removal: Removal) -> Result<Continued, ClusterError> {
        let mut smallest = self.without_needless(removal).await?;
        while let Some(smaller) = self.without_a_part(&smallest.0).await? {
            smallest = self.without_needless(smaller).await?;
        }
        Ok(smallest.1)
    }

    /// Keeps the fields whose removal is not needed.
    async fn without_needless(&mut self, (mut set, mut best): Removal) -> Result<Removal, ClusterError> {
        let mut open = if set.len() == 1 { Vec::new() } else { halves(set.clone()) };
        while let Some(group) = open.pop() {
            let rest: Vec<Vec<Element>> = set.iter().filter(|path| !group.contains(path)).cloned().collect();
            match if rest.is_empty() { None } else { self.remove(&rest).await? } {
                Some(found) => (set, best) = (rest, found),
                None if group.len() > 1 => open.extend(halves(group)),
                None => {}
            }
        }
        Ok((set, best))
    }

    /// Replaces the first field that is a map of several by all but one of its parts, if that suffices.
    async fn without_a_part(&mut self, set: &[Vec<Element>]) -> Result<Option<Removal>, ClusterError> {
        let Some((whole, parts)) = set.iter().find_map(|path| Some((path, self.parts(path)?))) else {
            return Ok(None);
        };
        for kept in &parts {
            let others = set.iter().filter(|path| *path != whole);
            let smaller: Vec<Vec<Element>> = others.chain(parts.iter().filter(|part| *part != kept)).cloned().collect();
            if let Some(found) = self.remove(&smaller).await? {
                return Ok(Some((smaller, found)));
            }
        }
        Ok(None)
    }

    /// Returns the parts of a field that is a map of several. A list item is removed whole.
    fn parts(&self, path: &[Element]) -> Option<Vec<Vec<Element>>> {
        let place = fields::resolve(path, self.scene.live)?;
        let map = value_at(self.scene.live, &place)?.as_object().filter(|map| map.len() > 1)?;
        let is_field = matches!(path.last(), Some(Element::Field(_)));
        is_field.then(|| map.keys().map(|name| [path, &[Element::field(name)]].concat()).collect())
    }
}

/// Sets of candidates, each larger than the one before: first those beside the fields that the refusal names.
fn levels(candidates: &[Vec<Element>], refusal: &ClusterError, body: &Value) -> Vec<Vec<Vec<Element>>> {
    let causes: Vec<Vec<String>> =
        refusal.causes.iter().map(|cause| keys(&server_message::path(&cause.field, body))).collect();
    let rank = |candidate: &Vec<Element>| {
        let names: Vec<&String> = candidate.iter().filter_map(Element::name).collect();
        let common = |cause: &Vec<String>| names.iter().zip(cause).take_while(|(left, right)| **left == *right).count();
        causes.iter().map(common).max().unwrap_or(0)
    };
    let ranks: Vec<usize> = candidates.iter().map(rank).collect();
    let mut distinct: Vec<usize> = ranks.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    distinct.reverse();
    let at_least = |least: usize| {
        candidates.iter().zip(&ranks).filter(|(_, rank)| **rank >= least).map(|(path, _)| path.clone()).collect()
    };
    distinct.into_iter().map(at_least).collect()
}

fn keys(path: &[PathSegment]) -> Vec<String> {
    let key = |segment: &PathSegment| match segment {
        PathSegment::Key(name) => Some(name.clone()),
        PathSegment::Index(_) => None,
    };
    path.iter().filter_map(key).collect()
}

/// The topmost fields of the live object that the manifest does not have and our apply does not remove.
fn candidates(scene: &Scene<'_>, known: &[ManagerEntry]) -> Vec<Vec<Element>> {
    let mut found = Vec::new();
    let all = union(known);
    for (field, value) in scene.live.as_object().into_iter().flatten() {
        if matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            continue;
        }
        let element = Element::field(field);
        match scene.body.get(field) {
            None => found.push(vec![element]),
            Some(wanted) => {
                walk(value, wanted, all.below(std::slice::from_ref(&element)), &mut vec![element], &mut found);
            }
        }
    }
    found.retain(|path| !is_of_controller(path, known) && !goes_anyway(path, known));
    found
}

fn walk(live: &Value, wanted: &Value, set: Option<&FieldSet>, path: &mut Vec<Element>, found: &mut Vec<Vec<Element>>) {
    // Written as a whole.
    if set.is_some_and(FieldSet::is_leaf) {
        return;
    }
    let mut visit = |element: Element, live: &Value, wanted: Option<&Value>, below: Option<&FieldSet>| {
        path.push(element);
        match wanted {
            None => found.push(path.clone()),
            Some(wanted) => walk(live, wanted, below, path, found),
        }
        path.pop();
    };
    match (live, wanted) {
        (Value::Object(map), Value::Object(_)) => {
            for (name, value) in map {
                let element = Element::field(name);
                let below = set.and_then(|set| set.below(std::slice::from_ref(&element)));
                let wanted = estimate::child_of(wanted, &element);
                visit(element, value, wanted, below);
            }
        }
        (Value::Array(_), Value::Array(_)) => {
            for (element, below) in set.into_iter().flat_map(FieldSet::children) {
                if let Some(item) = estimate::child_of(live, element) {
                    visit(element.clone(), item, estimate::child_of(wanted, element), Some(below));
                }
            }
        }
        _ => {}
    }
}

/// Whether a controller maintains a field, or it is allocated once.
fn is_of_controller(path: &[Element], known: &[ManagerEntry]) -> bool {
    const ALLOCATED: [&str; 7] =
        ["clusterIP", "clusterIPs", "healthCheckNodePort", "nodeName", "replicas", "volumeName", "claimRef"];
    let is_allocated = matches!(path, [Element::Field(spec), Element::Field(name)] if spec == "spec" && ALLOCATED.contains(&name.as_str()));
    let has = |entry: &ManagerEntry| entry.fields.below(path).is_some_and(|below| !below.is_empty());
    let is_controller = |owner: &Owner| is_of_control_plane(&owner.manager) || !owner.subresource.is_empty();
    is_allocated || known.iter().any(|entry| is_controller(&entry.owner) && has(entry))
}

/// Whether a field is ours alone: our apply removes it.
fn goes_anyway(path: &[Element], known: &[ManagerEntry]) -> bool {
    let mut owners =
        known.iter().filter(|entry| entry.fields.below(path).is_some_and(|below| !below.is_empty())).peekable();
    owners.peek().is_some() && owners.all(|entry| is_ours(&entry.owner))
}
