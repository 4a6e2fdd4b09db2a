//! Bookkeeping of an app without a record: it lasts as long as the run, and no other run sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use pushback_cluster::{
    Address, ApplyOptions, Capabilities, Cluster, ClusterError, DeleteOptions, Deleted, ErrorKind, Kinds, ListQuery,
    Page, Patch, ServerVersion, WatchEvent, Written, merge,
};
use pushback_objects::ObjectExt;
use serde_json::{Value, json};

use super::identity::RECORD_LABEL;

/// The ConfigMaps of one app, by name.
#[derive(Debug, Default)]
pub(super) struct Memory {
    objects: Mutex<BTreeMap<String, Arc<Value>>>,
}

impl Memory {
    /// For one run.
    pub(super) fn of_run() -> Arc<dyn Cluster> {
        Arc::new(Self::default())
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Value>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, address: &Address, change: impl FnOnce(&mut Value)) -> Written {
        let mut objects = self.objects();
        let before = objects.get(&address.name).cloned();
        let mut object =
            before.as_deref().cloned().unwrap_or_else(|| json!({"metadata": {"labels": {RECORD_LABEL: ""}}}));
        change(&mut object);
        let version =
            before.as_deref().map_or(0, |before| before.resource_version().parse::<u64>().unwrap_or_default());
        object["metadata"]["resourceVersion"] = (version + 1).to_string().into();
        let object = Arc::new(object);
        objects.insert(address.name.clone(), Arc::clone(&object));
        Written { object, created: before.is_none(), warnings: Vec::new() }
    }
}

#[async_trait]
impl Cluster for Memory {
    fn description(&self) -> String {
        "memory".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { server: false, writable: true }
    }

    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        Ok(None)
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        Ok(Arc::default())
    }

    async fn rediscover(&self, _group: &str) -> Result<Arc<Kinds>, ClusterError> {
        Ok(Arc::default())
    }

    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        Ok(self.objects().get(&address.name).cloned())
    }

    async fn list(&self, _query: &ListQuery) -> Result<Page, ClusterError> {
        Ok(Page::default())
    }

    async fn create(&self, address: &Address, body: &Value, _dry_run: bool) -> Result<Written, ClusterError> {
        Ok(self.store(address, |object| *object = body.clone()))
    }

    async fn apply(&self, address: &Address, body: &Value, _options: ApplyOptions) -> Result<Written, ClusterError> {
        Ok(self.store(address, |object| *object = body.clone()))
    }

    async fn patch(&self, address: &Address, patch: &Patch, _dry_run: bool) -> Result<Written, ClusterError> {
        match patch {
            Patch::Merge(patch) => Ok(self.store(address, |object| merge(object, patch))),
            Patch::Json(_) => Err(unsupported()),
        }
    }

    async fn delete(&self, address: &Address, _options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        let last = self.objects().remove(&address.name);
        Ok(last.map(|object| Deleted { object, warnings: Vec::new() }))
    }

    async fn watch(
        &self,
        _query: &ListQuery,
        _resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        Err(unsupported())
    }
}

fn unsupported() -> ClusterError {
    ClusterError::new(ErrorKind::Unsupported, "bookkeeping in memory is neither watched nor patched by paths")
}
