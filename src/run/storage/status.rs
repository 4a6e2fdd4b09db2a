//! Reads which versions the objects of each definition are stored in.

use pushback_events::exit::ExitCode;
use pushback_storage::status::{StatusReport, read};

use super::connected;
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// Options of a status.
#[derive(Clone, Debug)]
pub struct Status {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Names of definitions; none: all.
    pub names: Vec<String>,
    /// Whether the exit code says whether there is something to do.
    pub exit_status: bool,
}

impl Status {
    /// Reads the definitions.
    ///
    /// # Errors
    /// No API server, or no such definition.
    pub async fn run(&self, run: &mut Run) -> Result<StatusReport, CommandError> {
        let connected = connected(run, &self.cluster, &NamespaceOptions::default()).await?;
        let reading = async { Ok(read(&*connected.cluster, &connected.definitions, &self.names).await?) };
        until_stopped(run.stop.clone(), reading).await
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self, report: &StatusReport) -> ExitCode {
        match (self.exit_status, report.in_debt().next()) {
            (false, _) => ExitCode::Success,
            (true, None) => ExitCode::NoChanges,
            (true, Some(_)) => ExitCode::Changes,
        }
    }
}
