//! Takes an old version off a definition in two steps: no longer served, then removed. Each is refused until the one
//! before is proved.

use std::sync::Arc;

use pushback_cluster::{Cluster, ClusterError, Kind, Patch};
use pushback_crd::definition::StoredState;
use serde_json::{Value, json};

use super::definitions;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Clients can no longer use the version.
    Unserve,
    /// The definition no longer has the version.
    Remove,
}

/// Why a step is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The definition does not have the version.
    Unknown,
    /// It is the storage version.
    IsStorage,
    /// Objects may be stored in it.
    MayBeStored,
    /// It is still served.
    IsServed,
    /// It is the only served version.
    OnlyServed,
}

/// What is in the way of a step; `None` if nothing is.
#[must_use]
pub fn obstacle(state: &StoredState, version: &str, step: Step) -> Option<Obstacle> {
    match (state.is_served(version), step) {
        (None, _) => Some(Obstacle::Unknown),
        _ if state.storage.as_deref() == Some(version) => Some(Obstacle::IsStorage),
        _ if state.stored.iter().any(|stored| stored == version) => Some(Obstacle::MayBeStored),
        (Some(true), Step::Remove) => Some(Obstacle::IsServed),
        (Some(true), Step::Unserve) if state.served().len() == 1 => Some(Obstacle::OnlyServed),
        _ => None,
    }
}

/// Takes a step. The patch is refused if the definition has changed since it was read.
///
/// # Errors
/// The cluster's error; `Conflict` if the definition has changed.
pub async fn take(
    cluster: &dyn Cluster,
    definitions: &Arc<Kind>,
    definition: &Value,
    version: &str,
    step: Step,
    dry_run: bool,
) -> Result<StoredState, ClusterError> {
    let state = StoredState::of(definition);
    let index = state.versions.iter().position(|(name, _)| name == version).unwrap_or_default();
    let path = format!("/spec/versions/{index}");
    let change = match step {
        Step::Unserve => json!({"op": "replace", "path": format!("{path}/served"), "value": false}),
        Step::Remove => json!({"op": "remove", "path": path}),
    };
    let patch = Patch::Json(json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": state.resource_version},
        {"op": "test", "path": format!("/spec/versions/{index}/name"), "value": version},
        change,
    ]));
    let address = definitions::address(definitions, &state.definition);
    Ok(StoredState::of(&cluster.patch(&address, &patch, dry_run).await?.object))
}
