//! kapp's tables of an app's changes.

use jiff::Timestamp;
use pushback_app::history::Entry;

use super::table::{Column, Table};

const CHANGES: [Column; 6] = [
    Column::new("Name", "name"),
    Column::new("Started At", "started_at"),
    Column::new("Finished At", "finished_at"),
    Column::new("Successful", "successful"),
    Column::new("Description", "description"),
    Column::new("Namespaces", "namespaces"),
];

/// The table of `app-change list` and of what `garbage-collect` would delete; namespaces are shown where they are asked
/// for.
#[must_use]
pub fn changes(title: &str, entries: &[Entry], columns: &[String]) -> Table {
    let shown = if columns.is_empty() { CHANGES.len() - 1 } else { CHANGES.len() };
    let row = |entry: &Entry| {
        let change = &entry.change;
        let successful = change.successful.map(|successful| successful.to_string()).unwrap_or_default();
        let mut cells = vec![
            entry.name.clone(),
            to_the_second(&change.started_at),
            to_the_second(&change.finished_at),
            successful,
            change.description.clone(),
            change.namespaces.join(","),
        ];
        cells.truncate(shown);
        cells
    };
    Table {
        title: title.to_owned(),
        content: "app changes".to_owned(),
        columns: CHANGES[..shown].to_vec(),
        rows: entries.iter().map(row).collect(),
        ..Table::default()
    }
}

/// A time without fractions of a second; empty for Go's zero time, which a change without an end has.
fn to_the_second(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(_) if time.starts_with("0001-") => String::new(),
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => String::new(),
    }
}
