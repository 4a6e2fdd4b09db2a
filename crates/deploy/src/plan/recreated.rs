//! Objects of the app that are deleted together with a parent which this run replaces: the contents of a namespace, the
//! custom resources of a CRD, and dependents by owner reference. They are planned as created again after the parent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use pushback_cluster::{Cluster, ErrorKind, estimate};
use pushback_objects::{Finding, ObjectExt, ObjectKey, Verdict};
use pushback_preflight::Verification;
use serde_json::Value;

use super::body::{self, Stamp};
use super::desired::Desired;
use super::diff::{self, DiffOptions};
use super::guard::refusal_as_new;
use super::live::Live;
use super::refusal::{RULE, Refusal};
use super::{Action, Difference, Planned};

/// Check of the finding for an object whose parent is deleted and not created again.
const CHECK: &str = "deleted-parent";

/// Objects whose dry runs are sent concurrently.
const CONCURRENCY: usize = 32;

/// Parents whose live object this run deletes, with or without replacement.
#[derive(Debug, Default)]
pub(super) struct Parents {
    namespaces: BTreeMap<String, ObjectKey>,
    /// CRDs, by group and kind of their custom resources.
    definitions: BTreeMap<(String, String), ObjectKey>,
    /// Owners, by uid.
    owners: BTreeMap<String, ObjectKey>,
}

impl Parents {
    /// The parents among the objects that the run replaces, or whose deletion an earlier run has begun.
    pub(super) fn find<'p>(objects: impl Iterator<Item = &'p Planned>) -> Self {
        let mut parents = Self::default();
        for planned in objects.filter(|planned| is_replaced(planned)) {
            parents.add(&planned.object.key(), planned.live.as_deref());
        }
        parents
    }

    /// The objects that the run deletes for good.
    pub(super) fn deleted(prunes: &[Planned]) -> Self {
        let mut parents = Self::default();
        for planned in prunes.iter().filter(|planned| !planned.is_orphaned()) {
            parents.add(&planned.object.key(), planned.live.as_deref());
        }
        parents
    }

    fn add(&mut self, key: &ObjectKey, live: Option<&Value>) {
        let text = |pointer: &str| live.map(|live| live.text(pointer)).unwrap_or_default().to_owned();
        match (key.group.as_str(), key.kind.as_str()) {
            ("", "Namespace") => {
                self.namespaces.insert(key.name.clone(), key.clone());
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                self.definitions.insert((text("/spec/group"), text("/spec/names/kind")), key.clone());
            }
            _ => {}
        }
        let uid = text("/metadata/uid");
        if !uid.is_empty() {
            self.owners.insert(uid, key.clone());
        }
    }

    fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.definitions.is_empty() && self.owners.is_empty()
    }

    /// The namespace and the CRD that hold an object. Nothing keeps it while they are deleted.
    fn holders(&self, key: &ObjectKey) -> Vec<&ObjectKey> {
        let definition = self.definitions.get(&(key.group.clone(), key.kind.clone()));
        self.namespaces.get(&key.namespace).into_iter().chain(definition).collect()
    }

    /// The owners of a live object, if all of them are deleted: the garbage collector then deletes the object.
    fn owners(&self, live: &Value) -> Vec<&ObjectKey> {
        let references = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let owners = references.into_iter().flatten().map(|reference| self.owners.get(reference.text("/uid")));
        owners.collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// Whether an object is deleted with a namespace or a CRD of these.
    pub(super) fn hold(&self, key: &ObjectKey) -> bool {
        !self.holders(key).is_empty()
    }
}

/// Whether the live object is deleted and another one takes its place.
fn is_replaced(planned: &Planned) -> bool {
    match planned.action {
        Action::Replace(_) => true,
        // An interrupted run, or somebody else, has begun to delete it.
        Action::Create => planned.live.as_deref().is_some_and(ObjectExt::is_terminating),
        Action::Update(_) | Action::Delete | Action::Keep => false,
    }
}

/// Plans the objects below replaced parents, transitively, as created again. `deleted` are parents that go for good: an
/// object that they own is created again, too.
pub(super) fn assign(
    pairs: &mut [(Desired, Planned)],
    mut parents: Parents,
    deleted: &Parents,
    live: &Live,
    stamp: &Stamp<'_>,
) {
    parents.owners.extend(deleted.owners.iter().map(|(uid, key)| (uid.clone(), key.clone())));
    let mut done = BTreeSet::new();
    loop {
        let before = done.len();
        for (index, (wanted, planned)) in pairs.iter_mut().enumerate() {
            if parents.is_empty() || done.contains(&index) {
                continue;
            }
            let key = wanted.object.key();
            let there = planned.live.clone().or_else(|| live.objects.get(&key).cloned());
            let mut above = parents.holders(&key);
            above.extend(there.as_deref().map(|live| parents.owners(live)).unwrap_or_default());
            let mut above: Vec<ObjectKey> = above.into_iter().filter(|parent| **parent != key).cloned().collect();
            above.sort();
            above.dedup();
            if above.is_empty() {
                continue;
            }
            done.insert(index);
            if let Some(there) = there.filter(|_| is_kept_or_changed(planned)) {
                recreate(wanted, planned, &there, &above, stamp);
                parents.add(&key, Some(&there));
            }
            planned.recreated_after = above;
        }
        if done.len() == before {
            return;
        }
    }
}

/// Whether the plan counts on the live object. One that is terminating is created anew anyway; one that somebody else is to
/// create is only waited for.
fn is_kept_or_changed(planned: &Planned) -> bool {
    match planned.action {
        Action::Keep => !planned.strategies.exists,
        Action::Update(_) | Action::Replace(_) => true,
        Action::Create => planned.live.is_none(),
        Action::Delete => false,
    }
}

fn recreate(wanted: &Desired, planned: &mut Planned, live: &Arc<Value>, above: &[ObjectKey], stamp: &Stamp<'_>) {
    let body = body::build(wanted, None, stamp);
    let parents = above.iter().map(|key| format!("{} {}", key.kind, key.name)).collect::<Vec<_>>().join(" and ");
    let mut notes = vec![format!("deleted with {parents}, and created again after that")];
    notes.extend(body.notes);
    let fields = diff::diff(live, &estimate::replaced(live, &body.value), &DiffOptions::default());
    *planned = Planned {
        action: Action::Replace(Difference::of_fields(fields)),
        live: Some(Arc::clone(live)),
        desired: Some(body.value),
        verification: Verification::NotVerified(format!("it is deleted with {parents} and created again")),
        notes,
        warnings: std::mem::take(&mut planned.warnings),
        no_dry_run: planned.no_dry_run,
        ..Planned::new(wanted)
    };
}

/// Asks the server whether it would accept the objects as new ones: after the deletion of the parent, a refusal would lose
/// them. A custom resource whose CRD is replaced cannot be tried before.
pub(super) async fn verify(cluster: &dyn Cluster, pairs: &mut [(Desired, Planned)]) {
    if !cluster.capabilities().server {
        return;
    }
    let is_tried = |planned: &Planned| {
        let of_definition = planned.recreated_after.iter().any(|key| key.kind == "CustomResourceDefinition");
        matches!(planned.action, Action::Replace(_))
            && !planned.recreated_after.is_empty()
            && !of_definition
            && !planned.no_dry_run
            && !planned.kind_from_set
    };
    let tried = pairs.iter().enumerate().filter(|(_, (_, planned))| is_tried(planned));
    let questions = tried.filter_map(|(index, (_, planned))| {
        let address = planned.address();
        let body = Value::clone(planned.desired.as_deref()?);
        Some(async move { (index, refusal_as_new(cluster, &address, body).await) })
    });
    let questions: Vec<_> = questions.collect();
    let answers: Vec<_> = futures::stream::iter(questions).buffer_unordered(CONCURRENCY).collect().await;
    for (index, refused) in answers {
        // An admission webhook may object to the unused name, beside the old object: then the write decides.
        pairs[index].1.refused = refused.filter(|error| error.kind == ErrorKind::Invalid).map(Refusal::new);
    }
}

/// Findings for objects of the manifests that are deleted with a namespace or a CRD which the manifests lack: no run could
/// create them again.
pub(super) fn below_deleted(pairs: &[(Desired, Planned)], deleted: &Parents) -> Vec<Finding> {
    let lost = pairs.iter().filter(|(wanted, _)| !wanted.strategies.exists);
    lost.filter_map(|(wanted, _)| {
        let key = wanted.object.key();
        let parent = deleted.holders(&key).into_iter().next()?;
        let parent = format!("{} {}", parent.kind, parent.name);
        let message = format!(
            "it is among the manifests, and {parent} is not: the run would delete {parent}, and the object with it"
        );
        let finding = Finding::new(RULE, CHECK, Verdict::Breaking, wanted.object.clone(), message).remedy(format!(
            "add {parent} to the manifests; or, to keep it without the app, annotate it on the cluster with \
                 kapp.k14s.io/delete-strategy: orphan"
        ));
        Some(finding.at(Some(wanted.positions.start())))
    })
    .collect()
}
