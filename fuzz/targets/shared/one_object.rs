//! A cluster for targets that read objects which others have written.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use pushback_cluster::{
    Address, ApplyOptions, Capabilities, Cluster, ClusterError, DeleteOptions, Deleted, ErrorKind, Kinds, ListQuery,
    Page, Patch, ServerVersion, WatchEvent, Written,
};
use serde_json::Value;

/// A cluster in which every name, and every list of the object's kind, is one object. Writes are rejected.
#[derive(Debug)]
pub struct OneObject(pub Arc<Value>);

fn no<T>() -> Result<T, ClusterError> {
    Err(ClusterError::new(ErrorKind::Unsupported, "not here"))
}

#[async_trait]
impl Cluster for OneObject {
    fn description(&self) -> String {
        String::new()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { server: false, writable: false }
    }
    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        no()
    }
    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        no()
    }
    async fn rediscover(&self, _: &str) -> Result<Arc<Kinds>, ClusterError> {
        no()
    }
    async fn get(&self, _: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        Ok(Some(Arc::clone(&self.0)))
    }
    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        let is_listed = self.0["kind"] == query.kind.kind.as_str();
        Ok(Page { items: is_listed.then(|| Arc::clone(&self.0)).into_iter().collect(), ..Page::default() })
    }
    async fn create(&self, _: &Address, _: &Value, _: bool) -> Result<Written, ClusterError> {
        no()
    }
    async fn apply(&self, _: &Address, _: &Value, _: ApplyOptions) -> Result<Written, ClusterError> {
        no()
    }
    async fn patch(&self, _: &Address, _: &Patch, _: bool) -> Result<Written, ClusterError> {
        no()
    }
    async fn delete(&self, _: &Address, _: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        no()
    }
    async fn watch(
        &self,
        _: &ListQuery,
        _: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        no()
    }
}
