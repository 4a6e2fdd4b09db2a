//! An app whose every object is as it was applied, on a cluster in memory that answers nothing but gets and lists:
//! an unchanged object costs no request.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use pushback_app::identity::RECORD_LABEL;
use pushback_app::inventory::{Entry, Inventory};
use pushback_app::record::{AppName, OwnPart, observe, spec_for};
use pushback_cluster::{
    Address, ApplyOptions, Capabilities, Cluster, ClusterError, DeleteOptions, Deleted, ErrorKind, FIELD_MANAGER, Kind,
    Kinds, ListQuery, Page, Patch, ServerVersion, WatchEvent, Written,
};
use pushback_deploy::plan::body::{self, Stamp};
use pushback_deploy::plan::desired::{Desired, Placement, prepare};
use pushback_deploy::plan::digest::{digest, live_digest};
use pushback_deploy::plan::{Options, Plan, Request, build};
use pushback_manifest::config::Config;
use pushback_manifest::yaml::{Limits, load};
use pushback_manifest::{InputWarning, Manifest};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::{Value, json};

use super::{objects, work};

const NAMESPACE: &str = "default";
const APP: &str = "bench";
const LABEL: &str = "1700000000000000000";

/// The app and its cluster.
#[derive(Debug)]
pub(crate) struct Unchanged {
    cluster: Memory,
    kinds: Kinds,
    config: Config,
    desired: Vec<Desired>,
}

impl Unchanged {
    /// An app of so many ConfigMaps.
    pub(crate) fn of(count: usize) -> Self {
        let config = work::config();
        let kinds = kinds();
        let desired = read(&objects::yaml(&objects::config_maps(count)), &kinds);
        let mut inventory = Inventory::default();
        let mut items = Vec::with_capacity(count);
        for (number, wanted) in desired.iter().enumerate() {
            let body = body::build(wanted, None, &stamp(&config)).value;
            let live = as_applied(&body, number);
            let entry = Entry {
                version: "v1".to_owned(),
                uid: live.uid().to_owned(),
                manifest_digest: digest(&body),
                live_digest: live_digest(&live),
            };
            inventory.insert(wanted.object.key(), entry);
            items.push(Arc::new(live));
        }
        let cluster = Memory { record: Arc::new(record(&inventory)), items };
        Self { cluster, kinds, config, desired }
    }

    /// What is wanted; planning uses it up.
    pub(crate) fn desired(&self) -> Vec<Desired> {
        self.desired.clone()
    }

    /// Reads the record and plans.
    pub(crate) async fn plan(&self, desired: Vec<Desired>) -> Plan {
        let app = AppName { name: APP.to_owned(), namespace: NAMESPACE.to_owned() };
        let options = Options::default();
        let request = Request {
            cluster: &self.cluster,
            kinds: &self.kinds,
            config: &self.config,
            observed: observe(&self.cluster, &app).await.expect("a record"),
            label_value: LABEL.to_owned(),
            options: &options,
        };
        build(request, desired, &|_| (), &|_| ()).await.expect("a plan")
    }
}

fn stamp(config: &Config) -> Stamp<'_> {
    Stamp {
        config,
        label_value: Some(LABEL),
        label_key: "kapp.k14s.io/app",
        default_label_scoping: true,
        nonce: "",
        now: "",
        original: None,
    }
}

fn kinds() -> Kinds {
    let mut kinds = Kinds::default();
    kinds.add(Kind {
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        verbs: ["get", "list", "patch"].map(str::to_owned).to_vec(),
        ..Kind::default()
    });
    kinds
}

fn read(yaml: &str, kinds: &Kinds) -> Vec<Desired> {
    let documents = load("app.yaml", yaml.as_bytes(), &Limits::default()).expect("YAML").documents;
    let manifests = documents
        .into_iter()
        .filter(|document| !document.value.is_null())
        .map(|document| Manifest {
            object: ObjectRef::of(&document.value),
            value: document.value,
            positions: Arc::new(document.positions),
        })
        .collect();
    let placement = Placement { default_namespace: NAMESPACE.to_owned(), ..Placement::default() };
    let mut warnings: Vec<InputWarning> = Vec::new();
    prepare(manifests, kinds, &placement, &mut warnings).expect("valid objects")
}

/// The object as an API server stores it after an apply.
fn as_applied(body: &Value, number: usize) -> Value {
    let keys = |pointer: &str| -> Value {
        let map = body.pointer(pointer).and_then(Value::as_object);
        map.into_iter().flatten().map(|(key, _)| (format!("f:{key}"), json!({}))).collect()
    };
    let fields = json!({
        "f:data": keys("/data"),
        "f:metadata": {"f:annotations": keys("/metadata/annotations"), "f:labels": keys("/metadata/labels")},
    });
    let mut live = body.clone();
    live["metadata"]["uid"] = json!(format!("{number:08x}-0000-4000-8000-000000000000"));
    live["metadata"]["resourceVersion"] = json!(number.to_string());
    live["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    live["metadata"]["managedFields"] = json!([{
        "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    }]);
    live
}

fn record(inventory: &Inventory) -> Value {
    let kinds = [(String::new(), "v1".to_owned(), "ConfigMap".to_owned())];
    let own = OwnPart { schema: 1, minimum_reader: 1, ..OwnPart::default() };
    let entries: Vec<Value> = inventory
        .to_shards()
        .iter()
        .flat_map(|shard| serde_json::from_str::<Vec<Value>>(shard).expect("a shard"))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": APP, "namespace": NAMESPACE, "uid": "0", "labels": {RECORD_LABEL: ""}},
        "data": {
            "spec": json!(spec_for(None, LABEL, &kinds)).to_string(),
            "pushback": json!(own).to_string(),
            "pushback-inventory": json!(entries).to_string(),
        },
    })
}

/// A cluster that holds one app.
#[derive(Debug)]
struct Memory {
    record: Arc<Value>,
    items: Vec<Arc<Value>>,
}

fn never<T>() -> Result<T, ClusterError> {
    Err(ClusterError::new(ErrorKind::Unsupported, "an unchanged app needs nothing but gets and lists"))
}

#[async_trait]
impl Cluster for Memory {
    fn description(&self) -> String {
        "memory".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { server: true, writable: false }
    }

    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        Ok(None)
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        Ok(Arc::new(kinds()))
    }

    async fn rediscover(&self, _group: &str) -> Result<Arc<Kinds>, ClusterError> {
        self.kinds().await
    }

    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        Ok((address.name == APP).then(|| Arc::clone(&self.record)))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        let start: usize = query.continue_token.parse().unwrap_or_default();
        let end = (start + query.limit as usize).min(self.items.len());
        let continue_token = if end < self.items.len() { end.to_string() } else { String::new() };
        Ok(Page {
            items: self.items[start..end].to_vec(),
            continue_token,
            resource_version: "1".to_owned(),
            ..Page::default()
        })
    }

    async fn create(&self, _address: &Address, _body: &Value, _dry_run: bool) -> Result<Written, ClusterError> {
        never()
    }

    async fn apply(&self, _address: &Address, _body: &Value, _options: ApplyOptions) -> Result<Written, ClusterError> {
        never()
    }

    async fn patch(&self, _address: &Address, _patch: &Patch, _dry_run: bool) -> Result<Written, ClusterError> {
        never()
    }

    async fn delete(&self, _address: &Address, _options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        never()
    }

    async fn watch(
        &self,
        _query: &ListQuery,
        _resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        never()
    }
}
