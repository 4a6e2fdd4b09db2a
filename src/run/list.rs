//! Lists the apps of one namespace or of all.

use pushback_preflight::ObjectExt;
use serde_json::Value;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::NamespaceOptions;
use crate::app::identity::RECORD_LABEL;
use crate::app::listing::listed;
use crate::app::record::config_map_kind;
use crate::cluster::{ListQuery, list_all};

/// Options of a list.
#[derive(Clone, Debug)]
pub struct List {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The namespace to list.
    pub namespace: NamespaceOptions,
    /// Whether to list all namespaces.
    pub all_namespaces: bool,
}

impl List {
    /// Lists apps, sorted by namespace and name.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn run(&self, notes: &dyn Notes) -> Result<Vec<Value>, CommandError> {
        let (cluster, _, namespaces) = reach(&self.cluster, &self.namespace, &|text| notes.note(text)).await?;
        let namespace = (!self.all_namespaces).then_some(namespaces.record.as_str());
        let query = ListQuery::new(config_map_kind(), namespace, RECORD_LABEL);
        let page = list_all(&*cluster, &query).await?;
        let mut apps: Vec<Value> = page.items.iter().map(|record| listed(record)).collect();
        apps.sort_by_key(|app| (app.text("/namespace").to_owned(), app.text("/name").to_owned()));
        Ok(apps)
    }
}
