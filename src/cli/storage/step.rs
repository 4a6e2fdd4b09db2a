//! `pushback storage unserve` and `pushback storage remove`: the two steps of taking an old version off a definition.

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_storage::versions::Step;
use pushback_terminal::storage_text;

use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, start_for_report};
use crate::run::outcome::End;
use crate::run::storage::step::StepRun;

/// Take an old version off a definition.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage unserve widgets.example.com v1
  pushback storage remove widgets.example.com v1 --yes

Change the manifest of the definition too: the next apply of an old one brings the version back.

Exit codes: 0 done, 1 wrong input or not confirmed, 10 the step before is not done, 13 unreachable
or no rights.")]
pub struct StepArgs {
    /// The definition, PLURAL.GROUP
    definition: String,
    /// The old version
    version: String,
    /// Let the API server check the step; write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `unserve`.
pub async fn unserve(global: &GlobalArgs, arguments: StepArgs) -> ExitCode {
    run(global, arguments, Step::Unserve).await
}

/// Runs `remove`.
pub async fn remove(global: &GlobalArgs, arguments: StepArgs) -> ExitCode {
    run(global, arguments, Step::Remove).await
}

async fn run(global: &GlobalArgs, arguments: StepArgs, step: Step) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let StepArgs { definition, version, dry_run } = arguments;
        let step = StepRun { cluster: global.cluster()?, definition, version, step, dry_run };
        let state = step.run(run).await?;
        run.settle();
        print(&if global.wants_json() { storage_text::json(&state) } else { storage_text::versions(&state) })?;
        Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()))
    })
    .await
}
