//! Reads definitions from a cluster page by page: of each, only what storage versions need is kept.

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kind, Kinds, ListQuery, Pages, Turn};
use pushback_crd::definition::StoredState;
use pushback_crd::definition::crd::{GROUP, KIND};
use serde_json::Value;

/// Definitions per page: one can be over a megabyte.
const PAGE: u32 = 100;

/// The kind of definitions, as this cluster serves it.
///
/// # Errors
/// The cluster serves no CustomResourceDefinitions.
pub fn kind(kinds: &Kinds) -> Result<Arc<Kind>, ClusterError> {
    let message = || ClusterError::new(ErrorKind::UnknownKind, "the cluster serves no CustomResourceDefinitions");
    kinds.preferred(GROUP, KIND).cloned().ok_or_else(message)
}

/// The state of all definitions, sorted by name.
///
/// # Errors
/// The cluster's error.
pub async fn all(cluster: &dyn Cluster, kind: Arc<Kind>) -> Result<Vec<StoredState>, ClusterError> {
    let query = ListQuery { limit: PAGE, ..ListQuery::new(kind, None, "") };
    let (mut pages, mut states) = (Pages::of(cluster, query), Vec::new());
    while let Some(turn) = pages.next().await? {
        match turn {
            Turn::Restart => states.clear(),
            Turn::Page(page) => states.extend(page.items.iter().map(|definition| StoredState::of(definition))),
        }
    }
    states.sort_by(|one: &StoredState, other| one.definition.cmp(&other.definition));
    Ok(states)
}

/// Address of a definition.
#[must_use]
pub fn address(kind: &Arc<Kind>, name: &str) -> Address {
    Address::new(Arc::clone(kind), "", name)
}

/// One definition.
///
/// # Errors
/// The cluster's error; `NotFound` if there is none with this name.
pub async fn one(cluster: &dyn Cluster, kind: &Arc<Kind>, name: &str) -> Result<Arc<Value>, ClusterError> {
    let missing = || {
        let message = format!("there is no CustomResourceDefinition {name}; the name is PLURAL.GROUP");
        ClusterError::new(ErrorKind::NotFound, message)
    };
    cluster.get(&address(kind, name)).await?.ok_or_else(missing)
}

/// The kind of a definition's objects in one version, without discovery: the definition says all that requests need.
#[must_use]
pub fn object_kind(state: &StoredState, version: &str, has_status: bool) -> Arc<Kind> {
    Arc::new(Kind {
        group: state.group.clone(),
        version: version.to_owned(),
        kind: state.kind.clone(),
        plural: state.plural.clone(),
        namespaced: state.namespaced,
        verbs: ["get", "list", "patch", "update"].map(str::to_owned).to_vec(),
        subresources: if has_status { vec!["status".to_owned()] } else { Vec::new() },
        ..Kind::default()
    })
}
