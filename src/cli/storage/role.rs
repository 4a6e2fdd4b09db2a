//! `pushback storage role`: the smallest role that is enough to migrate definitions.

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_terminal::storage_text;

use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, start_for_report};
use crate::run::options::NamespaceOptions;
use crate::run::outcome::End;
use crate::run::storage::role::RoleFor;

/// Print the smallest role that is enough.
#[derive(Debug, Args)]
#[command(after_help = "\\
Examples:
  pushback storage role widgets.example.com
  pushback storage role widgets.example.com -n migrations

Prints a ClusterRole, and a Role for the record of progress, to be bound to whoever migrates.

Exit codes: 0 printed, 1 no such definition, 13 unreachable.")]
pub struct RoleArgs {
    /// Definitions, PLURAL.GROUP
    #[arg(value_name = "DEFINITION", required = true)]
    definitions: Vec<String>,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RoleArgs) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let RoleArgs { definitions: names, namespace } = arguments;
        let roles = RoleFor { cluster: global.cluster()?, namespace, names }.run(run).await?;
        run.settle();
        print(&if global.wants_json() { storage_text::json(&roles) } else { storage_text::yaml(&roles) })?;
        Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()))
    })
    .await
}
