//! Lists the apps of one namespace or of all.

use pushback_app::identity::RECORD_LABEL;
use pushback_app::listing::listed;
use pushback_app::record::config_map_kind;
use pushback_cluster::{ListQuery, list_all};
use pushback_deploy::plan::filter::ObjectFilter;
use pushback_events::Target;
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::details;
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
    /// The server and its nodes.
    pub target: Option<Target>,
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
    pub async fn run(&self, notes: &dyn Notes) -> Result<Vec<Value>, CommandError> {
        Ok(self.with_target(notes, false).await?.apps)
    }

    /// The same, with the namespace and, where wanted, the server.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn with_target(&self, notes: &dyn Notes, wants_target: bool) -> Result<ListedApps, CommandError> {
        let (cluster, _, namespaces) = reach(&self.cluster, &self.namespace, &|text| notes.note(text)).await?;
        let target = if wants_target { details::target(&*cluster).await } else { None };
        let namespace = (!self.all_namespaces).then_some(namespaces.record.as_str());
        let query = ListQuery::new(config_map_kind(), namespace, RECORD_LABEL);
        let page = list_all(&*cluster, &query).await?;
        let mut apps: Vec<Value> =
            page.items.iter().filter(|record| self.filter.matches(record)).map(|record| listed(record)).collect();
        apps.sort_by_key(|app| (app.text("/namespace").to_owned(), app.text("/name").to_owned()));
        Ok(ListedApps { target, namespace: namespaces.record, apps })
    }
}
