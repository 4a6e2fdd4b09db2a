//! How far a migration has come, in a ConfigMap: a killed one goes on where it stopped, and shards know of each other.

use std::sync::Arc;

use pushback_app::record::config_map_kind;
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Patch};
use pushback_crd::definition::StoredState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pass::Shard;

/// Key in the ConfigMap.
const KEY: &str = "progress.json";

/// What is recorded of one migration, or of one shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    uid: String,
    generation: i64,
    /// The storage version.
    target: String,
    /// Where the pass goes on.
    #[serde(rename = "continue")]
    pub next: String,
    /// Whether the pass has come to its end.
    pub written: bool,
}

impl Progress {
    /// A migration that has not begun.
    #[must_use]
    pub fn fresh(state: &StoredState) -> Self {
        Self {
            uid: state.uid.clone(),
            generation: state.generation,
            target: state.storage.clone().unwrap_or_default(),
            next: String::new(),
            written: false,
        }
    }

    /// Whether it is about the same versions of the same definition.
    fn is_of(&self, state: &StoredState) -> bool {
        let fresh = Self::fresh(state);
        (&self.uid, self.generation, &self.target) == (&fresh.uid, fresh.generation, &fresh.target)
    }
}

/// The ConfigMap of a migration.
#[derive(Clone, Debug)]
pub struct ProgressRecord {
    address: Address,
}

impl ProgressRecord {
    /// The record of a definition, or of one of its shards.
    #[must_use]
    pub fn of(namespace: &str, definition: &str, shard: Option<Shard>) -> Self {
        let suffix = shard.map(|Shard { index, count }| format!(".{index}-of-{count}")).unwrap_or_default();
        let name = format!("storage-migration.{definition}{suffix}");
        Self { address: Address::new(config_map_kind(), namespace, &name) }
    }

    /// Whether there is a record, and what it says of the definition as it is now; `None` if it is about another state.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn read(
        &self,
        cluster: &dyn Cluster,
        state: &StoredState,
    ) -> Result<(bool, Option<Progress>), ClusterError> {
        let object = cluster.get(&self.address).await?;
        let parse = |object: Arc<Value>| serde_json::from_str::<Progress>(object.get("data")?.get(KEY)?.as_str()?).ok();
        Ok((object.is_some(), object.and_then(parse).filter(|progress| progress.is_of(state))))
    }

    /// Records. Only this process writes to the record, so that the last write wins.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn write(&self, cluster: &dyn Cluster, progress: &Progress) -> Result<(), ClusterError> {
        let text = serde_json::to_string(progress).unwrap_or_default();
        let patch = Patch::Merge(json!({"data": {KEY: text}}));
        match cluster.patch(&self.address, &patch, false).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                let body = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": self.address.name, "namespace": self.address.namespace},
                    "data": {KEY: text},
                });
                cluster.create(&self.address, &body, false).await.map(drop)
            }
            answer => answer.map(drop),
        }
    }

    /// Removes it.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn remove(&self, cluster: &dyn Cluster) -> Result<(), ClusterError> {
        cluster.delete(&self.address, &pushback_cluster::DeleteOptions::default()).await.map(drop)
    }

    /// `shop/storage-migration.cogs.ex.com`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.address.namespace, self.address.name)
    }
}
