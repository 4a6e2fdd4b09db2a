//! `pushback storage convert`: manifests in another version of their kind.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::conversion_text;
use pushback_terminal::output::Output;

use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::{fail, simple};
use crate::run::storage::conversion::ConversionFiles;
use crate::run::storage::convert::Convert;
use crate::run::storage::programs::NamedPrograms;

/// The definition and the plan.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// File with the definition of the kind, in all versions
    #[arg(long, value_name = "FILE")]
    crd: PathBuf,
    /// File with the ConversionPlan; without one, conversions are as the schemas give them
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

impl PlanArgs {
    pub(super) fn files(&self) -> ConversionFiles {
        ConversionFiles { definition: self.crd.clone(), plan: self.plan.clone() }
    }
}

/// Programs that a plan names.
#[derive(Clone, Debug, Args)]
pub struct ProgramArgs {
    /// A program that the plan may hand objects to; it gets {"from", "to", "before", "after"} and prints the object
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = named_program)]
    programs: Vec<(String, PathBuf)>,
}

impl ProgramArgs {
    pub(super) fn named(&self) -> NamedPrograms {
        NamedPrograms::of(&self.programs)
    }
}

fn named_program(text: &str) -> Result<(String, PathBuf), String> {
    let named = text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
    let (name, path) = named.ok_or_else(|| format!("{text:?} is not NAME=PATH"))?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

/// Convert manifests to another version.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage convert --to v2 --plan plan.yaml --crd crd.yaml person.yaml
  pushback storage convert --to v2 --plan plan.yaml --crd crd.yaml --in-place manifests/
  kubectl get people -A -o yaml | pushback storage convert --to v2 --plan plan.yaml --crd crd.yaml -

Other documents, and every byte outside the documents that change, stay as they are. Files are
written only if everything can be converted, and without --allow-loss only if nothing is lost.

Exit codes: 0 converted, 1 wrong input, a wrong plan, or something would be lost; nothing written.")]
pub struct ConvertArgs {
    /// Manifests: files, folders (read recursively), or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The wanted version
    #[arg(long, value_name = "VERSION")]
    to: String,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Write the files instead of printing them
    #[arg(long)]
    in_place: bool,
    /// Convert although fields are lost; they are named
    #[arg(long)]
    allow_loss: bool,
}

/// Runs the command.
pub fn run(global: &GlobalArgs, arguments: &ConvertArgs) -> ExitCode {
    let convert = Convert {
        files: arguments.plan.files(),
        programs: arguments.programs.named(),
        paths: arguments.paths.clone(),
        to: arguments.to.clone(),
        allow_loss: arguments.allow_loss,
        in_place: arguments.in_place,
    };
    match convert.run() {
        Err(error) => fail(global, &error),
        Ok(report) => {
            Output::standard().progress(&conversion_text::converted(&report, &arguments.to));
            simple(global, Ok(report.text))
        }
    }
}
