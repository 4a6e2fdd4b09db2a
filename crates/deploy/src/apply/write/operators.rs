//! Operators are paused before the objects of their definitions are carried over, and go on with their own write, or at
//! the end of the run.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, ClusterError, ErrorKind, ListQuery, list_all};
use pushback_objects::ObjectExt;
use pushback_storage::{note, operators};
use serde_json::Value;
use tokio::time::Instant;

use super::{CONFLICTS, Done, Failure, GONE_POLL, Writer, unchanged};
use crate::plan::{Planned, UpdateStrategy};

/// How long the pods of a paused operator may take to end, beyond their own grace period.
const PODS_GONE: Duration = Duration::from_secs(60);

impl Writer {
    /// Pauses the operators of a definition and waits until they have no pods.
    pub(super) async fn pause_operators(&self, planned: &Planned) -> Result<(), Failure> {
        let paused = || planned.difference().operators.iter().filter(|operator| operator.pauses);
        for operator in paused() {
            self.pause_operator(&operator.address).await?;
        }
        for operator in paused() {
            self.await_no_pods(&operator.address).await?;
        }
        Ok(())
    }

    async fn pause_operator(&self, address: &Address) -> Result<(), Failure> {
        for attempt in 0..=CONFLICTS {
            let Some(live) = self.cluster.get(address).await.map_err(Failure::Cluster)? else { return Ok(()) };
            let Some(patch) = operators::pause(&live) else { return Ok(()) };
            self.allowed()?;
            match self.cluster.patch(address, &patch, false).await {
                Ok(_) => {
                    note(&self.events, format!("{address} is paused: its definitions are carried over"));
                    return Ok(());
                }
                Err(error) if error.kind == ErrorKind::Conflict && attempt < CONFLICTS => {}
                Err(error) => return Err(Failure::Cluster(error)),
            }
        }
        Err(Failure::Changed(format!("{address} keeps changing, so that it cannot be paused")))
    }

    async fn await_no_pods(&self, address: &Address) -> Result<(), Failure> {
        let Some(workload) = self.cluster.get(address).await.map_err(Failure::Cluster)? else { return Ok(()) };
        let kinds = self.cluster.kinds().await.map_err(Failure::Cluster)?;
        let Some(pods) = kinds.find("", "v1", "Pod") else { return Ok(()) };
        let query = ListQuery {
            metadata_only: true,
            // One that has ended, or was evicted, writes nothing any more.
            field_selector: "status.phase!=Succeeded,status.phase!=Failed".to_owned(),
            ..ListQuery::new(Arc::clone(pods), Some(&address.namespace), &operators::pod_selector(&workload))
        };
        let grace = workload.pointer("/spec/template/spec/terminationGracePeriodSeconds").and_then(Value::as_u64);
        let deadline = Instant::now() + PODS_GONE + Duration::from_secs(grace.unwrap_or(30));
        loop {
            let left = list_all(&*self.cluster, &query).await.map_err(Failure::Cluster)?.items;
            let Some(pod) = left.first() else { return Ok(()) };
            if Instant::now() >= deadline {
                let message = format!("{address} is paused, but pod {} still exists", pod.name());
                return Err(Failure::Stuck(message));
            }
            if self.pause(GONE_POLL).await.is_break() {
                return Err(Failure::Stopped(format!("{address} is being paused")));
            }
        }
    }

    /// After a workload was written: lets it go on if it is paused. Returns it as it is then.
    pub(super) async fn go_on(&self, address: &Address, written: Arc<Value>) -> Result<Arc<Value>, Failure> {
        let mut seen = written;
        for _ in 0..=CONFLICTS {
            let Some(patch) = operators::resume(&seen) else { return Ok(seen) };
            self.allowed()?;
            match self.cluster.patch(address, &patch, false).await {
                Ok(written) => {
                    note(&self.events, format!("{address} goes on"));
                    return Ok(written.object);
                }
                Err(error) if error.kind == ErrorKind::Conflict => {
                    let now = self.cluster.get(address).await.map_err(Failure::Cluster)?;
                    seen = now.ok_or_else(|| Failure::Changed("it was deleted meanwhile".to_owned()))?;
                }
                Err(error) => return Err(Failure::Cluster(error)),
            }
        }
        Err(Failure::Changed("it keeps changing".to_owned()))
    }

    /// Lets an operator go on that is not changed itself. Its replicas become the manifest's again: pausing took them.
    pub(super) async fn resumed(&self, planned: &Planned, address: &Address) -> Result<Done, Failure> {
        if planned.strategies.update == UpdateStrategy::Apply {
            return self.update(planned, address).await;
        }
        self.go_on_at_last(address).await?;
        Ok(unchanged(planned.live.clone()))
    }

    /// At the end of a run: lets an operator go on whose turn did not come.
    ///
    /// # Errors
    /// The operator is still paused.
    pub(in crate::apply) async fn go_on_at_last(&self, address: &Address) -> Result<(), Failure> {
        match self.cluster.get(address).await.map_err(Failure::Cluster)? {
            Some(live) => self.go_on(address, live).await.map(drop),
            None => Ok(()),
        }
    }

    /// Whether a definition is the one that was planned for: nothing has been written to it.
    pub(in crate::apply) async fn is_untouched(&self, planned: &Planned) -> Result<bool, ClusterError> {
        let object = &planned.object;
        let seen = self.cluster.get(&Address::new(Arc::clone(&planned.kind), "", &object.name)).await?;
        let generation = |object: Option<&Value>| object.and_then(|it| it.pointer("/metadata/generation").cloned());
        Ok(generation(seen.as_deref()) == generation(planned.live.as_deref()))
    }
}
