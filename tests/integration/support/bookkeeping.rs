//! What an app's bookkeeping says, read from the API server and checked: record, lock, inventory, shards; and what is
//! really there. Anything that a later run could not read fails the test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::api::ApiClient;

const APP_LABEL: &str = "kapp.k14s.io/app";
const IDENTITY: &str = "kapp.k14s.io/identity";
const SHARD_LABEL: &str = "pushback.dev/inventory";

/// The record of an app.
#[derive(Clone, Debug)]
pub(crate) struct Bookkeeping {
    pub(crate) phase: String,
    /// `null` where nobody holds it.
    pub(crate) lock: Value,
    /// The uid of each object, by `namespace/group/Kind/name`; empty while its creation is not confirmed.
    pub(crate) inventory: BTreeMap<String, String>,
    /// The shards that the record leads to.
    pub(crate) shards: BTreeSet<String>,
}

impl Bookkeeping {
    /// Reads it; `None` where there is no record. Fails the test where it is not valid.
    #[track_caller]
    pub(crate) fn read(api: &ApiClient, namespace: &str, app: &str) -> Option<Self> {
        let answer = api.get(&format!("/api/v1/namespaces/{namespace}/configmaps/{app}"));
        if answer.status == 404 {
            return None;
        }
        let mut bookkeeping = Self::of_record(&answer.ok());
        for shard in bookkeeping.shards.clone() {
            let shard = api.get(&format!("/api/v1/namespaces/{namespace}/configmaps/{shard}")).ok();
            let entries = shard["data"]["entries"].as_str().unwrap_or_else(|| panic!("no entries: {shard}"));
            let entries = serde_json::from_str(entries).unwrap_or_else(|error| panic!("a shard: {error}: {entries}"));
            bookkeeping.add(&entries);
        }
        Some(bookkeeping)
    }

    /// What a record says by itself. Fails the test where it is not valid.
    #[track_caller]
    pub(crate) fn of_record(record: &Value) -> Self {
        assert_eq!(record["metadata"]["labels"]["kapp.k14s.io/is-app"], "", "{record}");
        let part = |key: &str| -> Value {
            let Some(text) = record["data"][key].as_str() else { return Value::Null };
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{key}: {error}: {text}"))
        };
        let (spec, own) = (part("spec"), part("pushback"));
        let text = |value: &Value, key: &str| {
            value[key].as_str().unwrap_or_else(|| panic!("the record has no {key}: {record}")).to_owned()
        };
        assert_eq!(text(&spec, "labelKey"), APP_LABEL);
        assert_ne!(text(&spec, "labelValue"), "");
        let change = spec["lastChangeName"].as_str().unwrap_or_default();
        assert_eq!(own["lastChangeName"], change, "{own}: kapp has not been here");
        let names = own["shards"].as_array().into_iter().flatten();
        let shards: BTreeSet<String> =
            names.map(|name| name.as_str().expect("the name of a shard").to_owned()).collect();
        let inline = part("pushback-inventory");
        assert_eq!(shards.is_empty(), inline.is_array(), "the inventory is in one place: {shards:?} {inline}");
        let (phase, lock) = (text(&own, "phase"), part("pushback-lock"));
        let mut bookkeeping = Self { phase, lock, inventory: BTreeMap::new(), shards };
        bookkeeping.add(&inline);
        bookkeeping
    }

    #[track_caller]
    fn add(&mut self, entries: &Value) {
        for entry in entries.as_array().into_iter().flatten() {
            let words: Vec<&str> = entry.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let [group, kind, namespace, name, _version, uid, _manifest, _live] = words[..] else {
                panic!("no entry of an inventory: {entry}");
            };
            let before = self.inventory.insert(format!("{namespace}/{group}/{kind}/{name}"), uid.to_owned());
            assert_eq!(before, None, "{entry} is there twice");
        }
    }

    /// Fails the test unless the last run has finished, everything that it owns is known with its uid, and nothing is
    /// left over.
    #[track_caller]
    pub(crate) fn assert_settled(&self, api: &ApiClient, namespace: &str, live: &BTreeMap<String, String>) {
        assert_eq!((self.phase.as_str(), &self.lock), ("done", &Value::Null), "{self:?}");
        assert_eq!(&self.inventory, live);
        assert_eq!(shards(api, namespace), self.shards, "shards that no record leads to");
    }
}

/// All inventory shards in a namespace.
#[track_caller]
pub(crate) fn shards(api: &ApiClient, namespace: &str) -> BTreeSet<String> {
    let found = api.list(&format!("/api/v1/namespaces/{namespace}/configmaps?labelSelector={SHARD_LABEL}"));
    found.iter().map(|shard| shard["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// Everything in these collections that an app has made: its uid by `namespace/group/Kind/name`. What was generated
/// from such an object has its label and not its identity.
#[track_caller]
pub(crate) fn owned(api: &ApiClient, collections: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for collection in collections {
        let answer = api.get(&format!("{collection}?labelSelector={APP_LABEL}"));
        // A kind that is not defined has no objects.
        if answer.status == 404 {
            continue;
        }
        for object in answer.ok()["items"].as_array().into_iter().flatten() {
            let identity = object["metadata"]["annotations"][IDENTITY].as_str().unwrap_or_default();
            let key = identity.trim_start_matches("v1;").split(';').next().unwrap_or_default();
            if key.rsplit('/').next() == object["metadata"]["name"].as_str() {
                found.insert(key.to_owned(), object["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    found
}
