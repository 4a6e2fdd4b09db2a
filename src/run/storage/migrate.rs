//! Moves objects to the storage version of their definition, one definition after the other.

use std::time::Duration;

use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_storage::definitions;
use pushback_storage::migrate::{Migrate, MigrateOptions, Migration};
use pushback_storage::outcome::{MigrationProblem, MigrationReport};

use super::{Connected, connected};
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::outcome::End;
use crate::run::signals::{until_dismissed, until_stopped};

/// Options of a command that migrates.
#[derive(Clone, Debug)]
pub struct MigrateRun {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Namespace of the record of progress.
    pub namespace: NamespaceOptions,
    /// Names of definitions.
    pub names: Vec<String>,
    /// Whether all definitions with debt are migrated.
    pub all_debt: bool,
    /// How each is migrated.
    pub options: MigrateOptions,
}

impl MigrateRun {
    /// Migrates.
    ///
    /// # Errors
    /// No API server, or nothing to migrate by these names. What goes wrong with a definition is in the report.
    pub async fn run(&self, run: &mut Run) -> Result<MigrationReport, CommandError> {
        let connected = connected(run, &self.cluster, &self.namespace).await?;
        let names = until_stopped(run.stop.clone(), self.names(&connected)).await?;
        let options = MigrateOptions { namespace: connected.namespaces.record.clone(), ..self.options.clone() };
        let mut report = MigrationReport { schema_version: 1, ..MigrationReport::default() };
        for name in &names {
            let Connected { cluster, definitions, .. } = &connected;
            let migrate = Migrate { cluster: &**cluster, definitions: definitions.clone(), name, options: &options };
            // Every write stands on its own, and the next run goes on behind the last recorded page.
            match until_dismissed(run.stop.clone(), Duration::ZERO, migrate.run(&run.events)).await {
                Err(code) => {
                    let hint = Some("run the same command again: it goes on where this run stopped".to_owned());
                    report.errors.push(MigrationProblem { message: format!("{name}: interrupted"), hint, code });
                    break;
                }
                Ok(Ok(migration)) => report.migrations.push(migration),
                Ok(Err(error)) => report.add(error),
            }
        }
        Ok(report)
    }

    async fn names(&self, connected: &Connected) -> Result<Vec<String>, CommandError> {
        if !self.all_debt {
            return Ok(self.names.clone());
        }
        let states = definitions::all(&*connected.cluster, connected.definitions.clone()).await?;
        Ok(states.into_iter().filter(|state| !state.is_settled()).map(|state| state.definition).collect())
    }

    /// The end of the run.
    #[must_use]
    pub fn end(&self, report: &MigrationReport) -> End {
        let mut codes: Vec<ExitCode> = report.errors.iter().map(|error| error.code).collect();
        let left = |migration: &&Migration| {
            !self.options.dry_run && !migration.proved && migration.shards_left.is_empty()
                || migration.passes.iter().any(|pass| pass.failed > 0)
        };
        codes.extend(report.migrations.iter().filter(left).map(|_| ExitCode::Partial));
        match codes.into_iter().max() {
            None => End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()),
            Some(code) => {
                let mut hints: Vec<String> = report.errors.iter().filter_map(|error| error.hint.clone()).collect();
                hints.extend(report.migrations.iter().filter_map(unconverted));
                let messages: Vec<&str> = report.errors.iter().map(|error| error.message.as_str()).collect();
                let error = match messages.as_slice() {
                    [] => "not every object could be rewritten; the list of stored versions stays as it is".to_owned(),
                    messages => messages.join("\n"),
                };
                End { error, hints, ..End::new(code, RunOutcome::Failed, Counts::default()) }
            }
        }
    }
}

/// Returns what to do about an object that the conversion webhook cannot convert.
fn unconverted(migration: &Migration) -> Option<String> {
    let mut failures = migration.passes.iter().flat_map(|pass| &pass.failures);
    let (failure, version) = failures.find_map(|failure| Some((failure, failure.readable_in.as_ref()?)))?;
    let (plural, group) = migration.definition.split_once('.')?;
    let object = match failure.object.split_once('/') {
        Some((namespace, name)) => format!("{plural}.{version}.{group} {name} -n {namespace}"),
        None => format!("{plural}.{version}.{group} {}", failure.object),
    };
    Some(format!(
        "the conversion webhook cannot convert {}: repair the webhook, and run the same command again. `kubectl get {object} \
         -o yaml` shows the object; the API server refuses to edit or delete it until then. The other objects are rewritten \
         without it, and the list of stored versions stays as it is",
        failure.object
    ))
}
