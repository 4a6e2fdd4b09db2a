//! The history of an app: lists its changes, and deletes the oldest.

use std::sync::Arc;

use jiff::Timestamp;
use pushback_app::history::{self, Entry};
use pushback_app::record::{AppName, Record, observe};
use pushback_cluster::Cluster;
use serde_json::Value;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::AppOptions;
use super::unknown_app;

/// Options of a look at an app's record and history.
#[derive(Clone, Debug)]
pub struct History {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app.
    pub app: AppOptions,
    /// Only changes that started before this time.
    pub before: Option<Timestamp>,
    /// Only changes that started after this time.
    pub after: Option<Timestamp>,
}

/// An app with its changes, newest first.
#[derive(Debug)]
pub struct AppHistory {
    /// The app.
    pub app: AppName,
    /// Its record.
    pub record: Record,
    /// The cluster that holds it.
    pub cluster: Arc<dyn Cluster>,
    entries: Vec<Arc<Value>>,
}

impl History {
    /// Reads the app and its changes.
    ///
    /// # Errors
    /// The cluster's error; no such app.
    pub async fn read(&self, notes: &dyn Notes) -> Result<AppHistory, CommandError> {
        let (cluster, _, namespaces) = reach(&self.cluster, &self.app.namespace, &|text| notes.note(text)).await?;
        let observed = observe(&*cluster, &namespaces.app(&self.app.name)).await?;
        let app = observed.app;
        let Some(record) = observed.record else {
            return Err(unknown_app::error(&*cluster, &app).await);
        };
        let mut entries = match app.defining_label() {
            Some(_) => Vec::new(),
            None => history::entries(&*cluster, &app, record.label_value()).await?,
        };
        entries.retain(|entry| self.is_wanted(&Entry::of(entry)));
        Ok(AppHistory { app, record, cluster, entries })
    }

    fn is_wanted(&self, entry: &Entry) -> bool {
        let started = || entry.change.started_at.parse::<Timestamp>().ok();
        self.before.is_none_or(|before| started().is_some_and(|started| started < before))
            && self.after.is_none_or(|after| started().is_some_and(|started| started > after))
    }
}

impl AppHistory {
    /// The changes, without the newest `skip`.
    #[must_use]
    pub fn changes(&self, skip: usize) -> Vec<Entry> {
        self.entries.iter().skip(skip).map(|entry| Entry::of(entry)).collect()
    }

    /// Deletes all but the newest `keep` changes; returns how many are kept and how many were deleted.
    pub async fn trim(&self, keep: usize) -> (usize, usize) {
        let old = self.entries.get(keep..).unwrap_or_default();
        let deleted = history::delete(&*self.cluster, &self.app.namespace, old).await;
        (self.entries.len() - deleted, deleted)
    }

    /// The app's label, `key=value`.
    #[must_use]
    pub fn label(&self) -> String {
        let key = self.record.spec.get("labelKey").and_then(Value::as_str).unwrap_or_default();
        format!("{key}={}", self.record.label_value())
    }
}
