//! The app's record as anybody with access to the namespace may have written it: understood, called damaged, or void.
//! The input is the `data` of the ConfigMap; other texts are tried as its parts.
#![no_main]

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use libfuzzer_sys::fuzz_target;
use pushback_app::inventory::Inventory;
use pushback_app::record::{AppName, observe};
use pushback_cluster::{Address, ApplyOptions, Capabilities, Cluster, ClusterError, DeleteOptions, Deleted, ErrorKind, Kinds, ListQuery, Page, Patch, ServerVersion, WatchEvent, Written};
use pushback_system::environment::Environment;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let data = match serde_json::from_str(text) {
        Ok(data @ Value::Object(_)) => data,
        _ => json!({"spec": "{}", "pushback": text, "pushback-inventory": text, "pushback-lock": text}),
    };
    let record = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"kapp.k14s.io/is-app": ""}},
    });
    let app = AppName { name: "a".to_owned(), namespace: "n".to_owned() };
    let cluster = OneObject(Arc::new(record));
    if let Ok(observed) = futures::executor::block_on(observe(&cluster, &app))
        && let Some(record) = &observed.record
    {
        let _ = (record.label_value(), record.used_kinds(), record.namespaces());
        if let Some(lock) = &record.lock {
            let _ = (lock.describe(), lock.lease(), lock.holder_is_gone(&Environment::fixed(1)));
        }
        let mut again = Inventory::default();
        for shard in observed.inventory.to_shards() {
            again.add_shard(&shard).expect("what is written can be read");
        }
        assert_eq!(again, observed.inventory);
    }
});

/// A cluster in which every name is the record.
#[derive(Debug)]
struct OneObject(Arc<Value>);

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
    async fn list(&self, _: &ListQuery) -> Result<Page, ClusterError> {
        no()
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
