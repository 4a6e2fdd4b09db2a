//! Takes an old version off a definition: no longer served, or removed.

use pushback_crd::definition::StoredState;
use pushback_events::exit::ExitCode;
use pushback_storage::definitions;
use pushback_storage::versions::{Obstacle, Step, obstacle, take};

use super::connected;
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// Options of a step.
#[derive(Clone, Debug)]
pub struct StepRun {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Name of the definition.
    pub definition: String,
    /// The version to take off.
    pub version: String,
    /// The step.
    pub step: Step,
    /// Whether nothing is written.
    pub dry_run: bool,
}

impl StepRun {
    /// Takes the step.
    ///
    /// # Errors
    /// `Refused` while something is in the way; no consent; the cluster's errors.
    pub async fn run(&self, run: &mut Run) -> Result<StoredState, CommandError> {
        let connected = connected(run, &self.cluster, &NamespaceOptions::default()).await?;
        let (cluster, kind) = (&*connected.cluster, &connected.definitions);
        let reading = async { Ok(definitions::one(cluster, kind, &self.definition).await?) };
        let definition = until_stopped(run.stop.clone(), reading).await?;
        let state = StoredState::of(&definition);
        if let Some(obstacle) = obstacle(&state, &self.version, self.step) {
            return Err(self.refused(&obstacle, &state));
        }
        let question = match self.step {
            Step::Unserve => format!("Stop serving {} of {}?", self.version, self.definition),
            Step::Remove => format!("Remove {} from {}?", self.version, self.definition),
        };
        if !self.dry_run {
            run.confirm(&question).await?;
        }
        Ok(take(cluster, kind, &definition, &self.version, self.step, self.dry_run).await?)
    }

    fn refused(&self, obstacle: &Obstacle, state: &StoredState) -> CommandError {
        let Self { definition, version, .. } = self;
        let (message, hint) = match obstacle {
            Obstacle::Unknown => {
                let known: Vec<&str> = state.versions.iter().map(|(name, _)| name.as_str()).collect();
                let message = format!("{definition} has no version {version:?}");
                return CommandError::usage_with_hint(message, format!("its versions: {}", known.join(", ")));
            }
            Obstacle::IsStorage => (
                format!("{version} is the storage version of {definition}"),
                "make another version the storage version first, and migrate to it".to_owned(),
            ),
            Obstacle::MayBeStored => (
                format!("objects of {definition} may be stored in {version}: it is in status.storedVersions"),
                format!("pushback storage migrate {definition}"),
            ),
            Obstacle::IsServed => (
                format!("{version} of {definition} is still served"),
                format!("pushback storage unserve {definition} {version}"),
            ),
            Obstacle::OnlyServed => (
                format!("{version} is the only served version of {definition}"),
                "serve another version first".to_owned(),
            ),
        };
        CommandError { code: ExitCode::Refused, ..CommandError::usage_with_hint(message, hint) }
    }
}
