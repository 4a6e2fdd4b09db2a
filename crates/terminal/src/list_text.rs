//! The apps of a namespace: a table for people, JSON for programs.

use pushback_objects::ObjectExt;
use serde_json::{Value, json};

use crate::escape::terminal_safe_json;
use crate::table::Table;

/// A table for people.
#[must_use]
pub fn table(apps: &[Value], columns: Option<u16>) -> String {
    let mut table = Table::new(&["NAMESPACE", "NAME", "NAMESPACES", "LAST CHANGE", "AT"]).with_names(&[0, 1, 2]);
    for app in apps {
        let spaces = app
            .get("namespaces")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","));
        table.row(&[
            app.text("/namespace"),
            app.text("/name"),
            &spaces.unwrap_or_default(),
            app.text("/state"),
            &to_the_second(app.text("/finishedAt")),
        ]);
    }
    if apps.is_empty() { "no apps\n".to_owned() } else { table.text_for(columns, "…") }
}

/// JSON for programs.
#[must_use]
pub fn json(apps: &[Value]) -> String {
    terminal_safe_json(&format!("{:#}", json!({"schemaVersion": 1, "apps": apps}))) + "\n"
}

/// A time without fractions of a second, `2026-11-21T10:23:10Z`; unchanged if it cannot be parsed.
pub(super) fn to_the_second(time: &str) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => time.to_owned(),
    }
}
