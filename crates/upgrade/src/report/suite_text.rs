//! A suite of experiments for people, as text and as Markdown.

use std::collections::BTreeMap;

use pushback_preflight::experiment::suite::{ManualReview, Suite, SuiteExperiment};
use pushback_terminal::escape::{terminal_safe, terminal_safe_lines};
use pushback_terminal::markdown;
use pushback_terminal::table::Table;
use serde_json::Value;

use super::formats::ReleaseReport;
use crate::suite_folder;

/// Most subjects named in a group of reviews.
const NAMED: usize = 3;

/// Most characters of a Markdown cell.
const LONGEST_CELL: usize = 400;

/// The experiments in order, the manual reviews, and the counts.
#[must_use]
pub fn table(suite: &Suite, columns: Option<usize>) -> String {
    let mut text = format!("{}\n", terminal_safe(&title(suite)));
    if !suite.experiments.is_empty() {
        text += "\n";
        let mut table = Table::new(&["FILE", "INJECTION", "DANGER", "WHEN", "TARGET", "NEEDS"]);
        for entry in &suite.experiments {
            let [file, injection, danger, phase, target, needs] = cells(entry);
            table.row(&[&file, &injection, &danger, &phase, &target, &needs]);
        }
        text += &table.text_within(columns);
    }
    if !suite.manual.is_empty() {
        text += "\nmanual review:\n";
        let mut table = Table::new(&["  CHANGE", "COMPONENT", "WHAT", "WHY"]);
        for review in reviews(suite) {
            let change = format!("  {}", review.origin.change_type);
            table.row(&[
                &change,
                &component(&review.origin.operator, &review.origin.component),
                &review.subject,
                &review.reason,
            ]);
        }
        text += &table.text_within(columns);
    }
    for export in &suite.exports {
        text += &format!(
            "\nfor {}: {} files, {} experiments that it cannot express\n",
            export.tool.as_str(),
            export.files.len(),
            export.left_out.len()
        );
    }
    text + "\n" + &counts(suite) + "\n" + why_none(suite)
}

/// The reason for a suite without experiments, and the remedy.
fn why_none(suite: &Suite) -> &'static str {
    match (suite.experiments.is_empty(), suite.manual.is_empty()) {
        (false, _) => "",
        (true, true) => "Nothing differs that an experiment could test.\n",
        (true, false) => {
            "No experiment was possible: it needs a component with Pods to inject into. Add the operator's Deployment to \
             --from and --to, and an object of each changed kind.\n"
        }
    }
}

/// The same as Markdown for a pull request comment.
#[must_use]
pub fn markdown(suite: &Suite) -> String {
    let mut text =
        format!("### Experiments for {}\n\n{}\n", markdown::prose(&title(suite), LONGEST_CELL), counts(suite));
    if !suite.experiments.is_empty() {
        text += "\n| File | Injection | Danger | When | Target | Needs |\n|---|---|---|---|---|---|\n";
        for entry in &suite.experiments {
            let row: Vec<String> = cells(entry).iter().map(|text| cell(text)).collect();
            text += &format!("| {} |\n", row.join(" | "));
        }
    }
    if !suite.manual.is_empty() {
        text += "\n| Manual review | Component | What | Why |\n|---|---|---|---|\n";
        for review in reviews(suite) {
            let component = component(&review.origin.operator, &review.origin.component);
            let cells = [&review.origin.change_type, &component, &review.subject, &review.reason];
            let row: Vec<String> = cells.iter().map(|text| cell(text)).collect();
            text += &format!("| {} |\n", row.join(" | "));
        }
    }
    text
}

/// Merges reviews of one component with the same reason; names the first few subjects.
fn reviews(suite: &Suite) -> Vec<ManualReview> {
    let mut groups: BTreeMap<(&str, &str, &str, &str), Vec<&ManualReview>> = BTreeMap::new();
    for review in &suite.manual {
        let origin = &review.origin;
        let key =
            (origin.operator.as_str(), origin.component.as_str(), origin.change_type.as_str(), review.reason.as_str());
        groups.entry(key).or_default().push(review);
    }
    let joined = |group: Vec<&ManualReview>| {
        let named: Vec<&str> = group.iter().take(NAMED).map(|review| review.subject.as_str()).collect();
        let more = group.len().saturating_sub(NAMED);
        let tail = if more == 0 { String::new() } else { format!(" and {more} more") };
        group.first().map(|first| ManualReview { subject: named.join(", ") + &tail, ..(*first).clone() })
    };
    groups.into_values().filter_map(joined).collect()
}

fn cell(text: &str) -> String {
    markdown::cell(&markdown::prose(text, LONGEST_CELL))
}

fn title(suite: &Suite) -> String {
    let version = |version: &str| if version.is_empty() { "(no version)".to_owned() } else { version.to_owned() };
    format!("{} -> {}", version(&suite.source.version), version(&suite.target.version))
}

fn cells(entry: &SuiteExperiment) -> [String; 6] {
    let needs: Vec<&str> = entry.needs.iter().map(|need| need.as_str()).collect();
    let target = &entry.experiment.target;
    [
        entry.file.clone(),
        entry.experiment.injection.kind.as_str().to_owned(),
        entry.experiment.injection.danger.as_str().to_owned(),
        entry.phase.as_str().to_owned(),
        component(&target.operator, &target.component),
        needs.join(", "),
    ]
}

fn component(operator: &str, component: &str) -> String {
    match (operator, component) {
        ("", component) => component.to_owned(),
        (operator, "") => operator.to_owned(),
        (operator, component) => format!("{operator}/{component}"),
    }
}

fn counts(suite: &Suite) -> String {
    let ready = suite.experiments.iter().filter(|entry| entry.is_enabled()).count();
    let open = suite.experiments.len() - ready;
    let experiments = suite.experiments.len();
    let noun = if experiments == 1 { "experiment" } else { "experiments" };
    let reviews = suite.manual.len();
    let reviewed = if reviews == 1 { "change needs" } else { "changes need" };
    let filled_in = if open == 1 { "needs" } else { "need" };
    format!("{experiments} {noun}: {ready} ready, {open} {filled_in} values; {reviews} {reviewed} manual review")
}

/// All files as one stream of YAML documents, each under its name.
#[must_use]
pub fn documents(suite: &Suite) -> String {
    let files = suite_folder::texts(suite).into_iter().map(|(file, text)| {
        let text = terminal_safe_lines(&text).into_owned();
        format!("---\n# {file}\n{text}")
    });
    files.collect()
}

impl ReleaseReport for Suite {
    fn table(&self, columns: Option<usize>) -> String {
        table(self, columns)
    }

    fn markdown(&self) -> String {
        markdown(self)
    }

    fn data(&self) -> serde_json::Result<Value> {
        Ok(self.manifest())
    }
}
