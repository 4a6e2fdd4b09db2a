//! How the watches handle a server that disconnects, stalls, refuses, or has forgotten their position.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use pushback_cluster::{
    Address, ApplyOptions, Capabilities, DeleteOptions, Deleted, Kinds, Patch, ServerVersion, Written,
};
use serde_json::json;
use tokio::sync::mpsc;

use super::*;

type Answer = Result<WatchEvent, ClusterError>;

/// One answer to a watch.
#[derive(Debug)]
enum Watched {
    /// Events, then the end.
    Ends(Vec<Answer>),
    /// Events, then silence.
    Stalls(Vec<Answer>),
    /// This many bookmarks, one every 20 seconds, then silence.
    Breathes(usize),
    Refused(ErrorKind),
}

/// Answers lists and watches from a script; after its end a watch is silent.
#[derive(Debug, Default)]
struct Scripted {
    lists: Mutex<VecDeque<Result<Page, ClusterError>>>,
    watches: Mutex<VecDeque<Watched>>,
    /// Requests received: `list`, `watch 7`.
    asked: Mutex<Vec<String>>,
}

fn nothing<T>() -> Result<T, ClusterError> {
    Err(ClusterError::new(ErrorKind::Unsupported, "not in the script"))
}

#[async_trait]
impl Cluster for Scripted {
    fn description(&self) -> String {
        "a script".to_owned()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { server: true, writable: true }
    }
    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        nothing()
    }
    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        nothing()
    }
    async fn rediscover(&self, _: &str) -> Result<Arc<Kinds>, ClusterError> {
        nothing()
    }
    async fn get(&self, _: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        nothing()
    }
    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        self.asked.lock().unwrap().push(format!("list {}", query.continue_token).trim().to_owned());
        self.lists.lock().unwrap().pop_front().unwrap_or_else(|| Ok(page(&[], "9")))
    }
    async fn create(&self, _: &Address, _: &Value, _: bool) -> Result<Written, ClusterError> {
        nothing()
    }
    async fn apply(&self, _: &Address, _: &Value, _: ApplyOptions) -> Result<Written, ClusterError> {
        nothing()
    }
    async fn patch(&self, _: &Address, _: &Patch, _: bool) -> Result<Written, ClusterError> {
        nothing()
    }
    async fn delete(&self, _: &Address, _: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        nothing()
    }
    async fn watch(
        &self,
        _: &ListQuery,
        resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        self.asked.lock().unwrap().push(format!("watch {resource_version}"));
        let next = self.watches.lock().unwrap().pop_front().unwrap_or(Watched::Stalls(Vec::new()));
        match next {
            Watched::Ends(events) => Ok(stream::iter(events).boxed()),
            Watched::Stalls(events) => Ok(stream::iter(events).chain(stream::pending()).boxed()),
            Watched::Breathes(count) => {
                let bookmarks = stream::iter(0..count).then(async |_| {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    Ok(WatchEvent::Bookmark("9".to_owned()))
                });
                Ok(Box::pin(bookmarks.chain(stream::pending())))
            }
            Watched::Refused(kind) => Err(ClusterError::new(kind, "refused")),
        }
    }
}

fn thing(name: &str) -> Arc<Value> {
    Arc::new(json!({"metadata": {"name": name}}))
}

fn page(names: &[&str], resource_version: &str) -> Page {
    Page {
        items: names.iter().map(|name| thing(name)).collect(),
        resource_version: resource_version.to_owned(),
        ..Page::default()
    }
}

fn applied(name: &str) -> Answer {
    Ok(WatchEvent::Applied(thing(name)))
}

fn in_words(seen: &WatchUpdate) -> String {
    use pushback_objects::ObjectExt;
    match seen {
        WatchUpdate::All { objects, .. } => {
            format!("all {}", objects.iter().map(|object| object.name()).collect::<Vec<_>>().join(" "))
                .trim()
                .to_owned()
        }
        WatchUpdate::Applied(object) => format!("applied {}", object.name()),
        WatchUpdate::Deleted(object) => format!("deleted {}", object.name()),
        WatchUpdate::Hidden { .. } => "hidden".to_owned(),
    }
}

/// The first updates of a script, the requests made for them, and the time that this took.
async fn seen(
    lists: Vec<Result<Page, ClusterError>>,
    watches: Vec<Watched>,
    count: usize,
) -> (Vec<String>, Vec<String>, Duration) {
    let cluster = Arc::new(Scripted {
        lists: Mutex::new(lists.into()),
        watches: Mutex::new(watches.into()),
        ..Scripted::default()
    });
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let kind = Arc::new(Kind { verbs: vec!["list".to_owned(), "watch".to_owned()], ..Kind::default() });
    let started = Instant::now();
    let mut watches = Watches::new(Arc::clone(&cluster) as Arc<dyn Cluster>, String::new(), sender);
    watches.ensure(&kind, "n");
    watches.ensure(&kind, "n");
    let mut words = Vec::new();
    for _ in 0..count {
        words.push(in_words(&receiver.recv().await.expect("more is seen")));
    }
    let elapsed = started.elapsed();
    let asked = cluster.asked.lock().unwrap().clone();
    (words, asked, elapsed)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_or_has_forgotten_its_place_becomes_a_list_again() {
    let expired = Err(ClusterError::new(ErrorKind::Expired, "too old"));
    let watches = vec![
        Watched::Ends(vec![applied("b"), Ok(WatchEvent::Bookmark("3".to_owned())), expired]),
        Watched::Refused(ErrorKind::Expired),
        Watched::Ends(vec![Ok(WatchEvent::Deleted(thing("c")))]),
    ];
    let lists = vec![Ok(page(&["a"], "1")), Ok(page(&["a", "b"], "4")), Ok(page(&["c"], "7"))];
    let (seen, asked, _) = seen(lists, watches, 5).await;
    assert_eq!(seen, ["all a", "applied b", "all a b", "all c", "deleted c"]);
    assert_eq!(asked[..6], ["list", "watch 1", "list", "watch 4", "list", "watch 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lies_still_is_asked_anew_and_bookmarks_are_life() {
    let watches = vec![Watched::Stalls(vec![applied("a")]), Watched::Breathes(3)];
    let (seen, asked, elapsed) = seen(vec![], watches, 4).await;
    assert_eq!(seen, ["all", "applied a", "all", "all"]);
    assert_eq!(asked[..5], ["list", "watch 9", "list", "watch 9", "list"]);
    let expected = QUIET + Duration::from_secs(60) + QUIET;
    assert!(elapsed >= expected && elapsed < expected + QUIET, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn where_watching_is_not_allowed_lists_are_repeated_and_a_failed_list_is_too() {
    let lists = vec![
        Err(ClusterError::new(ErrorKind::Server, "500")),
        Ok(page(&["a"], "1")),
        Err(ClusterError::new(ErrorKind::Timeout, "slow")),
        Ok(page(&["b"], "2")),
    ];
    let (seen, asked, elapsed) = seen(lists, vec![Watched::Refused(ErrorKind::Forbidden)], 2).await;
    assert_eq!(seen, ["all a", "all b"]);
    assert_eq!(asked[..5], ["list", "list", "watch 1", "list", "list"]);
    assert!(elapsed >= 2 * POLL, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_not_asked_in_a_loop() {
    let watches = (0..20).map(|_| Watched::Ends(Vec::new())).collect();
    let (_, asked, elapsed) = seen(vec![], watches, 10).await;
    assert!(asked.len() <= 20, "{asked:?}");
    assert!(elapsed >= 9 * POLL / 2, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_listed_is_said_once_and_left_alone() {
    let forbidden = Err(ClusterError::new(ErrorKind::Forbidden, "no"));
    let (seen, asked, _) = seen(vec![forbidden], vec![], 1).await;
    assert_eq!((seen, asked), (vec!["hidden".to_owned()], vec!["list".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn of_very_many_events_only_some_pages_are_read() {
    let cluster = Scripted::default();
    let more = |number: usize| Page { continue_token: format!("{number}"), ..page(&["e"], "5") };
    *cluster.lists.lock().unwrap() = (1..100).map(|number| Ok(more(number))).collect();
    let query = ListQuery::new(core_kinds::event(), Some("n"), "");
    let read = list(&cluster, &query).await.unwrap();
    assert_eq!((read.items.len(), read.resource_version.as_str()), (EVENT_PAGES, "5"));
    assert_eq!(*cluster.asked.lock().unwrap(), ["list", "list 1", "list 2", "list 3"]);
}
