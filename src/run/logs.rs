//! The logs of an app's Pods: those that are there, and those that come while they are followed.

use std::sync::Arc;

use pushback_app::record::observe;
use pushback_cluster::core_kinds;
use pushback_deploy::apply::pod_logs::{self, Tell, Wanted};
use pushback_deploy::plan::live;
use pushback_events::LogEvent;
use pushback_objects::ObjectExt;
use pushback_system::redact::Secrets;
use serde_json::Value;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::AppOptions;
use super::unknown_app;

/// What to read.
#[derive(Clone, Debug)]
pub struct Logs {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app whose Pods it is about.
    pub app: AppOptions,
    /// Whether to go on with what is written from now on, and with new Pods.
    pub follow: bool,
    /// Which logs, and how much of each.
    pub wanted: Wanted,
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
        // A program may write them into its log.
        let secrets = Secrets::of_secrets(live.objects.values().map(AsRef::as_ref));
        let mut pods: Vec<&Arc<Value>> =
            live.objects.values().chain(&live.derived).filter(|object| core_kinds::is_pod(object)).collect();
        pods.sort_by_cached_key(|pod| (pod.namespace().to_owned(), pod.name().to_owned()));
        let mut masked = |event: LogEvent| tell(event.map(|text| secrets.mask(text)));
        if self.follow {
            let label = observed.record.as_ref().map(|record| record.label_value().to_owned()).unwrap_or_default();
            let namespaces =
                live.objects.keys().map(|key| key.namespace.clone()).filter(|name| !name.is_empty()).collect();
            let selector = format!("{}={label}", observed.app.label_key());
            pod_logs::follow(&cluster, &selector, &namespaces, &self.wanted, &mut masked).await?;
            return Ok(true);
        }
        for pod in &pods {
            for source in self.wanted.sources(pod) {
                if self.wanted.read(&*cluster, source, &mut masked).await.is_break() {
                    return Ok(true);
                }
            }
        }
        Ok(!pods.is_empty())
    }
}
