//! Changes between two releases as text for people.

use std::cmp::Reverse;

use pushback_objects::text::counted;
use pushback_releases::{Change, ChangeType, ComponentChange, MatchType, ReleaseDiff};
use pushback_terminal::escape::terminal_safe;
use pushback_terminal::table::Table;
use pushback_terminal::words::hang;

use super::same_changes::same_changes;

/// The counts, then a block per component with its changes, the worst first, in lines of at most this many columns.
#[must_use]
pub fn table(diff: &ReleaseDiff, columns: Option<usize>) -> String {
    let mut text = format!("{}\n{}\n", terminal_safe(&title(diff)), counts(diff).join("\n"));
    if let Some(columns) = columns {
        text = hang(&text, u16::try_from(columns).unwrap_or(u16::MAX));
    }
    for component in &diff.component_changes {
        let mut changes: Vec<&Change> = own(component).collect();
        changes.sort_by_key(|change| Reverse(change.severity));
        if !changes.is_empty() {
            text += &format!("\n{}\n", terminal_safe(&heading(component)));
            text += &rows(&changes, columns);
        }
    }
    if !diff.crd_changes.is_empty() {
        text += "\nCustomResourceDefinitions\n";
        let mut table = Table::new(&["  SEVERITY", "CHANGE", "DEFINITION", "WHERE", "WHAT", "OBJECTS"]);
        for same in same_changes(&diff.crd_changes) {
            let change = same.first;
            let severity = format!("  {}", change.severity.as_str());
            let name = change.change_type.name();
            table.row(&[
                &severity,
                &name,
                &same.definition(),
                &same.place(),
                &change.sentence(),
                change.verdict.as_str(),
            ]);
        }
        text += &table.text_within(columns);
    }
    text + "\n"
}

/// `2.10.0 -> 3.3.1 on odh`.
pub(super) fn title(diff: &ReleaseDiff) -> String {
    let version = |version: &str| if version.is_empty() { "(no version)".to_owned() } else { version.to_owned() };
    let platform = if diff.platform.is_empty() { String::new() } else { format!(" on {}", diff.platform) };
    format!("{} -> {}{platform}", version(&diff.source_version), version(&diff.target_version))
}

/// `dashboard/rhods-dashboard, was odh-dashboard (similarity 1.000)`.
pub(super) fn heading(component: &ComponentChange) -> String {
    let how = match (component.match_type, &component.renamed_from, component.score) {
        (MatchType::Added, ..) => ", added".to_owned(),
        (MatchType::Removed, ..) => ", removed".to_owned(),
        (MatchType::Fuzzy, Some(from), Some(score)) => format!(", was {from} (similarity {score:.3})"),
        _ => String::new(),
    };
    format!("{}/{}{how}", component.operator, component.component_name)
}

/// Its changes except those of definitions, which are shown elsewhere with their verdicts.
pub(super) fn own(component: &ComponentChange) -> impl Iterator<Item = &Change> {
    component.changes.iter().filter(|change| change.change_type != ChangeType::CrdSchemaChange)
}

fn rows(changes: &[&Change], columns: Option<usize>) -> String {
    let mut table = Table::new(&["  SEVERITY", "CHANGE", "WHERE", "WHAT"]);
    for change in changes {
        let severity = format!("  {}", change.severity.as_str());
        table.row(&[&severity, &change.change_type.name(), &change.path, &change.message]);
    }
    table.text_within(columns)
}

/// Counts of components and of changes.
pub(super) fn counts(diff: &ReleaseDiff) -> [String; 2] {
    let summary = &diff.summary;
    let renamed = match summary.components_renamed {
        0 => String::new(),
        count => format!(", {count} of them renamed"),
    };
    let components = [
        (summary.components_added, "added", ""),
        (summary.components_removed, "removed", ""),
        (summary.components_modified, "modified", renamed.as_str()),
    ];
    let changes = [
        (summary.breaking_changes, "breaking", ""),
        (summary.warnings, "warning", ""),
        (summary.info_changes, "info", ""),
    ];
    [numbers("component", &components), numbers("change", &changes)]
}

/// `2 components added, 1 removed`; zeros are left out.
fn numbers(noun: &str, parts: &[(usize, &str, &str)]) -> String {
    let mut words = Vec::new();
    for (count, what, tail) in parts.iter().filter(|(count, ..)| *count > 0) {
        let number = if words.is_empty() { counted(*count, noun) } else { count.to_string() };
        words.push(format!("{number} {what}{tail}"));
    }
    if words.is_empty() { format!("no {noun} differs") } else { words.join(", ") }
}
