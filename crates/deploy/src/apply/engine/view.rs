//! What a run sees of the cluster while it waits: its watches, single reads, and the kinds that it may not watch.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_cluster::{Cluster, ClusterError, Kind};
use pushback_storage::served_versions::UnreadVersion;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::deploy_logs::DeployLogs;
use crate::apply::children::Children;
use crate::apply::watch::{WatchUpdate, Watches};

/// Statuses among the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindStatus {
    /// At least one object has a status, or the objects may not be read.
    Present,
    /// Objects are older than the run, and none has a status.
    Absent,
    /// The run creates the first objects.
    FirstObjects,
}

/// View of the cluster during a run.
pub(super) struct View {
    pub(super) watches: Watches,
    pub(super) seen: mpsc::UnboundedReceiver<WatchUpdate>,
    pub(super) looks: JoinSet<ReadResponse>,
    pub(super) children: Children,
    /// `None` until a waiting claim needs them.
    pub(super) storage_classes: Option<Vec<Arc<Value>>>,
    /// Statuses of each kind, by group and kind; `None` until the cluster has answered.
    pub(super) reporting: BTreeMap<(String, String), Option<KindStatus>>,
    /// Workloads of the app that are controllers of a kind, by group and kind.
    pub(super) controllers: BTreeMap<(String, String), Vec<usize>>,
    /// Times at which workloads became ready, by node.
    pub(super) ready_controllers: BTreeMap<usize, Instant>,
    /// Kinds that may not be watched, each with its namespace; empty: in all namespaces.
    hidden: Vec<(Arc<Kind>, String)>,
    /// Whether Pods have changed, so that a claim may have a consumer now.
    pub(super) pods_moved: bool,
    /// Logs that are told, if any.
    pub(super) logs: Option<DeployLogs>,
}

/// Response to a read outside the watches.
#[derive(Debug)]
pub(super) enum ReadResponse {
    /// A single object.
    Object(usize, Result<Option<Arc<Value>>, ClusterError>),
    /// An object that the watch saw deleted, or that a list lacks.
    Gone(usize, Result<Option<Arc<Value>>, ClusterError>),
    /// All StorageClasses; empty if they may not be read.
    StorageClasses(Vec<Arc<Value>>),
    /// Statuses of a kind.
    Reporting(Arc<Kind>, KindStatus),
    /// A CRD's objects, read through each served version.
    Versions(usize, Result<Vec<String>, UnreadVersion>),
}

impl View {
    /// An empty view; `selector` selects the app's objects.
    pub(super) fn new(cluster: Arc<dyn Cluster>, selector: String) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        Self {
            watches: Watches::new(cluster, selector, sender),
            seen,
            looks: JoinSet::new(),
            children: Children::default(),
            storage_classes: None,
            reporting: BTreeMap::new(),
            controllers: BTreeMap::new(),
            ready_controllers: BTreeMap::new(),
            hidden: Vec::new(),
            pods_moved: false,
            logs: None,
        }
    }

    /// Records that objects of a kind may not be watched.
    pub(super) fn hide(&mut self, kind: Arc<Kind>, namespace: String) {
        self.hidden.push((kind, namespace));
    }

    /// Whether no watch covers objects of a kind in a namespace.
    pub(super) fn is_hidden(&self, kind: &Kind, namespace: &str) -> bool {
        self.hidden.iter().any(|(hidden, place)| **hidden == *kind && (place.is_empty() || place == namespace))
    }
}
