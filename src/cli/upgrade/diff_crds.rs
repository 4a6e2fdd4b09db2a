//! `pushback upgrade diff-crds`: every difference between the CustomResourceDefinitions of two releases.

use clap::{Args, ValueEnum};

use super::arguments::{DefinitionsArgs, FailOn, ShownArgs, SidesArgs};
use super::ended::RenderedReport;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::ProgressNotes;
use crate::run::error::CommandError;
use crate::run::upgrade::definitions::{CompareDefinitions, FailOnVerdict};

/// Say every difference between the CustomResourceDefinitions of two releases.
#[derive(Debug, Args)]
#[command(after_help = "\
Severity is that of published lists; OBJECTS is the verdict of rule CRDUpgradeSafety: whether
an object that was fine before, or a client, suffers.

Examples:
  pushback upgrade diff-crds --old crds/v2.20 --new crds/v2.21
  pushback upgrade diff-crds --old git:v2.20:config/crd --new config/crd --output schema-diff.json
  pushback upgrade diff-crds --old git:main:charts/op --new charts/op
  pushback upgrade diff-crds --old old.yaml --new new.yaml --fail-on warning
  pushback upgrade diff-crds --old old.yaml --new new.yaml --fail-on-verdict breaking

Exit codes: 0 done, 1 wrong input, 10 a change is as bad as --fail-on or --fail-on-verdict says.")]
pub struct DiffCrdsArgs {
    #[command(flatten)]
    sides: SidesArgs,
    #[command(flatten)]
    definitions: DefinitionsArgs,
    #[command(flatten)]
    shown: ShownArgs,
    /// Exit with 10 where a change is at least this bad
    #[arg(long, value_name = "SEVERITY", default_value = "breaking", ignore_case = true)]
    fail_on: FailOn,
    /// Exit with 10 where this is the verdict for objects, whatever the severity
    #[arg(long, value_name = "VERDICT", default_value = "never")]
    fail_on_verdict: FailOnObjects,
}

/// `--fail-on-verdict`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnObjects {
    /// An object that was fine before suffers.
    Breaking,
    /// It does, or nobody can tell.
    Unknown,
    /// The verdict does not matter.
    Never,
}

impl From<FailOnObjects> for FailOnVerdict {
    fn from(fail_on: FailOnObjects) -> Self {
        match fail_on {
            FailOnObjects::Breaking => Self::Breaking,
            FailOnObjects::Unknown => Self::Unknown,
            FailOnObjects::Never => Self::Never,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The definitions cannot be read, or the two sides define different kinds.
pub async fn run(global: &GlobalArgs, arguments: DiffCrdsArgs) -> Result<RenderedReport, CommandError> {
    let DiffCrdsArgs { sides, definitions, shown, fail_on, fail_on_verdict } = arguments;
    let place = shown.place()?;
    let compare = CompareDefinitions {
        sides: sides.resolve(global)?,
        options: definitions.options(),
        fail_on: fail_on.least(),
        fail_on_verdict: fail_on_verdict.into(),
    };
    RenderedReport::of(compare.run(&ProgressNotes(global)).await?, place)
}
