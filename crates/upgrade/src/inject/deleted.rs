//! Injections that delete an object: ResourceDeletion and SecretDeletion. Only objects that can be restored exactly;
//! FinalizerBlock asks here, too.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use pushback_cluster::{Address, ClusterError, ErrorKind, Kind, ListQuery, list_all};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::super::change::Step;
use super::planning::{Planned, Planning};
use super::scope::Refusal;

/// Kinds whose data is lost with the object, whatever its body says.
const HOLD_DATA: [&str; 2] = ["PersistentVolume", "PersistentVolumeClaim"];

/// Most kinds of a namespace listed concurrently.
const KINDS_AT_ONCE: usize = 8;

/// ResourceDeletion: deletes one object.
pub(super) async fn resource(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let (api_version, kind) = (planning.parameter("apiVersion"), planning.parameter("kind"));
    deletion(planning, &address(planning, api_version, kind)?).await
}

/// SecretDeletion: deletes one Secret.
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
    let live = planning.target(address).await?;
    if live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        let why = "has finalizers, whose controllers clean up what belongs to it: its deletion could not be reverted";
        return Err(Refusal::Forbidden(format!("{address} {why}")));
    }
    irretrievable(planning, address, &live, Allowed::Remade).await?;
    Ok(Planned { steps: vec![Step::deletion(&live)], heals: true, ..Planned::default() })
}

/// Which dependents of an object may be deleted with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// None.
    Nothing,
    /// Those that a controller makes again as they were.
    Remade,
}

/// Refuses an object whose deletion removes more than its body can restore, finalizers aside.
pub(super) async fn irretrievable(
    planning: &Planning<'_>,
    address: &Address,
    live: &Value,
    allowed: Allowed,
) -> Result<(), Refusal> {
    let lost = |why: &str| Err(Refusal::Forbidden(format!("{address} {why}: its deletion could not be reverted")));
    if HOLD_DATA.contains(&address.kind.kind.as_str()) {
        return lost("holds data");
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
        let ObjectRef { group, kind, .. } = ObjectRef::of(&dependent);
        let is_allowed = match allowed {
            Allowed::Nothing => is_bookkeeping(&group, &kind),
            Allowed::Remade => comes_back(&dependent),
        };
        if !is_allowed {
            return lost(&format!("owns {}, which is deleted with it", ObjectRef::of(&dependent)));
        }
    }
    Ok(())
}

/// Objects that the garbage collector deletes along: those in the namespace with no other owner, transitively.
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
            // The definition was deleted meanwhile, and its objects with it.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::UnknownKind) => Ok(Vec::new()),
            // A re-creatable object is no loss, even if it may not be listed.
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

/// Uids of the owners.
fn owners(object: &Value) -> Vec<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.map(|owner| owner.text("/uid").to_owned()).collect()
}

/// Whether a controller re-creates a dependent of this kind, with nothing in it that the owner does not determine.
fn comes_back(dependent: &Value) -> bool {
    let references = dependent.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let has_controller = references.into_iter().any(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let ObjectRef { group, kind, .. } = ObjectRef::of(dependent);
    let is_bound = dependent.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    (has_controller || is_bookkeeping(&group, &kind)) && is_made_anew(&group, &kind) && !is_bound
}

/// Bookkeeping objects of the cluster, such as events and endpoints.
fn is_bookkeeping(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("" | "events.k8s.io", "Event")
            | ("", "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("coordination.k8s.io", "Lease")
    )
}

/// Kinds that a controller can always re-create from the owner. A Secret may hold random data, a ConfigMap counters, a
/// claim or custom resource anything.
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
