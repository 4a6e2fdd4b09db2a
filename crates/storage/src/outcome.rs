//! What a migration of one or several definitions came to, with what to do about the rest.

use pushback_cluster::ErrorKind;
use pushback_crd::definition::Blocker;
use pushback_events::exit::ExitCode;
use serde::Serialize;

use super::migrate::{MigrateError, Migration};

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationReport {
    /// Version of this format.
    pub schema_version: u32,
    /// The definitions that were migrated, or begun.
    pub migrations: Vec<Migration>,
    /// The definitions that were not, with why.
    pub errors: Vec<MigrationProblem>,
}

/// Why a definition was not migrated.
#[derive(Clone, Debug, Serialize)]
pub struct MigrationProblem {
    /// The problem.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Exit code that it leads to.
    #[serde(skip)]
    pub code: ExitCode,
}

impl MigrationReport {
    /// Adds why a definition was not migrated.
    pub fn add(&mut self, error: MigrateError) {
        let message = error.to_string();
        let problem = match error {
            MigrateError::Blocked { definition, blockers } => MigrationProblem {
                message,
                hint: blockers.iter().find_map(|b| remedy(&definition, b)),
                code: ExitCode::Refused,
            },
            MigrateError::Changed { .. } => {
                let hint = "run the same command again: it proves the new definition".to_owned();
                MigrationProblem { message, hint: Some(hint), code: ExitCode::Partial }
            }
            MigrateError::Deleted { .. } => MigrationProblem { message, hint: None, code: ExitCode::Partial },
            MigrateError::Cluster { error, done, .. } => {
                self.migrations.extend(*done);
                let (code, hint) = match error.kind {
                    ErrorKind::NotFound => (ExitCode::Usage, "`pushback storage status --all` lists the definitions"),
                    ErrorKind::WebhookUnavailable => {
                        (ExitCode::Partial, "repair the conversion webhook, and run the same command again")
                    }
                    ErrorKind::Forbidden => {
                        (ExitCode::Unreachable, "`pushback storage role` prints the smallest role that is enough")
                    }
                    _ => (ExitCode::Partial, "run the same command again: it goes on where this run stopped"),
                };
                MigrationProblem { message, hint: Some(hint.to_owned()), code }
            }
        };
        self.errors.push(problem);
    }
}

fn remedy(definition: &str, blocker: &Blocker) -> Option<String> {
    Some(match blocker {
        Blocker::NotServed(version) => {
            format!("serve {version} (`served: true`): objects can only be written at a version that is served")
        }
        Blocker::Migrating => {
            "wait until the StorageVersionMigration has ended; it takes the old versions off the list itself".to_owned()
        }
        Blocker::Converting(_) => "run that apply again: it goes on where it stopped".to_owned(),
        Blocker::NotEstablished => format!("see the conditions: kubectl get crd {definition} -o yaml"),
        Blocker::Terminating => return None,
        Blocker::NoStorageVersion => "mark exactly one version with `storage: true`".to_owned(),
    })
}
