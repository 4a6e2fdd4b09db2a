//! Injections that delete an object: ResourceDeletion and SecretDeletion. Only what can be made again as it was.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use pushback_preflight::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::super::change::Step;
use super::planning::{Planned, Planning, Refusal, allow_object, existing};
use crate::cluster::{Address, ClusterError, ErrorKind, Kind, ListQuery, list_all};

/// What they hold would be gone, and no body brings it back.
const HOLD_DATA: [&str; 2] = ["PersistentVolume", "PersistentVolumeClaim"];

/// Kinds of a namespace that are listed at the same time.
const KINDS_AT_ONCE: usize = 8;

/// ResourceDeletion.
pub(super) async fn resource(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let (api_version, kind) = (planning.parameter("apiVersion"), planning.parameter("kind"));
    deletion(planning, &address(planning, api_version, kind)?).await
}

/// SecretDeletion.
pub(super) async fn secret(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    deletion(planning, &address(planning, "v1", "Secret")?).await
}

fn address(planning: &Planning<'_>, api_version: &str, kind: &str) -> Result<Address, Refusal> {
    let given = planning.parameter("namespace");
    if !given.is_empty() && given != planning.namespace {
        let message = format!("it names namespace {given}, and injects in {}", planning.namespace);
        return Err(Refusal::Forbidden(message));
    }
    let address = planning.address(api_version, kind, planning.parameter("name"))?;
    if address.kind.namespaced {
        Ok(address)
    } else {
        Err(Refusal::Forbidden(format!("{address} is in no namespace: what depends on it is not known")))
    }
}

async fn deletion(planning: &Planning<'_>, address: &Address) -> Result<Planned, Refusal> {
    let live = existing(planning.cluster, address).await?;
    allow_object(&live)?;
    irretrievable(planning, address, &live).await?;
    Ok(Planned { steps: vec![Step::deletion(&live)], heals: true, ..Planned::default() })
}

/// Refuses an object with which something goes that its body does not bring back.
async fn irretrievable(planning: &Planning<'_>, address: &Address, live: &Value) -> Result<(), Refusal> {
    let lost = |why: &str| Err(Refusal::Forbidden(format!("{address} {why}: its deletion could not be reverted")));
    if HOLD_DATA.contains(&address.kind.kind.as_str()) {
        return lost("holds data");
    }
    if live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return lost("has finalizers, whose controllers clean up what belongs to it");
    }
    if address.kind.group.is_empty()
        && address.kind.kind == "Secret"
        && live.text("/type") == "kubernetes.io/service-account-token"
    {
        return lost("is a token that the cluster would revoke");
    }
    if live.text("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted") == "Delete" {
        return lost("deletes its volume claims too");
    }
    for dependent in dependents(planning, live.uid()).await.map_err(Refusal::Cluster)? {
        if !comes_back(&dependent) {
            return lost(&format!("owns {}, which is deleted with it", ObjectRef::of(&dependent)));
        }
    }
    Ok(())
}

/// What the garbage collector takes along: everything in the namespace that nobody else owns, step by step.
async fn dependents(planning: &Planning<'_>, uid: &str) -> Result<Vec<Arc<Value>>, ClusterError> {
    let kinds: Vec<Arc<Kind>> = planning
        .kinds
        .iter()
        .filter(|kind| kind.namespaced && kind.offers("list") && kind.offers("delete"))
        .cloned()
        .collect();
    let list = async |kind: Arc<Kind>| {
        let query = ListQuery::new(Arc::clone(&kind), Some(planning.namespace), "");
        match list_all(planning.cluster, &query).await {
            Ok(page) => Ok(page.items),
            // A definition has gone meanwhile, and its objects with it.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::UnknownKind) => Ok(Vec::new()),
            // What is made anew is no loss, whoever may see it.
            Err(error) if error.kind == ErrorKind::Forbidden && is_made_anew(&kind.group, &kind.kind) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    };
    let mut lists = futures::stream::iter(kinds.into_iter().map(list)).buffer_unordered(KINDS_AT_ONCE);
    let mut owned: Vec<(Vec<String>, Arc<Value>)> = Vec::new();
    while let Some(objects) = lists.next().await {
        owned.extend(objects?.into_iter().map(|object| (owners(&object), object)));
    }
    owned.retain(|(owners, _)| !owners.is_empty());
    let mut going = BTreeSet::from([uid.to_owned()]);
    let mut gone = Vec::new();
    loop {
        let (goes, stays): (Vec<_>, Vec<_>) =
            owned.into_iter().partition(|(owners, _)| owners.iter().all(|owner| going.contains(owner)));
        if goes.is_empty() {
            gone.sort_by_key(|object: &Arc<Value>| ObjectRef::of(object).to_string());
            return Ok(gone);
        }
        going.extend(goes.iter().map(|(_, object)| object.uid().to_owned()));
        gone.extend(goes.into_iter().map(|(_, object)| object));
        owned = stays;
    }
}

/// The owners' uids.
fn owners(object: &Value) -> Vec<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.map(|owner| owner.text("/uid").to_owned()).collect()
}

/// Whether a dependent is its controller's, and of a kind of which nothing is lost that the owner does not say.
fn comes_back(dependent: &Value) -> bool {
    let references = dependent.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let has_controller = references.into_iter().any(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let ObjectRef { group, kind, .. } = ObjectRef::of(dependent);
    let is_bound = dependent.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    (has_controller || is_bookkeeping(&group, &kind)) && is_made_anew(&group, &kind) && !is_bound
}

/// What the cluster notes beside an object, and its endpoints.
fn is_bookkeeping(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("" | "events.k8s.io", "Event")
            | ("", "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("coordination.k8s.io", "Lease")
    )
}

/// Kinds that a controller makes of its owner as often as it takes. A Secret may hold what was drawn by lot, a ConfigMap
/// what was counted, a claim or a custom resource anything.
fn is_made_anew(group: &str, kind: &str) -> bool {
    is_bookkeeping(group, kind)
        || matches!(
            (group, kind),
            ("", "Pod" | "Service" | "ServiceAccount")
                | ("apps", "ControllerRevision" | "DaemonSet" | "Deployment" | "ReplicaSet")
                | ("autoscaling", "HorizontalPodAutoscaler")
                | ("networking.k8s.io", "Ingress" | "NetworkPolicy")
                | ("policy", "PodDisruptionBudget")
                | ("rbac.authorization.k8s.io", "Role" | "RoleBinding")
        )
}
