//! The logs of an app's Pods: those that are there, and those that come while they are followed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::StreamExt;
use pushback_preflight::ObjectExt;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::AppOptions;
use super::unknown_app;
use crate::app::identity::APP_LABEL;
use crate::app::record::{Observed, observe};
use crate::cluster::{Address, Cluster, ErrorKind, Kind, ListQuery, LogQuery, WatchEvent, list_all};
use crate::plan::live::{self, Live};
use crate::redact::Secrets;

/// What to read.
#[derive(Clone, Debug)]
pub struct Logs {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app whose Pods it is about.
    pub app: AppOptions,
    /// Whether to go on with what is written from now on, and with new Pods.
    pub follow: bool,
    /// Number of lines at the end of each log; `None` for all.
    pub lines: Option<u64>,
    /// Names of Pods; empty for all.
    pub pods: BTreeSet<String>,
    /// Names of containers; empty for all.
    pub containers: BTreeSet<String>,
}

/// A container of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogSource {
    /// Name of the Pod.
    pub pod: String,
    /// Namespace of the Pod.
    pub namespace: String,
    /// Name of the container.
    pub container: String,
    /// How often it was restarted before.
    pub restarts: u64,
}

/// Is told what is read, and says whether to go on.
type Tell<'t> = dyn FnMut(LogEvent) -> ControlFlow<()> + Send + 't;

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The lines of a container follow.
    Begun(LogSource),
    /// One line. Values of the app's Secrets are masked.
    Line(LogSource, String),
    /// A container has no log to read, with the reason.
    Missing(LogSource, String),
    /// There is no more of it.
    Ended(LogSource),
}

impl Logs {
    /// Reads, and tells what is read; ends with the logs, or never where they are followed. True if there was any Pod.
    ///
    /// # Errors
    /// The cluster's error; no such app; it is no API server.
    pub async fn run(&self, notes: &dyn Notes, tell: &mut Tell<'_>) -> Result<bool, CommandError> {
        let (cluster, kinds, namespaces) = reach(&self.cluster, &self.app.namespace, &|text| notes.note(text)).await?;
        let observed = observe(&*cluster, &namespaces.app(&self.app.name)).await?;
        if observed.record.is_none() {
            return Err(unknown_app::error(&*cluster, &observed.app).await);
        }
        if !cluster.capabilities().server {
            let message = format!("{} has no Pods, and no logs", cluster.description());
            return Err(CommandError::usage_with_hint(message, "name an API server: --cluster kube"));
        }
        let mut live = live::read(&*cluster, &kinds, &observed, &[], live::Scope::Cluster).await?;
        live.derived.extend(live::children(&*cluster, &observed, &live).await);
        let secrets = secrets(&live);
        let (sender, receiver) = unbounded_channel();
        let mut tails =
            Tails { cluster: &cluster, wanted: self, sender, tasks: JoinSet::new(), started: BTreeSet::new() };
        let mut pods: Vec<&Arc<Value>> =
            live.objects.values().chain(&live.derived).filter(|object| is_pod(object)).collect();
        pods.sort_by_cached_key(|pod| (pod.namespace().to_owned(), pod.name().to_owned()));
        let mut masked = |event| tell(mask(event, &secrets));
        if self.follow {
            pods.iter().for_each(|pod| tails.start(pod));
            let namespaces =
                live.objects.keys().map(|key| key.namespace.clone()).filter(|name| !name.is_empty()).collect();
            tails.follow(&observed, namespaces, receiver, &mut masked).await
        } else {
            let any = !pods.is_empty();
            for pod in pods {
                for source in self.sources(pod) {
                    if read(&*cluster, source, self, &mut masked).await.is_break() {
                        return Ok(true);
                    }
                }
            }
            Ok(any)
        }
    }

    /// The containers of a Pod whose logs are wanted.
    fn sources(&self, pod: &Value) -> Vec<LogSource> {
        if !self.pods.is_empty() && !self.pods.contains(pod.name()) {
            return Vec::new();
        }
        let restarts: BTreeMap<&str, u64> =
            ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
                .into_iter()
                .flat_map(|field| {
                    pod.pointer(&format!("/status/{field}")).and_then(Value::as_array).into_iter().flatten()
                })
                .map(|status| (status.text("/name"), status["restartCount"].as_u64().unwrap_or_default()))
                .collect();
        let containers = ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|field| pod.pointer(&format!("/spec/{field}")).and_then(Value::as_array).into_iter().flatten());
        containers
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
}

/// Logs that are followed at once.
struct Tails<'l> {
    cluster: &'l Arc<dyn Cluster>,
    wanted: &'l Logs,
    sender: UnboundedSender<LogEvent>,
    tasks: JoinSet<()>,
    started: BTreeSet<LogSource>,
}

impl Tails<'_> {
    /// Follows the containers of a Pod that have begun and are not followed yet.
    fn start(&mut self, pod: &Value) {
        let begun: BTreeSet<&str> = ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .flat_map(|field| pod.pointer(&format!("/status/{field}")).and_then(Value::as_array).into_iter().flatten())
            .filter(|status| status["state"].get("waiting").is_none())
            .map(|status| status.text("/name"))
            .collect();
        for source in self.wanted.sources(pod) {
            if begun.contains(source.container.as_str()) && self.started.insert(source.clone()) {
                let (cluster, wanted, sender) = (Arc::clone(self.cluster), self.wanted.clone(), self.sender.clone());
                self.tasks.spawn(async move {
                    let mut send = |event| match sender.send(event) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    };
                    let _ = read(&*cluster, source, &wanted, &mut send).await;
                });
            }
        }
    }

    /// Tells what is written, and what the Pods of the app begin to write.
    async fn follow(
        mut self,
        observed: &Observed,
        namespaces: BTreeSet<String>,
        mut receiver: UnboundedReceiver<LogEvent>,
        tell: &mut Tell<'_>,
    ) -> Result<bool, CommandError> {
        let label = observed.record.as_ref().map(|record| record.label_value().to_owned()).unwrap_or_default();
        let mut pods = futures::stream::select_all(namespaces.iter().map(|namespace| {
            let query = ListQuery::new(pod_kind(), Some(namespace), &format!("{APP_LABEL}={label}"));
            changes(Arc::clone(self.cluster), query).boxed()
        }));
        loop {
            tokio::select! {
                Some(event) = receiver.recv() => if tell(event).is_break() {
                    return Ok(true);
                },
                Some(pod) = pods.next() => self.start(&pod),
            }
        }
    }
}

/// The Pods of a query as they are and change, for ever: a watch that ends is followed by another list.
fn changes(cluster: Arc<dyn Cluster>, query: ListQuery) -> impl futures::Stream<Item = Arc<Value>> {
    futures::stream::unfold((cluster, query), |(cluster, query)| async move {
        let listed = match list_all(&*cluster, &query).await {
            Ok(page) => {
                let later = cluster.watch(&query, &page.resource_version).await.ok();
                let changed = later.into_iter().map(|events| {
                    events.filter_map(async |event| match event {
                        Ok(WatchEvent::Applied(pod)) => Some(pod),
                        _ => None,
                    })
                });
                futures::stream::iter(page.items)
                    .chain(futures::stream::select_all(changed.map(StreamExt::boxed)))
                    .boxed()
            }
            Err(_) => futures::stream::empty().boxed(),
        };
        // A server that answers every watch at once with its end must not be asked without pause.
        let pause =
            futures::stream::once(tokio::time::sleep(std::time::Duration::from_secs(1))).filter_map(async |()| None);
        Some((listed.chain(pause), (cluster, query)))
    })
    .flatten()
}

/// Reads the log of one container.
async fn read(cluster: &dyn Cluster, source: LogSource, wanted: &Logs, tell: &mut Tell<'_>) -> ControlFlow<()> {
    let query = LogQuery { container: source.container.clone(), follow: wanted.follow, lines: wanted.lines };
    let address = Address::new(pod_kind(), &source.namespace, &source.pod);
    match cluster.logs(&address, &query).await {
        Ok(mut lines) => {
            tell(LogEvent::Begun(source.clone()))?;
            while let Some(line) = lines.next().await {
                match line {
                    Ok(line) => tell(LogEvent::Line(source.clone(), line))?,
                    Err(error) => tell(LogEvent::Missing(source.clone(), error.message))?,
                }
            }
            tell(LogEvent::Ended(source))
        }
        // It went while it was asked for.
        Err(error) if error.kind == ErrorKind::NotFound => ControlFlow::Continue(()),
        Err(error) => tell(LogEvent::Missing(source, error.message)),
    }
}

fn pod_kind() -> Arc<Kind> {
    Arc::new(Kind {
        version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        plural: "pods".to_owned(),
        namespaced: true,
        ..Kind::default()
    })
}

fn is_pod(object: &Value) -> bool {
    object.text("/kind") == "Pod" && object.text("/apiVersion") == "v1"
}

/// The values of the app's Secrets, which a program may write into its log.
fn secrets(live: &Live) -> Secrets {
    let is_secret = |object: &&Arc<Value>| object.text("/kind") == "Secret" && object.text("/apiVersion") == "v1";
    live.objects
        .values()
        .filter(is_secret)
        .fold(Secrets::default(), |known, secret| known.and(&Secrets::of_body(secret)))
        .in_other_text()
}

fn mask(event: LogEvent, secrets: &Secrets) -> LogEvent {
    match event {
        LogEvent::Line(source, line) => LogEvent::Line(source, secrets.mask(&line)),
        LogEvent::Missing(source, reason) => LogEvent::Missing(source, secrets.mask(&reason)),
        other => other,
    }
}
