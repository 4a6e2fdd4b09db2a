//! `pushback storage golden`: whether conversions still give what was recorded.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::conversion_text;
use pushback_terminal::output::Output;

use super::convert::{PlanArgs, ProgramArgs};
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::{fail, simple};
use crate::run::storage::golden::GoldenRun;

/// Compare conversions of fixed objects with files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage golden --plan plan.yaml --crd crd.yaml --update goldens/
  pushback storage golden --plan plan.yaml --crd crd.yaml goldens/

There is a file for each conversion to the hub or from it on whose way the plan has expressions or
programs (`hooks`); without any there is nothing to compare, and the command says so.

Exit codes: 0 all as recorded, or written, 1 something differs, wrong input or a wrong plan.")]
pub struct GoldenArgs {
    /// The folder with the files
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Write the files
    #[arg(long)]
    update: bool,
}

/// Runs the command.
pub fn run(global: &GlobalArgs, arguments: &GoldenArgs) -> ExitCode {
    let golden = GoldenRun {
        files: arguments.plan.files(),
        programs: arguments.programs.named(),
        folder: arguments.folder.clone(),
        update: arguments.update,
    };
    match golden.run(conversion_text::documents) {
        Err(error) => fail(global, &error),
        Ok(report) if report.different.is_empty() => simple(global, Ok(conversion_text::goldens(&report))),
        Ok(report) => {
            Output::standard().progress(&conversion_text::goldens(&report));
            ExitCode::Usage
        }
    }
}
