//! One watch per kind and namespace for everything that a run waits for. A watch that ends, is refused or falls silent
//! is replaced by a list, so no change is missed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kind, ListQuery, Page, WatchEvent, core_kinds, list_all};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Interval between lists if watching is not possible or a list failed.
const POLL: Duration = Duration::from_secs(2);

/// A silent watch is replaced by a list after this time: its connection may be dead. A server sends bookmarks once a
/// minute, so a quiet watch costs an occasional list.
const QUIET: Duration = Duration::from_secs(30);

/// Pages of events read before watching; a namespace may hold very many, most of them irrelevant.
const EVENT_PAGES: usize = 4;

/// An update from the watches.
#[derive(Debug)]
pub(super) enum WatchUpdate {
    /// All objects of a kind, from a list that started at this time: missing ones are gone.
    All { kind: Arc<Kind>, namespace: String, objects: Vec<Arc<Value>>, listed_at: Instant },
    /// One object, new or changed.
    Applied(Arc<Value>),
    /// One object is gone or has lost the app's label.
    Deleted(Arc<Value>),
    /// Objects of this kind may not be listed here; there will be no more updates.
    Hidden { kind: Arc<Kind>, namespace: String },
}

/// The watches of a run; dropping this ends them.
#[derive(Debug)]
pub(super) struct Watches {
    cluster: Arc<dyn Cluster>,
    selector: String,
    sender: UnboundedSender<WatchUpdate>,
    started: BTreeSet<ListQuery>,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(super) fn new(cluster: Arc<dyn Cluster>, selector: String, sender: UnboundedSender<WatchUpdate>) -> Self {
        Self { cluster, selector, sender, started: BTreeSet::new(), tasks: JoinSet::new() }
    }

    /// Selects the app's objects.
    pub(super) fn selector(&self) -> &str {
        &self.selector
    }

    /// Starts watching the app's objects of a kind in a namespace, unless already watched.
    pub(super) fn ensure(&mut self, kind: &Arc<Kind>, namespace: &str) {
        let namespace = Some(namespace).filter(|name| !name.is_empty());
        self.start(ListQuery::new(Arc::clone(kind), namespace, &self.selector));
    }

    /// Starts watching the events of a namespace that match a field selector.
    pub(super) fn ensure_events(&mut self, namespace: &str, field_selector: &str) {
        let mut query = ListQuery::new(core_kinds::event(), Some(namespace), "");
        field_selector.clone_into(&mut query.field_selector);
        self.start(query);
    }

    fn start(&mut self, query: ListQuery) {
        if query.kind.offers("list") && self.started.insert(query.clone()) {
            self.tasks.spawn(follow(Arc::clone(&self.cluster), query, self.sender.clone()));
        }
    }
}

async fn follow(cluster: Arc<dyn Cluster>, query: ListQuery, sender: UnboundedSender<WatchUpdate>) {
    let mut can_watch = query.kind.offers("watch");
    loop {
        let listed_at = Instant::now();
        let namespace = query.namespace.clone().unwrap_or_default();
        let page = match list(&*cluster, &query).await {
            Ok(page) => page,
            Err(error) if error.kind == ErrorKind::Forbidden => {
                let _ = sender.send(WatchUpdate::Hidden { kind: Arc::clone(&query.kind), namespace });
                return;
            }
            Err(_) => {
                tokio::time::sleep(POLL).await;
                continue;
            }
        };
        let all = WatchUpdate::All { kind: Arc::clone(&query.kind), namespace, objects: page.items, listed_at };
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
                // An error event ends the watch as well, such as 410 for an expired version.
                while let Ok(Some(Ok(event))) = timeout(QUIET, events.next()).await {
                    let seen = match event {
                        WatchEvent::Applied(object) => WatchUpdate::Applied(object),
                        WatchEvent::Deleted(object) => WatchUpdate::Deleted(object),
                        WatchEvent::Bookmark(_) => continue,
                    };
                    if sender.send(seen).is_err() {
                        return;
                    }
                }
            }
            Err(error) => can_watch = !matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unsupported),
        }
        // Avoids a busy loop with a server that ends every watch at once.
        tokio::time::sleep_until(started + POLL / 2).await;
    }
}

/// All objects; for events only some pages, since none of them is required.
async fn list(cluster: &dyn Cluster, query: &ListQuery) -> Result<Page, ClusterError> {
    if *query.kind != *core_kinds::event() {
        return list_all(cluster, query).await;
    }
    let mut query = query.clone();
    let mut all = cluster.list(&query).await?;
    for _ in 1..EVENT_PAGES {
        if all.continue_token.is_empty() {
            break;
        }
        query.continue_token.clone_from(&all.continue_token);
        match cluster.list(&query).await {
            Ok(page) => {
                all.items.extend(page.items);
                all.continue_token = page.continue_token;
            }
            Err(_) => break,
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
