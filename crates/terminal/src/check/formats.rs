//! The formats of check reports, one row each; help, errors and parsing use this table.

use std::fmt;

use pushback_deploy::check::report::CheckReport;

use super::{github, html, json, junit, markdown, sarif};
use crate::output::Output;

/// A format of check reports.
pub struct Format {
    /// Name of the format in `--report`.
    pub word: &'static str,
    /// Renders a report.
    pub render: fn(&CheckReport) -> String,
    /// Prints a rendered report to standard output.
    pub print: fn(&mut Output, &str),
}

/// [`CheckReport`] as JSON.
pub static JSON: Format = Format { word: "json", render: json::text, print: Output::data };

/// A JUnit XML file: a suite per rule, a case per finding.
static JUNIT: Format = Format { word: "junit", render: junit::text, print: Output::data };

/// SARIF 2.1.0, for code scanners.
static SARIF: Format = Format { word: "sarif", render: sarif::text, print: Output::data };

/// Markdown short enough for a pull request comment.
static MARKDOWN: Format = Format { word: "markdown", render: markdown::text, print: Output::data };

/// Workflow commands of GitHub Actions, which become annotations: the only text that a runner may act on.
static GITHUB: Format = Format { word: "github", render: github::text, print: Output::commands };

/// A page to look at: one HTML file.
static HTML: Format = Format { word: "html", render: html::text, print: Output::data };

/// Every format.
static FORMATS: [&Format; 6] = [&JSON, &JUNIT, &SARIF, &MARKDOWN, &GITHUB, &HTML];

/// The format with this name.
#[must_use]
pub fn find(word: &str) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.word == word)
}

/// Names of all formats.
#[must_use]
pub fn words() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.word).collect()
}

/// Help text of `--report`.
#[must_use]
pub fn help() -> String {
    let words = words();
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    format!(
        "Write a report, FORMAT=PATH, for {} or {last}; the path - is standard output, which then holds that report \
         alone; can be given more than once",
        others.join(", ")
    )
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)
    }
}

#[cfg(test)]
mod tests {
    use pushback_objects::finding::LiveObjects;
    use pushback_objects::{Remedy, RemedyKind};
    use serde_json::json;

    use super::*;
    use crate::cause_text::judged_text;
    use crate::fixture::check_report;
    use crate::theme::{Look, Theme};

    #[test]
    fn every_format_has_place_change_effect_objects_and_remedies_in_the_same_words() {
        let mut report = check_report();
        report.findings.truncate(1);
        let finding = &mut report.findings[0];
        finding.check = "maxLength".to_owned();
        finding.message = "version \"v1\", field \"^.spec.f\": maxLength constraint added when one did not exist \
                           previously: 3 (no live object is affected)"
            .to_owned();
        (finding.old, finding.new) = (None, Some(json!(3)));
        finding.live_objects = Some(LiveObjects::exactly(1, 112, vec!["team-a/w1".to_owned()]));
        finding.remedies =
            vec![Remedy::deployer(RemedyKind::CorrectObjects, "shorten spec.f"), Remedy::author("leave it out")];
        report.causes = pushback_preflight::causes(&report.findings);
        let judged = || vec![(report.findings[0].clone(), None)];
        let look = |verbose| Look { theme: Theme::plain(), width: 200, verbose };
        let texts = [false, true].map(|verbose| ("text", judged_text(judged(), look(verbose))));
        let formats = FORMATS.iter().map(|format| (format.word, (format.render)(&report)));
        for (word, text) in texts.into_iter().chain(formats) {
            // HTML starts a step with a capital; JSON has the numbers as fields.
            for part in ["41", "maxLength added: 3 (no live", "rejected", "team-a/w1", "horten spec.f", "eave it out"] {
                assert!(text.contains(part), "{word} lacks {part}:\n{text}");
            }
        }
    }
}
