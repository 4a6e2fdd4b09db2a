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

use super::error::CommandError;
use crate::cluster::Cluster;

/// Refuses clusters other than API servers: only those have admission, defaults and controllers.
fn require_server(cluster: &dyn Cluster) -> Result<(), CommandError> {
    if cluster.capabilities().server {
        return Ok(());
    }
    let message = format!("{} is no API server: nothing there reacts to an experiment", cluster.description());
    Err(CommandError::usage_with_hint(message, "run against a cluster: --cluster kube"))
}
