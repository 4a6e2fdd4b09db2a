//! Reverts what killed runs of experiments have left in a cluster.

use std::collections::BTreeSet;

use pushback_app::lease::LockOptions;
use pushback_cluster::{Cluster, ErrorKind};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, DiagnosticCode, Event, RunOutcome};
use pushback_system::environment::Environment;
use pushback_upgrade::recover::{self, Leftovers, RecoveryReport};

use super::connect_server;
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::signals::until_stopped;

/// Hint for objects that somebody has changed since.
pub const PUT_RIGHT: &str =
    "restore it by hand and run `pushback upgrade recover`, or accept the current state with --accept-changed";

/// Options of a recovery.
#[derive(Clone, Debug)]
pub struct Recover {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Namespaces to search; none: all that may be listed.
    pub namespaces: Vec<String>,
    /// Whether to accept later changes by others as they are.
    pub accept_changed: bool,
    /// Settings for locking namespaces.
    pub terms: LockOptions,
}

impl Recover {
    /// Reverts what is left; `None` if there is nothing.
    ///
    /// # Errors
    /// No cluster, another run in progress, or no consent.
    pub async fn run(&self, run: &mut Run) -> Result<Option<RecoveryReport>, CommandError> {
        let cluster = connect_server(run, &self.cluster).await?;
        let left = until_stopped(run.stop.clone(), look(&*cluster, &run.environment, &self.namespaces)).await?;
        if left.is_empty() {
            return Ok(None);
        }
        for message in left.describe() {
            run.events.send(Event::diagnostic(DiagnosticCode::Left, message));
        }
        run.confirm("Take this back?").await?;
        let namespaces: BTreeSet<String> = left.namespaces();
        let (around, accept) = (&run.environment, self.accept_changed);
        Ok(Some(recover::recover(&cluster, around, &run.id, &namespaces, self.terms, accept).await?))
    }

    /// The end of the run.
    pub fn end(&self, recovered: Option<&RecoveryReport>) -> End {
        let Some(RecoveryReport { left, failed, .. }) = recovered else {
            return End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default());
        };
        if failed.is_empty() && (self.accept_changed || left.is_empty()) {
            return End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default());
        }
        let (error, first) = if failed.is_empty() {
            ("something is not exactly as it was before; its journal is kept", None)
        } else {
            let hint = "correct the cause and run the same command again";
            ("something could not be reverted; its journal is kept", Some(hint))
        };
        let second = (!left.is_empty()).then_some(PUT_RIGHT);
        let hints = first.into_iter().chain(second).map(str::to_owned).collect();
        End { error: error.to_owned(), hints, ..End::new(ExitCode::Partial, RunOutcome::Failed, Counts::default()) }
    }
}

async fn look(
    cluster: &dyn Cluster,
    environment: &Environment,
    namespaces: &[String],
) -> Result<Leftovers, CommandError> {
    let kinds = cluster.kinds().await?;
    let namespaces = Some(namespaces).filter(|namespaces| !namespaces.is_empty());
    recover::look(cluster, &kinds, environment, namespaces).await.map_err(|error| {
        let forbidden = error.kind == ErrorKind::Forbidden && namespaces.is_none();
        let converted = CommandError::from(error);
        if forbidden {
            converted.with_hint("name the namespaces that you may read with --allow-namespace")
        } else {
            converted
        }
    })
}
