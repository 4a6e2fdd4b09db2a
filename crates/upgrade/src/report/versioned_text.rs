//! Problems in a folder of models, for people and as Markdown.

use pushback_objects::text::counted;
use pushback_releases::versioned::Check;
use pushback_terminal::escape::terminal_safe;
use pushback_terminal::markdown::{code, prose};
use pushback_terminal::words::hang;
use serde_json::{Value, json};

use super::formats::ReleaseReport;

/// A line per check, with its problems below.
#[must_use]
pub fn table(directory: &str, checks: &[Check]) -> String {
    let mut text = format!("{}\n", terminal_safe(directory));
    for check in checks {
        text += &format!("  {:<6} {}\n", word(check), check.asks);
        for problem in &check.problems {
            let line = format!("{}: {}", problem.position, problem.message);
            text += &format!("           {}\n", terminal_safe(&line));
            for hint in &problem.hints {
                text += &format!("             {}\n", terminal_safe(hint));
            }
        }
    }
    text + "\n" + &counted(checks.iter().map(|check| check.problems.len()).sum::<usize>(), "problem") + "\n"
}

/// The same as Markdown for a pull request comment.
#[must_use]
pub fn markdown(directory: &str, checks: &[Check]) -> String {
    let mut text = format!("## Models in {}\n\n", code(directory, 200));
    for check in checks {
        text += &format!("- {}: {}\n", word(check), check.asks);
        for problem in &check.problems {
            let place = problem.position.to_string();
            text += &format!("  - {}: {}\n", code(&place, 200), prose(&problem.message, 500));
        }
    }
    text
}

fn word(check: &Check) -> &'static str {
    if check.problems.is_empty() { "ok" } else { "FAILED" }
}

/// Validation result of a folder of models.
#[derive(Debug)]
pub struct Versioned<'a> {
    /// Path of the folder.
    pub directory: &'a str,
    /// The checks made.
    pub checks: &'a [Check],
}

impl ReleaseReport for Versioned<'_> {
    fn table(&self, columns: Option<usize>) -> String {
        let text = table(self.directory, self.checks);
        columns.map_or_else(|| text.clone(), |columns| hang(&text, u16::try_from(columns).unwrap_or(u16::MAX)))
    }

    fn markdown(&self) -> String {
        markdown(self.directory, self.checks)
    }

    fn data(&self) -> serde_json::Result<Value> {
        let valid = self.checks.iter().all(|check| check.problems.is_empty());
        let Self { directory, checks } = self;
        Ok(json!({"schemaVersion": 1, "directory": directory, "valid": valid, "checks": serde_json::to_value(checks)?}))
    }
}
