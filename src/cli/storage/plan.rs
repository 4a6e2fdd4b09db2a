//! `pushback storage plan`: what would be done to stored objects, step by step.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_storage::preview::PreviewReport;
use pushback_terminal::{preview_text, storage_text};

use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, start_for_report};
use crate::run::options::NamespaceOptions;
use crate::run::outcome::End;
use crate::run::storage::replace::Replace;

/// Show what would be done to stored objects.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage plan widgets.example.com
  pushback storage plan -f crds-v2.yaml
  pushback storage plan widgets.example.com -f crds-v2.yaml -f conversion-plan.yaml -o json

With files: the steps that `pushback apply --storage` takes when their definitions are written, the
fields that differ between the old and the new version, and what objects lose. Without: the steps of
`pushback storage migrate`. Reads every object, and writes nothing.

Exit codes: 0 shown, 1 wrong input or no such definition, 13 unreachable. With --exit-status: 2
nothing is to be done, 3 something is, 10 it would be refused.")]
pub struct PlanArgs {
    /// Definitions, PLURAL.GROUP [default: those of the files that are on the cluster]
    #[arg(value_name = "DEFINITION", required_unless_present = "file")]
    definitions: Vec<String>,
    /// File with the definitions as they are to be, and with ConversionPlans; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Show every field
    #[arg(long)]
    all: bool,
    /// Exit with 2 if there is nothing to do, with 3 if there is, with 10 if it would be refused
    #[arg(long)]
    exit_status: bool,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: PlanArgs) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let PlanArgs { definitions: names, file: files, all, exit_status, namespace } = arguments;
        let replace = Replace { cluster: global.cluster()?, namespace, names, files, backup: None };
        let report = replace.look(run).await?;
        run.settle();
        let text = || preview_text::text(&report, all) + &preview_text::next(&report);
        print(&if global.wants_json() { storage_text::json(&report) } else { text() })?;
        Ok(End::new(
            if exit_status { code(&report) } else { ExitCode::Success },
            RunOutcome::Succeeded,
            Counts::default(),
        ))
    })
    .await
}

fn code(report: &PreviewReport) -> ExitCode {
    match (report.refused(), report.has_steps()) {
        (Some(_), _) => ExitCode::Refused,
        (None, true) => ExitCode::Changes,
        (None, false) => ExitCode::NoChanges,
    }
}
