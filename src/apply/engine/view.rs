//! What is seen of the cluster while a run waits: by watches, by looks beside them, and what may not be seen.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::apply::children::Children;
use crate::apply::watch::{Seen, Watches};
use crate::cluster::{Cluster, ClusterError, Kind};

/// What is seen.
pub(super) struct View {
    pub(super) watches: Watches,
    pub(super) seen: mpsc::UnboundedReceiver<Seen>,
    pub(super) looks: JoinSet<Look>,
    pub(super) children: Children,
    /// `None` until a claim that waits asks for them.
    pub(super) storage_classes: Option<Vec<Arc<Value>>>,
    /// Kinds that may not be watched, each with the namespace; empty: everywhere.
    hidden: Vec<(Arc<Kind>, String)>,
    /// Pods have moved, which may use a claim.
    pub(super) pods_moved: bool,
}

/// What was asked for beside the watches.
#[derive(Debug)]
pub(super) enum Look {
    /// One object.
    Object(usize, Result<Option<Arc<Value>>, ClusterError>),
    /// One object that the watch saw going, or that a list does not have.
    Gone(usize, Result<Option<Arc<Value>>, ClusterError>),
    /// All StorageClasses; empty where they may not be read.
    StorageClasses(Vec<Arc<Value>>),
}

impl View {
    /// Sees nothing yet; `selector` tells the objects of the app.
    pub(super) fn new(cluster: Arc<dyn Cluster>, selector: String) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        Self {
            watches: Watches::new(cluster, selector, sender),
            seen,
            looks: JoinSet::new(),
            children: Children::default(),
            storage_classes: None,
            hidden: Vec::new(),
            pods_moved: false,
        }
    }

    /// Notes that objects of a kind may not be watched.
    pub(super) fn hide(&mut self, kind: Arc<Kind>, namespace: String) {
        self.hidden.push((kind, namespace));
    }

    /// Whether no watch sees the objects of a kind in a namespace.
    pub(super) fn is_hidden(&self, kind: &Kind, namespace: &str) -> bool {
        self.hidden.iter().any(|(hidden, place)| **hidden == *kind && (place.is_empty() || place == namespace))
    }
}
