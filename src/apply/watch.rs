//! One watch per kind and namespace, for everything that a run waits for.
//! A watch that ends or is refused becomes a list again; nothing is missed in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Cluster, ErrorKind, Kind, ListQuery, WatchEvent, list_all};

/// Between lists where watching is not possible, and after a failed list.
const POLL: Duration = Duration::from_secs(2);

/// What was seen.
#[derive(Debug)]
pub(super) enum Seen {
    /// All objects of a kind, as of a list that started at this time: what is missing is gone.
    All { kind: Arc<Kind>, namespace: String, objects: Vec<Arc<Value>>, listed_at: Instant },
    /// One object, new or changed.
    Applied(Arc<Value>),
    /// One object is gone.
    Deleted(Arc<Value>),
    /// Objects of this kind may not be listed here; nothing more is heard of them.
    Hidden { kind: Arc<Kind>, namespace: String },
}

/// The watches of a run; they end when it is dropped.
#[derive(Debug)]
pub(super) struct Watches {
    cluster: Arc<dyn Cluster>,
    selector: String,
    sender: UnboundedSender<Seen>,
    started: BTreeSet<(Arc<Kind>, String)>,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(super) fn new(cluster: Arc<dyn Cluster>, selector: String, sender: UnboundedSender<Seen>) -> Self {
        Self { cluster, selector, sender, started: BTreeSet::new(), tasks: JoinSet::new() }
    }

    /// Starts watching a kind in a namespace, if nobody does yet.
    pub(super) fn ensure(&mut self, kind: &Arc<Kind>, namespace: &str) {
        if kind.offers("list") && self.started.insert((Arc::clone(kind), namespace.to_owned())) {
            let query =
                ListQuery::new(Arc::clone(kind), Some(namespace).filter(|name| !name.is_empty()), &self.selector);
            self.tasks.spawn(follow(Arc::clone(&self.cluster), query, self.sender.clone()));
        }
    }
}

async fn follow(cluster: Arc<dyn Cluster>, query: ListQuery, sender: UnboundedSender<Seen>) {
    let mut can_watch = query.kind.offers("watch");
    loop {
        let listed_at = Instant::now();
        let namespace = query.namespace.clone().unwrap_or_default();
        let page = match list_all(&*cluster, &query).await {
            Ok(page) => page,
            Err(error) if error.kind == ErrorKind::Forbidden => {
                let _ = sender.send(Seen::Hidden { kind: Arc::clone(&query.kind), namespace });
                return;
            }
            Err(_) => {
                tokio::time::sleep(POLL).await;
                continue;
            }
        };
        let all = Seen::All { kind: Arc::clone(&query.kind), namespace, objects: page.items, listed_at };
        if sender.send(all).is_err() {
            return;
        }
        if !can_watch {
            tokio::time::sleep(POLL).await;
            continue;
        }
        let started = Instant::now();
        match cluster.watch(&query, &page.resource_version).await {
            Ok(mut events) => {
                while let Some(Ok(event)) = events.next().await {
                    let seen = match event {
                        WatchEvent::Applied(object) => Seen::Applied(object),
                        WatchEvent::Deleted(object) => Seen::Deleted(object),
                        WatchEvent::Bookmark(_) => continue,
                    };
                    if sender.send(seen).is_err() {
                        return;
                    }
                }
            }
            Err(error) => can_watch = !matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unsupported),
        }
        // A server that ends every watch at once must not be asked in a loop.
        tokio::time::sleep_until(started + POLL / 2).await;
    }
}
