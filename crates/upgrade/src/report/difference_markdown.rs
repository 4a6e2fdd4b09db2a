//! Changes between two releases as Markdown for a pull request comment: a table per component. Input is shown as text:
//! it creates no markup, link or mention.

use pushback_releases::{ReleaseDiff, Severity};
use pushback_terminal::markdown::{LIMIT, cell, code, prose};

use super::difference_text::{counts, heading, own, title};
use super::same_changes::{SameChanges, same_changes};

/// Bytes reserved for the note about omitted changes.
const NOTICE: usize = 400;
/// Most characters of a message or path.
const MESSAGE: usize = 500;
const PATH: usize = 200;

/// One row, with its section.
struct Row {
    section: String,
    severity: Severity,
    change: String,
    place: String,
    message: String,
}

/// The report, sections with the worst changes first.
#[must_use]
pub fn text(diff: &ReleaseDiff) -> String {
    let rows = rows(diff);
    let mut text = format!("## Upgrade {}\n\n", prose(&title(diff), PATH));
    for line in counts(diff) {
        text += &format!("- {}\n", prose(&line, PATH));
    }
    let mut section = "";
    let mut shown = 0;
    for row in &rows {
        let head = if row.section == section {
            String::new()
        } else {
            format!("\n### {}\n\n| Severity | Change | Where | What |\n|---|---|---|---|\n", code(&row.section, PATH))
        };
        let weight = match row.severity {
            Severity::Breaking => "**breaking**",
            other => other.as_str(),
        };
        let place = if row.place.is_empty() { String::new() } else { cell(&code(&row.place, PATH)) };
        let line = format!("| {weight} | {} | {place} | {} |\n", row.change, cell(&prose(&row.message, MESSAGE)));
        if text.len() + head.len() + line.len() + NOTICE > LIMIT {
            break;
        }
        text += &head;
        text += &line;
        section = &row.section;
        shown += 1;
    }
    if shown < rows.len() {
        text += &format!(
            "\n> [!WARNING]\n> **{} of {} changes not shown**: this comment would be larger than {LIMIT} characters. \
             `--format json` has them all.\n",
            rows.len() - shown,
            rows.len()
        );
    }
    text
}

fn rows(diff: &ReleaseDiff) -> Vec<Row> {
    let mut sections: Vec<Vec<Row>> = Vec::new();
    for component in &diff.component_changes {
        let row = |change: &pushback_releases::Change| Row {
            section: heading(component),
            severity: change.severity,
            change: change.change_type.name(),
            place: change.path.clone(),
            message: change.message.clone(),
        };
        sections.push(own(component).map(row).collect());
    }
    let row = |same: SameChanges<'_>| Row {
        section: "CustomResourceDefinitions".to_owned(),
        severity: same.first.severity,
        change: same.first.change_type.name(),
        place: format!("{} {}", same.definition(), same.place()).trim().to_owned(),
        message: format!("{}; objects: {}", same.first.sentence(), same.first.verdict.as_str()),
    };
    sections.push(same_changes(&diff.crd_changes).into_iter().map(row).collect());
    for section in &mut sections {
        section.sort_by_key(|row| std::cmp::Reverse(row.severity));
    }
    sections.sort_by_key(|section| std::cmp::Reverse(section.first().map(|row| row.severity)));
    sections.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use pushback_releases::difference::Summary;
    use pushback_releases::{Change, ChangeType, ComponentChange, MatchType};

    use super::*;

    fn diff(changes: Vec<Change>) -> ReleaseDiff {
        let component = ComponentChange {
            operator: "o".to_owned(),
            component_name: "c|d".to_owned(),
            match_type: MatchType::Exact,
            score: None,
            renamed_from: None,
            changes,
        };
        ReleaseDiff { component_changes: vec![component], summary: Summary::default(), ..ReleaseDiff::default() }
    }

    #[test]
    fn the_worst_stands_first_and_input_makes_no_markup() {
        let change = |severity, message: &str| Change::new(ChangeType::SpecChanged, severity, "a|b", message);
        let text = text(&diff(vec![change(Severity::Info, "@octocat | <b>"), change(Severity::Breaking, "worse")]));
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("SpecChanged")).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].starts_with("| **breaking** |") && rows[1].starts_with("| info |"), "{text}");
        assert!(rows[1].ends_with("| `@octocat \\| <b>` |"), "{text}");
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(text.lines().filter(|line| line.starts_with("| ")).all(|line| bars(line) == 5), "{text}");
    }

    #[test]
    fn it_stays_within_the_size_of_a_comment_and_says_what_is_left_out() {
        let change = Change::new(ChangeType::SpecChanged, Severity::Info, "a", "x".repeat(400));
        let text = text(&diff(vec![change; 1_000]));
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert!(text.contains("of 1000 changes not shown"));
    }
}
