//! `pushback storage suggest`: a draft of a conversion plan.

use clap::Args;
use pushback_conversion::suggestions;
use pushback_events::exit::ExitCode;
use pushback_terminal::conversion_text;

use super::convert::PlanArgs;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::simple;

/// Guess which field became which.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage suggest --crd crd.yaml
  pushback storage suggest --crd crd.yaml --plan plan.yaml

Compares the names of fields that only one of two adjacent versions has and that have the same
shape. Nothing is applied: copy into the plan what is right. Names that differ only in the case of
letters correspond without a plan.

Exit codes: 0 printed, 1 wrong input or a wrong plan.")]
pub struct SuggestArgs {
    #[command(flatten)]
    plan: PlanArgs,
}

/// Runs the command.
pub fn run(global: &GlobalArgs, arguments: &SuggestArgs) -> ExitCode {
    let draft = arguments.plan.files().draft();
    simple(global, draft.map(|converter| conversion_text::draft(&suggestions(&converter))))
}
