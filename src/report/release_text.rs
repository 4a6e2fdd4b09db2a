//! What changed between two releases, for people: as text, and as Markdown for a comment on a pull request.

use pushback_preflight::operator::{Change, ComponentChange, MatchType, ReleaseDiff};

use super::escape::terminal_safe;
use super::table::Table;

/// A block for each component, its changes below it, and the counts.
#[must_use]
pub fn table(diff: &ReleaseDiff) -> String {
    let mut text = format!("{}\n", terminal_safe(&title(diff)));
    for component in &diff.component_changes {
        text += &format!("\n{}\n", terminal_safe(&heading(component)));
        text += &rows(&component.changes);
    }
    if !diff.crd_changes.is_empty() {
        text += "\ndefinitions\n";
        let mut table = Table::new(&["  SEVERITY", "VERDICT", "CHANGE", "DEFINITION", "WHERE", "WHAT"]);
        for change in &diff.crd_changes {
            let severity = format!("  {}", change.severity.as_str());
            let name = change.change_type.name();
            table.row(&[&severity, change.verdict.as_str(), &name, &change.crd_name, &change.path, &change.detail]);
        }
        text += &table.text();
    }
    text + "\n" + &counts(diff) + "\n"
}

fn title(diff: &ReleaseDiff) -> String {
    let version = |version: &str| if version.is_empty() { "(no version)".to_owned() } else { version.to_owned() };
    let platform = if diff.platform.is_empty() { String::new() } else { format!(" on {}", diff.platform) };
    format!("{} -> {}{platform}", version(&diff.source_version), version(&diff.target_version))
}

fn heading(component: &ComponentChange) -> String {
    let how = match (component.match_type, &component.renamed_from, component.score) {
        (MatchType::Added, ..) => ", added".to_owned(),
        (MatchType::Removed, ..) => ", removed".to_owned(),
        (MatchType::Fuzzy, Some(from), Some(score)) => format!(", was {from} (likeness {score:.3})"),
        _ => String::new(),
    };
    format!("{}/{}{how}", component.operator, component.component_name)
}

fn rows(changes: &[Change]) -> String {
    let mut table = Table::new(&["  SEVERITY", "CHANGE", "WHERE", "WHAT"]);
    for change in changes {
        let severity = format!("  {}", change.severity.as_str());
        table.row(&[&severity, &change.change_type.name(), &change.path, &change.message]);
    }
    table.text()
}

fn counts(diff: &ReleaseDiff) -> String {
    let summary = &diff.summary;
    format!(
        "components: {} added, {} removed, {} modified ({} renamed)\nchanges: {} breaking, {} warning, {} info",
        summary.components_added,
        summary.components_removed,
        summary.components_modified,
        summary.components_renamed,
        summary.breaking_changes,
        summary.warnings,
        summary.info_changes,
    )
}

/// The same as Markdown.
#[must_use]
pub fn markdown(diff: &ReleaseDiff) -> String {
    table(diff)
}
