//! `pushback storage suggest`: a draft of a conversion plan.

use std::path::PathBuf;

use clap::Args;
use pushback_conversion::{Converter, suggestions};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_terminal::conversion_text;

use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, simple, start_for_report};
use crate::run::outcome::End;
use crate::run::storage::suggest::Draft;

/// Guess which field became which.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage suggest widgets.example.com
  pushback storage suggest --crd crd.yaml
  pushback storage suggest caches.data.example.com --crd release.yaml --live
  pushback storage suggest --crd crd.yaml --plan plan.yaml

Compares the names of fields that only one of two adjacent versions has and that have the same
shape. Nothing is applied: check each line of the draft, and give a reason for each field that is
removed. With a plan, the steps that it lacks are printed. Names that differ only in the case of
letters correspond without a plan.

Exit codes: 0 printed, 1 wrong input or a wrong plan, 13 cluster not reachable.")]
pub struct SuggestArgs {
    /// CRD on the cluster, PLURAL.GROUP; with --crd, one of several in the file
    #[arg(value_name = "NAME", required_unless_present = "crd")]
    name: Option<String>,
    /// File with the CRD, in all versions
    #[arg(long, value_name = "FILE")]
    crd: Option<PathBuf>,
    /// File with the ConversionPlan; without one, conversions are as the schemas give them
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Include the versions that only the CRD on the cluster has, such as one that the file removes
    #[arg(long, requires = "crd")]
    live: bool,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: SuggestArgs) -> ExitCode {
    let SuggestArgs { name, crd, plan, live } = arguments;
    let is_new = plan.is_none();
    let text =
        |converter: &Converter| conversion_text::draft(is_new.then(|| converter.name()), &suggestions(converter));
    let draft = Draft { definition: crd, name, plan };
    if let Some(file) = draft.definition.as_deref().filter(|_| !live) {
        return simple(global, draft.converter(file).map(|converter| text(&converter)));
    }
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let converter = draft.live_converter(run, &global.cluster()?).await?;
        run.settle();
        print(&text(&converter))?;
        Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()))
    })
    .await
}
