//! `pushback storage status`: which versions objects may be stored in.

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_terminal::storage_text;

use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, data_columns, print, start_for_report};
use crate::run::outcome::End;
use crate::run::storage::status::Status;

/// Show which versions objects may be stored in.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage status
  pushback storage status widgets.example.com -o json
  pushback storage status --exit-status

Exit codes: 0 shown, 1 no such definition, 13 unreachable. With --exit-status: 2 every object is
stored in the storage version, 3 some may not be.")]
pub struct StatusArgs {
    /// Definitions, PLURAL.GROUP [default: all]
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<String>,
    /// Show definitions without anything to do too
    #[arg(long)]
    all: bool,
    /// Exit with 2 if there is nothing to do, with 3 otherwise
    #[arg(long)]
    exit_status: bool,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: StatusArgs) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let StatusArgs { definitions, all, exit_status } = arguments;
        let all = all || !definitions.is_empty();
        let status = Status { cluster: global.cluster()?, names: definitions, exit_status };
        let report = status.run(run).await?;
        run.settle();
        let json = || storage_text::json(&report);
        print(&if global.wants_json() { json() } else { storage_text::status(&report, all, data_columns()) })?;
        Ok(End::new(status.code(&report), RunOutcome::Succeeded, Counts::default()))
    })
    .await
}
