//! The logs of Pods: which containers a Pod has, the log of one, and those of many at once as they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::StreamExt;
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, LogQuery, core_kinds};
use pushback_events::{LogEvent, LogPart, LogSource};
use pushback_objects::ObjectExt;
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use super::watch::{WatchUpdate, Watches};

/// Is told what is read, and says whether to go on.
pub type Tell<'t> = dyn FnMut(LogEvent) -> ControlFlow<()> + Send + 't;

/// Which logs are wanted, and how much of each.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Number of lines at the end of each; `None` for all.
    pub lines: Option<u64>,
    /// Names of Pods; empty for all.
    pub pods: BTreeSet<String>,
    /// Names of containers; empty for all.
    pub containers: BTreeSet<String>,
}

impl Wanted {
    /// The containers of a Pod whose logs are wanted, in the order of its spec.
    #[must_use]
    pub fn sources(&self, pod: &Value) -> Vec<LogSource> {
        if !self.pods.is_empty() && !self.pods.contains(pod.name()) {
            return Vec::new();
        }
        let restarts: BTreeMap<&str, u64> = each(pod, "/status/", "ContainerStatuses", "containerStatuses")
            .map(|status| (status.text("/name"), status["restartCount"].as_u64().unwrap_or_default()))
            .collect();
        each(pod, "/spec/", "Containers", "containers")
            .map(|container| container.text("/name"))
            .filter(|name| self.containers.is_empty() || self.containers.contains(*name))
            .map(|name| LogSource {
                pod: pod.name().to_owned(),
                namespace: pod.namespace().to_owned(),
                container: name.to_owned(),
                restarts: restarts.get(name).copied().unwrap_or_default(),
            })
            .collect()
    }

    /// Tells the log of one container, as far as it is written.
    pub async fn read(&self, cluster: &dyn Cluster, source: LogSource, tell: &mut Tell<'_>) -> ControlFlow<()> {
        read(cluster, source, &LogQuery { lines: self.lines, ..LogQuery::default() }, tell).await
    }
}

/// What a Pod has of its init containers, its containers and its ephemeral ones, in this order.
fn each<'p>(pod: &'p Value, place: &str, of_others: &str, of_containers: &str) -> impl Iterator<Item = &'p Value> {
    let fields =
        [format!("{place}init{of_others}"), format!("{place}{of_containers}"), format!("{place}ephemeral{of_others}")];
    let lists = fields.map(|field| pod.pointer(&field).and_then(Value::as_array));
    lists.into_iter().flatten().flatten()
}

/// Tells the log that a query is about, of one container.
pub(super) async fn read(
    cluster: &dyn Cluster,
    source: LogSource,
    query: &LogQuery,
    tell: &mut Tell<'_>,
) -> ControlFlow<()> {
    let query = LogQuery { container: source.container.clone(), ..query.clone() };
    let address = Address::new(core_kinds::pod(), &source.namespace, &source.pod);
    let event = |part| LogEvent { source: source.clone(), part };
    match cluster.logs(&address, &query).await {
        Ok(mut lines) => {
            tell(event(LogPart::Begun))?;
            while let Some(line) = lines.next().await {
                match line {
                    Ok(line) => tell(event(LogPart::Line(line)))?,
                    Err(error) => tell(event(LogPart::Missing(error.message)))?,
                }
            }
            tell(event(LogPart::Ended))
        }
        // It went while it was asked for.
        Err(error) if error.kind == ErrorKind::NotFound => ControlFlow::Continue(()),
        Err(error) => tell(event(LogPart::Missing(error.message))),
    }
}

/// Is told what is read by several readers at once, and says whether to go on.
pub(super) type Share = Arc<dyn Fn(LogEvent) -> ControlFlow<()> + Send + Sync>;

/// Logs that are followed at once; dropping this ends it.
pub(super) struct Tails {
    cluster: Arc<dyn Cluster>,
    tell: Share,
    tasks: JoinSet<()>,
    awaited: BTreeSet<LogSource>,
    started: BTreeSet<LogSource>,
}

impl Tails {
    pub(super) fn new(cluster: Arc<dyn Cluster>, tell: Share) -> Self {
        Self { cluster, tell, tasks: JoinSet::new(), awaited: BTreeSet::new(), started: BTreeSet::new() }
    }

    /// Follows the wanted containers of a Pod that have begun and are not followed yet.
    pub(super) fn start(&mut self, pod: &Value, wanted: &Wanted) {
        let begun: BTreeSet<&str> = each(pod, "/status/", "ContainerStatuses", "containerStatuses")
            .filter(|status| status["state"].get("waiting").is_none())
            .map(|status| status.text("/name"))
            .collect();
        for source in wanted.sources(pod) {
            if !begun.contains(source.container.as_str()) {
                if source.restarts == 0 && self.awaited.insert(source.clone()) {
                    let _ = (self.tell)(LogEvent { source, part: LogPart::Awaited });
                }
            } else if self.started.insert(source.clone()) {
                let (cluster, tell) = (Arc::clone(&self.cluster), Arc::clone(&self.tell));
                let query = LogQuery { follow: true, lines: wanted.lines, ..LogQuery::default() };
                self.tasks.spawn(async move {
                    let _ = read(&*cluster, source, &query, &mut |event| tell(event)).await;
                });
            }
        }
    }
}

/// Tells the logs of the Pods that a selector selects, and of those that come: for ever, or until it is told to stop.
///
/// # Errors
/// Pods may not be listed in any of the namespaces.
pub async fn follow(
    cluster: &Arc<dyn Cluster>,
    selector: &str,
    namespaces: &BTreeSet<String>,
    wanted: &Wanted,
    tell: &mut Tell<'_>,
) -> Result<(), ClusterError> {
    let (sender, mut lines) = unbounded_channel();
    let share: Share = Arc::new(move |event| match sender.send(event) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    });
    let mut tails = Tails::new(Arc::clone(cluster), share);
    let (sender, mut seen) = unbounded_channel();
    let mut watches = Watches::new(Arc::clone(cluster), selector.to_owned(), sender);
    namespaces.iter().for_each(|namespace| watches.ensure(&core_kinds::pod(), namespace));
    let mut hidden = 0;
    loop {
        tokio::select! {
            Some(event) = lines.recv() => if tell(event).is_break() {
                return Ok(());
            },
            Some(update) = seen.recv() => match update {
                WatchUpdate::All { objects, .. } => objects.iter().for_each(|pod| tails.start(pod, wanted)),
                WatchUpdate::Applied(pod) => tails.start(&pod, wanted),
                WatchUpdate::Deleted(_) => {}
                WatchUpdate::Hidden { .. } => {
                    hidden += 1;
                    if hidden == namespaces.len() {
                        let message = "Pods may not be listed, so that their logs cannot be followed";
                        return Err(ClusterError::new(ErrorKind::Forbidden, message));
                    }
                }
            },
        }
    }
}
