//! `pushback upgrade diff-crds`: every difference between the CustomResourceDefinitions of two releases.

use std::path::Path;

use clap::{Args, ValueEnum};
use pushback_preflight::operator::definitions::{self, DefinitionsDiff, Verdicts};

use super::{DefinitionsArgs, Ended, FailOn, ReportFormat, ShownArgs, SidesArgs, data_text, warn};
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::note;
use crate::exit::ExitCode;
use crate::report::release::definitions_text;
use crate::run::error::CommandError;
use crate::upgrade::sources::Side;

/// Say every difference between the CustomResourceDefinitions of two releases.
#[derive(Debug, Args)]
#[command(after_help = "\
Severity is that of published lists; OBJECTS is the verdict of rule CRDUpgradeSafety: whether
an object that was fine before, or a client, suffers.

Examples:
  pushback upgrade diff-crds --old crds/v2.20 --new crds/v2.21
  pushback upgrade diff-crds --old git:v2.20:config/crd --new config/crd --output schema-diff.json
  kustomize build config/crd | pushback upgrade diff-crds --old git:main:config/crd --new -
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

impl FailOnObjects {
    fn fails(self, verdicts: &Verdicts) -> bool {
        match self {
            Self::Breaking => verdicts.breaking > 0,
            Self::Unknown => verdicts.breaking + verdicts.unknown > 0,
            Self::Never => false,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The definitions cannot be read, or the two sides are of different ones.
pub async fn run(global: &GlobalArgs, arguments: DiffCrdsArgs) -> Result<Ended, CommandError> {
    let DiffCrdsArgs { sides, definitions: how, shown, fail_on, fail_on_verdict } = arguments;
    let (path, format) = shown.place()?;
    let inputs = [sides.from.clone(), sides.to.clone()];
    let (old, new) = sides.resolve(global)?.read(&|text| note(global, text)).await?;
    warn(global, &old.warnings);
    warn(global, &new.warnings);
    comparable(&old, &new, [&inputs[0], &inputs[1]])?;
    let diff = DefinitionsDiff::of(definitions::compare(&old.definitions(), &new.definitions(), how.options()));
    let text = match format {
        ReportFormat::Table => definitions_text::table(&diff),
        ReportFormat::Markdown => definitions_text::markdown(&diff),
        format @ (ReportFormat::Json | ReportFormat::Yaml) => data_text(&diff, format)?,
    };
    let (code, reason) = fail_on.judge(diff.changes().map(|change| change.severity));
    if code == ExitCode::Success && fail_on_verdict.fails(&diff.summary.verdicts) {
        let reason = Some("an object would suffer, as --fail-on-verdict asks".to_owned());
        return Ok(Ended { text, path, code: ExitCode::Refused, reason });
    }
    Ok(Ended { text, path, code, reason })
}

/// Two files of two definitions are no two states of one, and two sides without any are a wrong path.
fn comparable(old: &Side, new: &Side, inputs: [&[String]; 2]) -> Result<(), CommandError> {
    let (before, after) = (old.definitions(), new.definitions());
    if before.is_empty() && after.is_empty() {
        return Err(CommandError::usage_with_hint(
            format!("neither {} nor {} holds a CustomResourceDefinition", old.named, new.named),
            "name the files or folders that hold the definitions of the two releases",
        ));
    }
    let files = inputs.iter().all(|inputs| matches!(inputs, [input] if is_file(input)));
    if let ([before], [after]) = (&before[..], &after[..])
        && before.name != after.name
        && files
    {
        return Err(CommandError::usage_with_hint(
            format!("the two files hold different definitions: {} and {}", before.name, after.name),
            "compare files of the same definition, or folders",
        ));
    }
    Ok(())
}

/// Whether an input is a single file; in a git ref, by its name.
fn is_file(input: &str) -> bool {
    let path = input.strip_prefix("git:").and_then(|rest| rest.split_once(':')).map_or(input, |(_, path)| path);
    let named = Path::new(path)
        .extension()
        .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)));
    Path::new(input).is_file() || (named && !Path::new(input).is_dir())
}
