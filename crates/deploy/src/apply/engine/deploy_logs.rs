//! Logs of Pods while their app is applied: of those that ask for it by an annotation, or of all. They are read beside the
//! run, and end with it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Cluster, ListQuery, core_kinds, list_all};
use pushback_events::{Event, Events, LogEvent};
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::{Engine, failure_logs};
use crate::apply::pod_logs::{Share, Tails, Wanted};
use crate::plan::{Plan, deploy_logs};

/// How long to look for the Pods that are there before the first write.
const LIMIT: Duration = Duration::from_secs(10);

/// Lines at the end of the log of a Pod that was there before.
const LINES_OF_EXISTING: u64 = 10;

/// Whose logs are told while an app is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogsOf {
    /// Of none.
    Nobody,
    /// Of Pods with kapp's annotation.
    #[default]
    Annotated,
    /// Of all Pods.
    All,
}

/// The logs that are told.
pub(super) struct DeployLogs {
    tails: Tails,
    of: LogsOf,
    /// Uids of the Pods that were there before the first write.
    existing: BTreeSet<String>,
}

impl DeployLogs {
    fn new(cluster: Arc<dyn Cluster>, events: Events, plan: &Plan, of: LogsOf) -> Self {
        let secrets = failure_logs::secrets(plan);
        let tell: Share = Arc::new(move |log: LogEvent| {
            events.send(Event::Log { log: log.map(|text| secrets.mask(text)) });
            ControlFlow::Continue(())
        });
        Self { tails: Tails::new(cluster, tell), of, existing: BTreeSet::new() }
    }

    /// Follows what a Pod writes, if that is wanted.
    pub(super) fn see(&mut self, pod: &Value) {
        let is_existing = self.existing.contains(pod.uid());
        let lines = is_existing.then_some(LINES_OF_EXISTING);
        let containers = match (deploy_logs::wanted(pod), self.of) {
            (Some(asked), _) if (is_existing && asked.of_existing) || (!is_existing && asked.of_new) => {
                asked.containers
            }
            (asked, LogsOf::All) => asked.map(|asked| asked.containers).unwrap_or_default(),
            _ => return,
        };
        let wanted = Wanted { lines, containers: containers.into_iter().collect(), ..Wanted::default() };
        self.tails.start(pod, &wanted);
    }
}

impl Engine<'_> {
    /// Starts to tell logs where they are wanted: before the first write, so that it is known which Pods are new.
    pub(super) async fn begin_logs(&mut self) {
        let of = self.options.logs;
        let is_wanted = |object: &Value| of == LogsOf::All || deploy_logs::may_be_wanted(object);
        let desired = self.plan.objects.iter().filter_map(|planned| planned.desired.as_deref());
        let namespaces: BTreeSet<String> = match of {
            LogsOf::Nobody => BTreeSet::new(),
            _ => desired.filter(|object| is_wanted(object)).map(|object| object.namespace().to_owned()).collect(),
        };
        if !self.server || namespaces.iter().all(String::is_empty) {
            return;
        }
        let cluster = Arc::clone(&self.writes.writer.cluster);
        let mut logs = DeployLogs::new(Arc::clone(&cluster), self.events.clone(), self.plan, of);
        for namespace in namespaces.iter().filter(|namespace| !namespace.is_empty()) {
            let query = ListQuery::new(core_kinds::pod(), Some(namespace), self.view.watches.selector());
            let pods = match tokio::time::timeout(LIMIT, list_all(&*cluster, &query)).await {
                Ok(Ok(page)) => page.items,
                Ok(Err(error)) => {
                    self.tell_no_logs(namespace, &error.message);
                    continue;
                }
                Err(_) => {
                    self.tell_no_logs(namespace, "the server does not answer");
                    continue;
                }
            };
            logs.existing.extend(pods.iter().map(|pod| pod.uid().to_owned()));
            pods.iter().for_each(|pod| logs.see(pod));
            self.view.watches.ensure(&core_kinds::pod(), namespace);
        }
        self.view.logs = Some(logs);
    }

    fn tell_no_logs(&self, namespace: &str, why: &str) {
        self.events.send(Event::Warning {
            code: "logs".to_owned(),
            message: format!("logs of Pods in namespace {namespace} are not shown: {why}"),
            object: None,
            position: None,
        });
    }
}
