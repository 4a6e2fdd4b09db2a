//! The smallest role that is enough to migrate definitions.

use pushback_crd::definition::StoredState;
use pushback_storage::{definitions, rights};
use serde_json::Value;

use super::connected;
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// Options.
#[derive(Clone, Debug)]
pub struct RoleFor {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Namespace of the record of progress.
    pub namespace: NamespaceOptions,
    /// Names of definitions.
    pub names: Vec<String>,
}

impl RoleFor {
    /// The roles as objects.
    ///
    /// # Errors
    /// No API server, or no such definition.
    pub async fn run(&self, run: &mut Run) -> Result<Vec<Value>, CommandError> {
        let connected = connected(run, &self.cluster, &self.namespace).await?;
        let reading = async {
            let mut states = Vec::new();
            for name in &self.names {
                let definition = definitions::one(&*connected.cluster, &connected.definitions, name).await?;
                states.push(StoredState::of(&definition));
            }
            Ok(rights::roles(&states, &connected.namespaces.record))
        };
        until_stopped(run.stop.clone(), reading).await
    }
}
