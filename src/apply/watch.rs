//! One watch per kind and namespace, for everything that a run waits for.
//! A watch that ends, is refused or falls silent becomes a list again; nothing is missed in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::children::Children;
use crate::cluster::{Cluster, ClusterError, ErrorKind, Kind, ListQuery, Page, WatchEvent, list_all};

/// Between lists where watching is not possible, and after a failed list.
const POLL: Duration = Duration::from_secs(2);

/// A watch that says nothing for so long is asked anew by a list: its connection may be dead without having said so.
/// A server's bookmarks come once a minute, so a watch that is just calm costs a list now and then.
const QUIET: Duration = Duration::from_secs(30);

/// Pages of events that are read before watching; a namespace may hold very many, most of them about others.
const EVENT_PAGES: usize = 4;

/// What was seen.
#[derive(Debug)]
pub(super) enum Seen {
    /// All objects of a kind, as of a list that started at this time: what is missing is gone.
    All { kind: Arc<Kind>, namespace: String, objects: Vec<Arc<Value>>, listed_at: Instant },
    /// One object, new or changed.
    Applied(Arc<Value>),
    /// One object is gone, or does not carry the app's label any more.
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
    started: BTreeSet<ListQuery>,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(super) fn new(cluster: Arc<dyn Cluster>, selector: String, sender: UnboundedSender<Seen>) -> Self {
        Self { cluster, selector, sender, started: BTreeSet::new(), tasks: JoinSet::new() }
    }

    /// Starts watching the app's objects of a kind in a namespace, if nobody does yet.
    pub(super) fn ensure(&mut self, kind: &Arc<Kind>, namespace: &str) {
        let namespace = Some(namespace).filter(|name| !name.is_empty());
        self.start(ListQuery::new(Arc::clone(kind), namespace, &self.selector));
    }

    /// Starts watching those events of a namespace that a field selector selects.
    pub(super) fn ensure_events(&mut self, namespace: &str, field_selector: &str) {
        let mut query = ListQuery::new(Children::event_kind(), Some(namespace), "");
        field_selector.clone_into(&mut query.field_selector);
        self.start(query);
    }

    fn start(&mut self, query: ListQuery) {
        if query.kind.offers("list") && self.started.insert(query.clone()) {
            self.tasks.spawn(follow(Arc::clone(&self.cluster), query, self.sender.clone()));
        }
    }
}

async fn follow(cluster: Arc<dyn Cluster>, query: ListQuery, sender: UnboundedSender<Seen>) {
    let mut can_watch = query.kind.offers("watch");
    loop {
        let listed_at = Instant::now();
        let namespace = query.namespace.clone().unwrap_or_default();
        let page = match list(&*cluster, &query).await {
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
                // An error event, such as 410 for a version that is too old, ends it as well.
                while let Ok(Some(Ok(event))) = timeout(QUIET, events.next()).await {
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

/// All objects; of events only some pages, in which nothing is looked for that must be there.
async fn list(cluster: &dyn Cluster, query: &ListQuery) -> Result<Page, ClusterError> {
    if *query.kind != *Children::event_kind() {
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
