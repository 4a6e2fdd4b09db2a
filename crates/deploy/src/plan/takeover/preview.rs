//! Previews a takeover: asks the server in dry-run before the entries are rewritten, because our own apply would not
//! remove anything yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::managed_fields::{self as fields, Element, FieldSet, ManagerEntry};
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Guard, Patch, estimate};
use pushback_crd::definition::listed;
use pushback_manifest::config::{Path, path};
use pushback_objects::object::is_custom_group;
use pushback_objects::source::value_at;
use pushback_objects::{ObjectKey, PathSegment};
use serde_json::{Value, json};

use super::{
    NAMED, OtherVersion, Takeover, autoscaler, is_needed, is_ours, is_predecessor, is_shared, plan, replicas, twin,
    union, versions,
};
use crate::plan::diff::{self, DiffOptions, FieldChange};

/// Maximum number of dry-runs to find the removals that the server refuses; the undecided rest stays.
const PREVIEWS: u32 = 40;

/// The arguments of a takeover.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// Address of the object.
    pub address: &'a Address,
    /// The live object.
    pub live: &'a Value,
    /// The body of the apply.
    pub body: &'a Value,
    /// The dry-run answer to that body.
    pub answer: Answer<'a>,
    /// Whether an autoscaler controls its replicas.
    pub autoscaled: Autoscaled<'a>,
    /// Fields that nobody else is to own.
    pub exclusive: &'a [Path],
    /// Fields that the server does not accept beside the manifest.
    pub blocking: &'a [Vec<Element>],
    /// What the dry-runs are guarded by.
    pub guard: Guard,
}

/// The server's answer to a dry-run of our apply.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The resulting object, with our entry that lists the fields of the manifest.
    Object(&'a Value),
    /// Refused as invalid while predecessors' fields are present.
    Invalid,
}

/// How to determine whether an autoscaler controls the replicas.
#[derive(Clone, Copy, Debug)]
pub enum Autoscaled<'a> {
    /// Already determined.
    Known(bool),
    /// By the targets of these autoscalers, and of those on the cluster.
    By(&'a BTreeSet<ObjectKey>),
}

/// A takeover and its result.
#[derive(Clone, Debug)]
pub struct Continued {
    /// How.
    pub takeover: Takeover,
    /// The object afterwards.
    pub result: Arc<Value>,
    /// The changes, without the removal of predecessors' copies of the manifest.
    pub fields: Vec<FieldChange>,
}

/// Why an object is not taken over.
#[derive(Clone, Debug)]
pub enum Refused {
    /// Impossible; the reason, and what to do.
    Impossible(String),
    /// The server refuses the result.
    Server(ClusterError),
}

/// The result of an apply if predecessors have written the object; `None` if none has.
pub async fn continue_work(scene: Scene<'_>) -> Option<Result<Continued, Refused>> {
    let mut known = fields::managers(scene.live).ok()?;
    if known.is_empty()
        && let Answer::Object(answer) = scene.answer
    {
        // The object has no managed fields yet. Its first apply creates an entry for its earlier authors.
        known = fields::managers(answer).ok()?;
        known.retain(|entry| is_predecessor(&entry.owner));
    }
    let is_blocked =
        matches!(scene.answer, Answer::Invalid) && (!scene.blocking.is_empty() || versions::differ(&known, scene.live));
    let leaves_a_twin = || !twin::filled_in_fields(scene.live, &known, &wanted(&scene, &known)).is_empty();
    if !is_needed(&known) && !is_shared(&known, scene.exclusive, scene.live) && !is_blocked && !leaves_a_twin() {
        return None;
    }
    match planned(&scene, known).await {
        Ok(None) => None,
        Ok(Some(takeover)) => Some(preview(&scene, takeover).await.map_err(Refused::Server)),
        Err(other) => Some(Err(Refused::Impossible(explain(scene.cluster, scene.address, &other).await))),
    }
}

/// Asks the server whether it accepts the manifest without the blocking fields; `None` if it does not.
///
/// # Errors
/// The cluster does not answer, or the object has changed.
pub(super) async fn attempt(scene: &Scene<'_>) -> Result<Option<Continued>, ClusterError> {
    let Ok(known) = fields::managers(scene.live) else { return Ok(None) };
    let Ok(Some(mut takeover)) = planned(scene, known).await else { return Ok(None) };
    let merged = merged(scene, &takeover);
    if is_custom_group(&scene.address.kind.group) {
        takeover.keep(&emptying(&takeover, &merged), scene.live);
    }
    match try_removals(scene, &merged, &takeover, &takeover.removals).await {
        Ok(result) => Ok(Some(continued(scene, takeover, result))),
        Err(error) if is_about_content(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Plans the takeover, without the replicas of an object that is autoscaled.
async fn planned(scene: &Scene<'_>, known: Vec<ManagerEntry>) -> Result<Option<Takeover>, OtherVersion> {
    let Scene { live, exclusive, blocking, .. } = *scene;
    let mut at_version = known.clone();
    versions::move_entries(&mut at_version, live);
    let wanted = wanted(scene, &at_version);
    let keeps_replicas = matches!(scene.autoscaled, Autoscaled::Known(true));
    let planned = plan(live, known.clone(), &wanted, keeps_replicas, exclusive, blocking);
    match &planned {
        Ok(Some(takeover))
            if takeover.removals.iter().any(|removal| replicas().starts_with(removal))
                && let Autoscaled::By(targets) = scene.autoscaled
                && is_autoscaled(scene, targets).await =>
        {
            plan(live, known, &wanted, true, exclusive, blocking)
        }
        _ => planned,
    }
}

/// The fields that the manifest sets.
fn wanted(scene: &Scene<'_>, known: &[ManagerEntry]) -> FieldSet {
    let estimated = || estimate::present(&union(known), scene.body);
    let Answer::Object(answer) = scene.answer else { return estimated() };
    let mut ours = fields::managers(answer).unwrap_or_default();
    ours.retain(|entry| is_ours(&entry.owner));
    // Whoever may not patch writes whole objects, and owns only what changes.
    let is_applied = ours.iter().any(|entry| entry.owner.operation == "Apply");
    let start = if is_applied { FieldSet::default() } else { estimated() };
    ours.iter().fold(start, |set, entry| set.union(&entry.fields))
}

async fn is_autoscaled(scene: &Scene<'_>, targets: &BTreeSet<ObjectKey>) -> bool {
    let Address { kind, namespace, name, .. } = scene.address;
    let key = ObjectKey {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    targets.contains(&key) || autoscaler::is_autoscaled(scene.cluster, &key).await
}

async fn explain(cluster: &dyn Cluster, address: &Address, other: &OtherVersion) -> String {
    let OtherVersion { manager, api_version, stays } = other;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kinds = cluster.kinds().await;
    let served = kinds.is_ok_and(|kinds| kinds.find(group, version, &address.kind.kind).is_some());
    let what = if stays.is_empty() { String::new() } else { format!(" ({})", listed(stays, NAMED)) };
    let start = format!("does not continue the work of {manager} in {api_version}");
    if served {
        return format!(
            "{start}: what the manifest no longer sets of it stays{what}; \
             to have it go, apply the object as {api_version} once, and then in its new version"
        );
    }
    format!(
        "{start}, which is not served any more: what the manifest no longer sets of it stays{what}; \
         remove by hand what is not wanted"
    )
}

/// Finds the removals that the server accepts, if possible all, and the resulting object.
async fn preview(scene: &Scene<'_>, mut takeover: Takeover) -> Result<Continued, ClusterError> {
    let merged = &merged(scene, &takeover);
    if is_custom_group(&scene.address.kind.group) {
        takeover.keep(&emptying(&takeover, merged), scene.live);
    }
    let all = takeover.removals.clone();
    let refusal = match try_removals(scene, merged, &takeover, &all).await {
        Ok(result) => return Ok(continued(scene, takeover, result)),
        Err(error) if is_about_content(&error) && !all.is_empty() => error,
        Err(error) => return Err(error),
    };
    // An object that is invalid without any removal is not invalid because of one.
    let mut result = match try_removals(scene, merged, &takeover, &[]).await {
        Ok(result) => result,
        Err(error) if is_about_content(&error) => return Err(refusal),
        Err(error) => return Err(error),
    };
    let (mut accepted, mut refused): (Vec<Vec<Element>>, Vec<Vec<Element>>) = (Vec::new(), Vec::new());
    let mut asked = 0;
    let mut open = halves(all);
    while let Some(group) = open.pop() {
        asked += 1;
        let tried = [accepted.as_slice(), group.as_slice()].concat();
        match if asked > PREVIEWS { None } else { Some(try_removals(scene, merged, &takeover, &tried).await) } {
            Some(Ok(answer)) => (accepted, result) = (tried, answer),
            Some(Err(error)) if !is_about_content(&error) => return Err(error),
            Some(Err(_)) if group.len() > 1 => open.extend(halves(group)),
            Some(Err(_)) | None => refused.extend(group),
        }
    }
    refused.sort();
    takeover.keep(&refused, scene.live);
    Ok(continued(scene, takeover, result))
}

/// The manifest over the live object.
fn merged(scene: &Scene<'_>, takeover: &Takeover) -> Value {
    match scene.answer {
        Answer::Object(answer) => answer.clone(),
        Answer::Invalid => {
            let mut merged = scene.live.clone();
            let all = union(&takeover.others).union(&takeover.ours.fields);
            estimate::overlay(&mut merged, scene.body, Some(&all));
            merged
        }
    }
}

/// Splits a group of paths; the second half comes first, because groups are taken from the end.
pub(super) fn halves(mut group: Vec<Vec<Element>>) -> Vec<Vec<Vec<Element>>> {
    let second = group.split_off(group.len() / 2);
    [second, group].into_iter().filter(|half| !half.is_empty()).collect()
}

fn is_about_content(error: &ClusterError) -> bool {
    matches!(error.kind, ErrorKind::Invalid | ErrorKind::Denied)
}

fn continued(scene: &Scene<'_>, takeover: Takeover, result: Arc<Value>) -> Continued {
    let fields = super::without_copies(diff::diff(scene.live, &result, &DiffOptions::default()));
    Continued { takeover, result, fields }
}

/// Removals that would leave an otherwise kept map or list empty. The server stores null in its place, and then refuses
/// that in a custom resource at every later apply.
fn emptying(takeover: &Takeover, merged: &Value) -> Vec<Vec<Element>> {
    let mut left = merged.clone();
    for place in places(takeover.removals.iter(), merged) {
        path::remove_at(&mut left, &place);
    }
    let is_emptied = |removal: &&Vec<Element>| {
        let parent = removal.split_last().and_then(|(_, parent)| fields::resolve(parent, &left));
        parent.is_some_and(|parent| !parent.is_empty() && value_at(&left, &parent).is_some_and(is_empty))
    };
    takeover.removals.iter().filter(is_emptied).cloned().collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The result: the merge, without the removed fields, with the server's defaults in their place.
async fn try_removals(
    scene: &Scene<'_>,
    merged: &Value,
    takeover: &Takeover,
    removals: &[Vec<Element>],
) -> Result<Arc<Value>, ClusterError> {
    let mut wanted = merged.clone();
    for place in places(takeover.copies.iter().chain(removals), merged) {
        remove(&mut wanted, &place);
    }
    let operations = Value::Array(operations(scene, &wanted));
    Ok(scene.cluster.patch(scene.address, &Patch::Json(operations), true).await?.object)
}

/// The locations of paths in an object, in an order in which they can be removed: later list items first. All are
/// resolved before any removal, because key fields may be among them.
fn places<'a>(paths: impl Iterator<Item = &'a Vec<Element>>, object: &Value) -> Vec<Vec<PathSegment>> {
    let mut places: Vec<Vec<PathSegment>> = paths.filter_map(|path| fields::resolve(path, object)).collect();
    places.sort_by(|left, right| right.cmp(left));
    places
}

/// Removes a value as the server does: a map or list that loses its last own item becomes null.
fn remove(object: &mut Value, place: &[PathSegment]) {
    path::remove_at(object, place);
    let Some((_, parent)) = place.split_last() else { return };
    if !parent.is_empty() && value_at(object, parent).is_some_and(is_empty) {
        path::set_at(object, parent, Value::Null);
    }
}

/// The JSON patch from the live object to the desired one.
fn operations(scene: &Scene<'_>, wanted: &Value) -> Vec<Value> {
    let live = scene.live;
    let mut operations = vec![scene.guard.operation(live)];
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let pointer = format!("/metadata/{field}");
        push_change(&mut operations, &pointer, live.pointer(&pointer), wanted.pointer(&pointer));
    }
    let fields = live.as_object().into_iter().chain(wanted.as_object()).flat_map(|object| object.keys());
    let fields: BTreeSet<&String> = fields.collect();
    for field in fields {
        if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            push_change(&mut operations, &format!("/{field}"), live.get(field), wanted.get(field));
        }
    }
    operations
}

fn push_change(operations: &mut Vec<Value>, pointer: &str, live: Option<&Value>, wanted: Option<&Value>) {
    match (live, wanted) {
        (Some(live), Some(wanted)) if live != wanted => {
            operations.push(json!({"op": "replace", "path": pointer, "value": wanted}));
        }
        (None, Some(wanted)) => operations.push(json!({"op": "add", "path": pointer, "value": wanted})),
        (Some(_), None) => operations.push(json!({"op": "remove", "path": pointer})),
        _ => {}
    }
}
