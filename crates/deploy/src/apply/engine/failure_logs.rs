//! The last lines that failing containers have written: read once at the end of a run, within bounds of time and size.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use futures::StreamExt;
use pushback_cluster::{Address, Cluster, ErrorKind, ListQuery, LogQuery, core_kinds, list_all};
use pushback_events::FailedContainer;
use pushback_preflight::Operation;
use pushback_system::redact::Secrets;
use serde_json::Value;

use super::{Engine, Progress};
use crate::apply::children::{Children, has_children};
use crate::apply::readiness::{self, FailingContainer};
use crate::plan::Plan;

/// How long reading may take in all: the run's result is known already.
const LIMIT: Duration = Duration::from_secs(5);

/// Why no log of a namespace is known.
const FORBIDDEN: &str = "it may not be read (that takes `get` on `pods/log`)";

/// Most containers whose logs are read.
const MAX_CONTAINERS: usize = 10;

/// Most characters of a line.
const MAX_LINE: usize = 500;

/// Most bytes that are read of one log.
const MAX_BYTES: usize = 1 << 20;

/// The values of the Secrets that a plan is about.
pub(super) fn secrets(plan: &Plan) -> Secrets {
    let objects = plan.objects.iter().flat_map(|planned| [&planned.desired, &planned.live]);
    Secrets::of_secrets(objects.flatten().map(AsRef::as_ref))
}

impl Engine<'_> {
    /// The containers that keep objects from becoming ready, with the ends of their logs, by the index of the object.
    pub(super) async fn failed_containers(&mut self) -> BTreeMap<usize, Vec<FailedContainer>> {
        let lines = self.options.failure_log_lines;
        let failed: Vec<usize> = (0..self.nodes.len()).filter(|&node| self.has_failed(node)).collect();
        if lines == 0 || !self.server || failed.is_empty() {
            return BTreeMap::new();
        }
        let deadline = tokio::time::Instant::now() + LIMIT;
        let _ = tokio::time::timeout_at(deadline, self.list_children(&failed)).await;
        let cluster = &*self.writes.writer.cluster;
        let secrets = secrets(self.plan);
        let wanted = failed.iter().flat_map(|&node| {
            let object = self.nodes[node].object.as_deref();
            let failing = object.map(|object| self.failing_below(object)).unwrap_or_default();
            failing.into_iter().map(move |container| (node, container))
        });
        let reads = wanted.take(MAX_CONTAINERS).map(|(node, container)| async move {
            let read = tokio::time::timeout_at(deadline, last_lines(cluster, &container, lines)).await;
            (node, container, read.unwrap_or_else(|_| Err(format!("it was not read within {} s", LIMIT.as_secs()))))
        });
        let mut found: BTreeMap<usize, Vec<FailedContainer>> = BTreeMap::new();
        for (node, container, read) in futures::future::join_all(reads).await {
            let (lines, missing) = match read {
                Ok(lines) => (lines.iter().map(|line| cut(&secrets.mask(line))).collect(), String::new()),
                Err(reason) => (Vec::new(), cut(&secrets.mask(&reason))),
            };
            // Once is enough.
            if missing == FORBIDDEN && found.values().flatten().any(|told| told.missing == FORBIDDEN) {
                continue;
            }
            let FailingContainer { namespace, pod, container, reason, exit_code, previous } = container;
            let told = FailedContainer { namespace, pod, container, reason, exit_code, previous, lines, missing };
            found.entry(node).or_default().push(told);
        }
        found
    }

    fn has_failed(&self, node: usize) -> bool {
        let planned = &self.plan.objects[node];
        let has_pods =
            has_children(&planned.object) || self.nodes[node].object.as_deref().is_some_and(core_kinds::is_pod);
        has_pods
            && planned.operation() != Operation::Delete
            && matches!(self.nodes[node].progress, Progress::NeverReady(_) | Progress::TimedOut(_))
    }

    fn failing_below(&self, object: &Value) -> Vec<FailingContainer> {
        readiness::failing_containers(object, &self.view.children.of(object).related(&[]))
    }

    /// Looks for what is below objects that have failed at first sight, when nothing was watched yet.
    async fn list_children(&mut self, failed: &[usize]) {
        let is_unseen = |&&node: &&usize| {
            let object = self.nodes[node].object.as_deref();
            object.is_some_and(|object| !core_kinds::is_pod(object) && self.failing_below(object).is_empty())
        };
        let namespaces: BTreeSet<&str> =
            failed.iter().filter(is_unseen).map(|&node| self.plan.objects[node].object.namespace.as_str()).collect();
        let cluster = &*self.writes.writer.cluster;
        let queries = namespaces.iter().flat_map(|namespace| {
            Children::kinds().map(|kind| ListQuery::new(kind, Some(namespace), self.view.watches.selector()))
        });
        let lists = queries.map(|query| async move { list_all(cluster, &query).await });
        let pages = futures::future::join_all(lists).await;
        let objects = pages.into_iter().flatten().flat_map(|page| page.items);
        for object in objects {
            self.view.children.insert(&object);
        }
    }
}

/// The last lines of a container's log, or why there are none.
async fn last_lines(cluster: &dyn Cluster, of: &FailingContainer, count: usize) -> Result<Vec<String>, String> {
    let query = LogQuery {
        container: of.container.clone(),
        previous: of.previous,
        follow: false,
        lines: u64::try_from(count).ok(),
    };
    let pod = Address::new(core_kinds::pod(), &of.namespace, &of.pod);
    let mut log = cluster.logs(&pod, &query).await.map_err(|error| match error.kind {
        ErrorKind::Forbidden => FORBIDDEN.to_owned(),
        _ => error.message,
    })?;
    let (mut lines, mut bytes) = (VecDeque::new(), 0);
    while let Some(line) = log.next().await {
        // What was read so far is better than nothing.
        let Ok(line) = line else { break };
        bytes += line.len();
        if lines.len() == count {
            lines.pop_front();
        }
        lines.push_back(line);
        if bytes > MAX_BYTES {
            break;
        }
    }
    Ok(lines.into())
}

/// The start of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
