//! Commands that compare and test releases.

pub mod compare;
pub mod definitions;
pub mod derive;
pub mod execute;
pub mod experiments;
pub mod recover;
pub mod sides;
pub mod simulate;
pub mod step;
pub mod validate;

use std::sync::Arc;

use pushback_cluster::{Cluster, ErrorKind};
use pushback_events::exit::ExitCode;
use pushback_upgrade::lock::LockError;

use super::connect::{ClusterOptions, connect};
use super::error::CommandError;
use super::running::Run;
use super::signals::until_stopped;

/// Connects to an API server; others are refused: only those have admission, defaults and controllers.
async fn connect_server(run: &mut Run, options: &ClusterOptions) -> Result<Arc<dyn Cluster>, CommandError> {
    let notices = run.notices();
    let connecting = async { connect(options, Some(notices), &|text| run.announce(text)).await };
    let cluster = until_stopped(run.stop.clone(), connecting).await?.cluster;
    run.uses(&cluster);
    if cluster.capabilities().server {
        return Ok(cluster);
    }
    let message = format!("{} is no API server: nothing there reacts to an experiment", cluster.description());
    Err(CommandError::usage_with_hint(message, "run against a cluster: --cluster kube"))
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => {
                let hint = "wait for it with --lock-wait; a lock that is not renewed expires by itself";
                Self { code: ExitCode::Locked, ..Self::usage_with_hint(error.to_string(), hint) }
            }
            LockError::Cluster { namespace, error } if error.kind == ErrorKind::NotFound => {
                Self::from(error).saying(format!("namespace {namespace} does not exist"))
            }
            LockError::Cluster { error, .. } => Self::from(error),
        }
    }
}
