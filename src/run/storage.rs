//! Storage versions: what is stored where, moving it, and taking old versions off a definition.

pub mod conversion;
pub mod conversion_test;
pub mod convert;
pub mod golden;
pub mod migrate;
pub mod programs;
pub mod replace;
pub mod role;
pub mod status;
pub mod step;
pub mod suggest;

use std::sync::Arc;

use pushback_cluster::{Cluster, Kind};
use pushback_storage::definitions;

use super::connect::{ClusterOptions, Namespaces, connect};
use super::error::CommandError;
use super::options::NamespaceOptions;
use super::running::Run;
use super::signals::until_stopped;

/// A connected API server.
struct Connected {
    cluster: Arc<dyn Cluster>,
    /// The kind of definitions.
    definitions: Arc<Kind>,
    namespaces: Namespaces,
}

/// Connects to an API server: a folder stores nothing.
async fn connected(
    run: &mut Run,
    options: &ClusterOptions,
    namespace: &NamespaceOptions,
) -> Result<Connected, CommandError> {
    let connected = connected_to_any(run, options, namespace).await?;
    if !connected.cluster.capabilities().server {
        return Err(CommandError::usage_with_hint(
            "storage versions are a matter of an API server, and this cluster is a folder",
            "use --cluster kube, which is the default",
        ));
    }
    Ok(connected)
}

/// Connects to an API server or to files that stand for one.
async fn connected_to_any(
    run: &mut Run,
    options: &ClusterOptions,
    namespace: &NamespaceOptions,
) -> Result<Connected, CommandError> {
    let notices = run.notices();
    let connecting = async {
        let connected = connect(options, Some(notices), &|text| run.announce(text)).await?;
        let kinds = connected.cluster.kinds().await?;
        let definitions = definitions::kind(&kinds)?;
        let namespaces = connected.namespaces(namespace);
        Ok(Connected { cluster: connected.cluster, definitions, namespaces })
    };
    let connected = until_stopped(run.stop.clone(), connecting).await?;
    run.uses(&connected.cluster);
    Ok(connected)
}
