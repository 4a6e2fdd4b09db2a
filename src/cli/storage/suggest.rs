//! `pushback storage suggest`: a draft of a conversion plan.

use clap::Args;
use pushback_conversion::{Converter, suggestions};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_terminal::conversion_text;

use super::convert::PlanArgs;
use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, simple, start_for_report};
use crate::run::outcome::End;
use crate::run::storage::conversion::Draft;

/// Guess which field became which.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage suggest --crd crd.yaml
  pushback storage suggest caches.data.example.com --crd release.yaml --live
  pushback storage suggest --crd crd.yaml --plan plan.yaml

Compares the names of fields that only one of two adjacent versions has and that have the same
shape. Nothing is applied: check each line of the draft, and give a reason for each field that is
removed. With a plan, the steps that it lacks are printed. Names that differ only in the case of
letters correspond without a plan.

Exit codes: 0 printed, 1 wrong input or a wrong plan, 13 cluster not reachable (--live).")]
pub struct SuggestArgs {
    /// Name of the CRD, if the file has several
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    plan: PlanArgs,
    /// Include the versions that only the CRD on the cluster has, such as one that the file removes
    #[arg(long)]
    live: bool,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: &SuggestArgs) -> ExitCode {
    let files = arguments.plan.files();
    let is_new = files.plan.is_none();
    let draft = Draft { files, name: arguments.name.clone() };
    let text =
        |converter: &Converter| conversion_text::draft(is_new.then(|| converter.name()), &suggestions(converter));
    if !arguments.live {
        return simple(global, draft.converter().map(|converter| text(&converter)));
    }
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let converter = draft.live_converter(run, &global.cluster()?).await?;
        run.settle();
        print(&text(&converter))?;
        Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()))
    })
    .await
}
