//! Which versions the objects of each definition are stored in, and what is left to do about it.

use std::sync::Arc;

use futures::{StreamExt, stream};
use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kind, pages};
use pushback_crd::definition::StoredState;
use serde::Serialize;

use super::definitions;

/// Requests for numbers of objects at the same time.
const COUNTS_AT_ONCE: usize = 8;

/// The state of the definitions that were asked for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// Version of this format.
    pub schema_version: u32,
    /// Number of definitions that were read.
    pub definitions_read: usize,
    /// The definitions, sorted by name.
    pub definitions: Vec<DefinitionStatus>,
}

/// The state of one definition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionStatus {
    /// What the definition says.
    #[serde(flatten)]
    pub state: StoredState,
    /// Names of the served versions.
    pub served: Vec<String>,
    /// Versions besides the storage version that objects may be stored in.
    pub debt: Vec<String>,
    /// Listed versions that the definition does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<String>,
    /// What keeps the objects from being moved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// Number of objects; only where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Why the objects cannot be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl DefinitionStatus {
    fn of(state: StoredState) -> Self {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Self {
            served: owned(state.served()),
            debt: owned(state.debt()),
            undefined: owned(state.undefined()),
            blockers: state.blockers().iter().map(ToString::to_string).collect(),
            objects: None,
            unreadable: None,
            state,
        }
    }

    /// Whether there is something to do.
    #[must_use]
    pub fn has_debt(&self) -> bool {
        !self.state.is_settled()
    }
}

impl StatusReport {
    /// The definitions with something to do.
    pub fn in_debt(&self) -> impl Iterator<Item = &DefinitionStatus> {
        self.definitions.iter().filter(|definition| definition.has_debt())
    }
}

/// Reads the definitions with these names, or all, and counts the objects of those with something to do.
///
/// # Errors
/// The cluster's error; no such definition.
pub async fn read(cluster: &dyn Cluster, kind: &Arc<Kind>, names: &[String]) -> Result<StatusReport, ClusterError> {
    let states = if names.is_empty() {
        definitions::all(cluster, Arc::clone(kind)).await?
    } else {
        let mut states = Vec::new();
        for name in names {
            states.push(StoredState::of(&*definitions::one(cluster, kind, name).await?));
        }
        states
    };
    let definitions_read = states.len();
    let definitions = stream::iter(states.into_iter().map(DefinitionStatus::of))
        .map(|definition| counted(cluster, definition))
        .buffered(COUNTS_AT_ONCE)
        .collect()
        .await;
    Ok(StatusReport { schema_version: 1, definitions_read, definitions })
}

async fn counted(cluster: &dyn Cluster, mut definition: DefinitionStatus) -> DefinitionStatus {
    if definition.has_debt() {
        match count(cluster, &definition.state).await {
            Ok(count) => definition.objects = count,
            Err(error) => definition.unreadable = Some(error.message),
        }
    }
    definition
}

/// The number of objects; `None` if no version is served.
async fn count(cluster: &dyn Cluster, state: &StoredState) -> Result<Option<u64>, ClusterError> {
    let Some(version) = state.readable() else { return Ok(None) };
    let kind = definitions::object_kind(state, version, false);
    match pages::count(cluster, &kind).await {
        Ok(counted) => Ok(Some(counted.objects)),
        Err(error) if error.kind == ErrorKind::UnknownKind => Ok(None),
        Err(error) => Err(error),
    }
}
