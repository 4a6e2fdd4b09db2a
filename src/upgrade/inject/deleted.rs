//! Injections that delete an object: ResourceDeletion and SecretDeletion. Only what can be made again as it was.

use std::sync::Arc;

use pushback_preflight::ObjectExt;
use serde_json::Value;

use super::super::change::Step;
use super::existing;
use super::planning::{Planned, Planning, Refusal, allow_object};
use crate::cluster::{Address, ListQuery, list_all};

/// What they hold would be gone, and no body brings it back.
const HOLD_DATA: [&str; 2] = ["PersistentVolume", "PersistentVolumeClaim"];

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
    let lost = |why: &str| Err(Refusal::Forbidden(format!("{address} {why}: its deletion could not be taken back")));
    if HOLD_DATA.contains(&address.kind.kind.as_str()) {
        return lost("holds data");
    }
    if live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return lost("has finalizers, whose owners clear up what belongs to it");
    }
    if address.kind.group.is_empty()
        && address.kind.kind == "Secret"
        && live.text("/type") == "kubernetes.io/service-account-token"
    {
        return lost("is a token that the cluster would revoke");
    }
    if live.text("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted") == "Delete" {
        return lost("takes its volume claims along");
    }
    let claims = planning.kinds.find("", "v1", "PersistentVolumeClaim").cloned();
    let sets = planning.kinds.find("apps", "v1", "StatefulSet").cloned();
    for kind in claims.into_iter().chain(sets) {
        let query = ListQuery::new(Arc::clone(&kind), Some(planning.namespace), "");
        let objects = list_all(planning.cluster, &query).await.map_err(Refusal::Cluster)?.items;
        if let Some(owned) = objects.iter().find(|object| is_owned(object, live.uid())) {
            return lost(&format!("owns {} {}, which goes with it", kind.kind, owned.name()));
        }
    }
    Ok(())
}

fn is_owned(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.into_iter().any(|owner| owner.text("/uid") == uid)
}
