//! Compares the CustomResourceDefinitions of two releases.

use std::path::Path;

use pushback_events::exit::ExitCode;
use pushback_releases::Severity;
use pushback_releases::definitions::{self, DefinitionsDiff, Options, Verdicts};
use pushback_upgrade::sources::{self, Side};

use super::compare::{read, refusal};
use super::sides::Sides;
use crate::run::answer::{Answer, Notes};
use crate::run::error::CommandError;

/// Options of a comparison of definitions.
#[derive(Clone, Debug)]
pub struct CompareDefinitions {
    /// The two releases.
    pub sides: Sides,
    /// Comparison options.
    pub options: Options,
    /// Lowest severity that makes the command fail.
    pub fail_on: Option<Severity>,
    /// Verdict for objects that makes the command fail.
    pub fail_on_verdict: FailOnVerdict,
}

/// Verdicts for objects that make a comparison fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOnVerdict {
    /// A previously valid object is affected.
    Breaking,
    /// An object is affected, or it cannot be determined.
    Unknown,
    /// No verdict.
    Never,
}

impl FailOnVerdict {
    fn fails(self, verdicts: &Verdicts) -> bool {
        match self {
            Self::Breaking => verdicts.breaking > 0,
            Self::Unknown => verdicts.breaking + verdicts.unknown > 0,
            Self::Never => false,
        }
    }
}

impl CompareDefinitions {
    /// Compares the definitions.
    ///
    /// # Errors
    /// The definitions cannot be read, or the two sides define different kinds.
    pub async fn run(&self, notes: &dyn Notes) -> Result<Answer<DefinitionsDiff>, CommandError> {
        let (old, new) = read(&self.sides, notes).await?;
        self.require_comparable(&old, &new)?;
        let mut changes = definitions::compare(&old.definitions(), &new.definitions(), self.options);
        changes.extend(sources::changes_of_variants(&old, &new, self.options, &changes));
        let diff = DefinitionsDiff::of(changes);
        let for_objects = || {
            let fails = self.fail_on_verdict.fails(&diff.summary.verdicts);
            fails.then(|| "an object would suffer, as --fail-on-verdict asks".to_owned())
        };
        let wrong = refusal(self.fail_on, diff.changes().map(|change| change.severity)).or_else(for_objects);
        Ok(Answer::unless(diff, ExitCode::Refused, wrong))
    }

    /// Two files with different definitions are not versions of one, and two sides without any suggest a wrong path.
    fn require_comparable(&self, old: &Side, new: &Side) -> Result<(), CommandError> {
        let (before, after) = (old.definitions(), new.definitions());
        if before.is_empty() && after.is_empty() {
            return Err(CommandError::usage_with_hint(
                format!("neither {} nor {} holds a CustomResourceDefinition", old.named, new.named),
                "name the files or folders that hold the definitions of the two releases",
            ));
        }
        let is_one_file = |side: &super::sides::SideOptions| {
            side.apps.is_empty() && matches!(&side.files[..], [input] if is_file(input))
        };
        if let ([before], [after]) = (&before[..], &after[..])
            && before.name != after.name
            && is_one_file(&self.sides.old)
            && is_one_file(&self.sides.new)
        {
            return Err(CommandError::usage_with_hint(
                format!("the two files hold different definitions: {} and {}", before.name, after.name),
                "compare files of the same definition, or folders",
            ));
        }
        Ok(())
    }
}

/// Whether an input is a single file; for a git ref, judged by its name.
fn is_file(input: &str) -> bool {
    let path = input.strip_prefix("git:").and_then(|rest| rest.split_once(':')).map_or(input, |(_, path)| path);
    let named = Path::new(path)
        .extension()
        .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)));
    Path::new(input).is_file() || (named && !Path::new(input).is_dir())
}
