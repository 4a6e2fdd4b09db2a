//! Hooks for output that shows more of a run than its events.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use pushback_cluster::Cluster;
use pushback_deploy::plan::{Plan, Planned};
use pushback_manifest::config::Config;
use pushback_preflight::Operation;
use serde_json::Value;

/// Shows more of a run than its events. Each hook is called before the event that it belongs to is sent.
pub trait Observer: fmt::Debug + Send + Sync {
    /// The cluster answers; `run.start` follows.
    fn connected<'a>(&'a self, cluster: &'a dyn Cluster) -> BoxFuture<'a, ()>;

    /// A plan is made; `plan` follows. `going` are objects that the garbage collector deletes together with those of the
    /// plan.
    fn planned(&self, config: &Config, plan: &Plan, going: &[Arc<Value>]);

    /// Returns the operation that an object counts as although the run does not write it.
    fn counted_as(&self, config: &Config, planned: &Planned) -> Option<Operation>;
}
