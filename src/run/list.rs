//! Lists the apps of one namespace or of all.

use std::sync::Arc;

use pushback_app::identity::RECORD_LABEL;
use pushback_app::listing::listed;
use pushback_app::record::config_map_kind;
use pushback_cluster::{Cluster, ListQuery, list_all};
use pushback_deploy::plan::filter::ObjectFilter;
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::NamespaceOptions;

/// Options of a list.
#[derive(Clone, Debug)]
pub struct List {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The namespace to list.
    pub namespace: NamespaceOptions,
    /// Whether to list all namespaces.
    pub all_namespaces: bool,
    /// Which records.
    pub filter: ObjectFilter,
}

/// Apps, with where they are.
#[derive(Debug)]
pub struct ListedApps {
    /// The cluster that was read.
    pub cluster: Arc<dyn Cluster>,
    /// The namespace that was listed, unless all were.
    pub namespace: String,
    /// The apps.
    pub apps: Vec<Value>,
}

impl List {
    /// Lists apps, sorted by namespace and name.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn run(&self, notes: &dyn Notes) -> Result<ListedApps, CommandError> {
        let (cluster, _, namespaces) = reach(&self.cluster, &self.namespace, &|text| notes.note(text)).await?;
        let namespace = (!self.all_namespaces).then_some(namespaces.record.as_str());
        let query = ListQuery::new(config_map_kind(), namespace, RECORD_LABEL);
        let page = list_all(&*cluster, &query).await?;
        let mut apps: Vec<Value> =
            page.items.iter().filter(|record| self.filter.matches(record)).map(|record| listed(record)).collect();
        apps.sort_by_key(|app| (app.text("/namespace").to_owned(), app.text("/name").to_owned()));
        Ok(ListedApps { cluster, namespace: namespaces.record, apps })
    }
}
