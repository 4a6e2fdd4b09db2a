//! Compares two releases: what changed, and whether it is as bad as the user's threshold.

use std::collections::BTreeMap;

use pushback_events::exit::ExitCode;
use pushback_objects::text::counted;
use pushback_releases::{Release, ReleaseDiff, Severity, compare};
use pushback_upgrade::sources::{self, Side};

use super::sides::Sides;
use crate::run::answer::{Answer, Notes};
use crate::run::error::CommandError;

/// Options of a comparison of releases.
#[derive(Clone, Debug)]
pub struct CompareReleases {
    /// The two releases.
    pub sides: Sides,
    /// Comparison options.
    pub options: compare::Options,
    /// The least severity that is listed.
    pub least: Severity,
    /// Lowest severity that makes the command fail.
    pub fail_on: Option<Severity>,
}

impl CompareReleases {
    /// Compares the releases.
    ///
    /// # Errors
    /// The releases cannot be read.
    pub async fn run(&self, notes: &dyn Notes) -> Result<Answer<ReleaseDiff>, CommandError> {
        let (old_side, new_side) = read(&self.sides, notes).await?;
        let (old, new) = sources::releases(&old_side, &new_side)?;
        let mut diff = compare::compare(&old, &new, self.options);
        let options = self.options.definitions;
        diff.crd_changes.extend(sources::changes_of_variants(&old_side, &new_side, options, &diff.crd_changes));
        diff.summarise();
        let refusal = refusal(self.fail_on, diff.severities());
        diff.keep_from(self.least);
        Ok(Answer::unless(diff, ExitCode::Refused, refusal))
    }
}

/// Reads both sides, and warns about likely mistakes in them.
pub(super) async fn read(sides: &Sides, notes: &dyn Notes) -> Result<(Side, Side), CommandError> {
    let (old, new) = sides.read(&|text| notes.note(text)).await?;
    for side in [&old, &new] {
        side.rendered.iter().for_each(|folder| notes.note(&folder.to_string()));
        notes.warn(&side.warnings);
    }
    Ok((old, new))
}

/// Reads both sides as releases.
pub(super) async fn releases(sides: &Sides, notes: &dyn Notes) -> Result<(Release, Release), CommandError> {
    let (old, new) = read(sides, notes).await?;
    Ok(sources::releases(&old, &new)?)
}

/// Why changes of these severities fail the command, if they do.
pub(super) fn refusal(least: Option<Severity>, changes: impl IntoIterator<Item = Severity>) -> Option<String> {
    let least = least?;
    let mut counts: BTreeMap<Severity, usize> = BTreeMap::new();
    for severity in changes.into_iter().filter(|severity| *severity >= least) {
        *counts.entry(severity).or_default() += 1;
    }
    let words: Vec<String> = counts.iter().rev().map(|(severity, count)| of_severity(*severity, *count)).collect();
    (!words.is_empty()).then(|| format!("Refused by --fail-on {}: {}.", least.as_str(), words.join(", ")))
}

/// `1 change is breaking`.
fn of_severity(severity: Severity, count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    let word = match severity {
        Severity::Breaking => "breaking",
        Severity::Warning => "of severity warning",
        Severity::Info => "of severity info",
    };
    format!("{} {verb} {word}", counted(count, "change"))
}
