//! The history of an app: a table for people with what was waived and which rules were off, JSON for programs.

use std::fmt::Write as _;

use pushback_app::history::{Entry, WaivedFinding};
use pushback_app::record::AppName;
use serde_json::{Value, json};

use crate::escape::{terminal_safe, terminal_safe_json};
use crate::list_text::to_the_second;
use crate::live::options::WIDTH;
use crate::table::Table;
use crate::words::hang;

/// Letters of a commit in a table.
const COMMIT: usize = 12;

/// A table for people, newest first.
#[must_use]
pub fn table(entries: &[Entry], columns: Option<u16>) -> String {
    if entries.is_empty() {
        return "no changes\n".to_owned();
    }
    let mut table =
        Table::new(&["NAME", "AT", "OUTCOME", "BY", "COMMIT", "CHANGES"]).with_names(&[0, 3]).with_message();
    for entry in entries {
        let at = to_the_second(&entry.change.started_at);
        let mut commit = entry.commit.chars().take(COMMIT).collect::<String>();
        commit += if entry.modified { "*" } else { "" };
        let done = operations(&entry.change.description);
        table.row(&[&entry.name, &at, outcome(entry), &entry.by, &commit, &done]);
    }
    let mut text = table.text_for(columns, "…");
    for entry in entries {
        if !entry.rules_off.is_empty() {
            let rules = terminal_safe(&entry.rules_off.join(", ")).into_owned();
            let _ = writeln!(text, "{}: rules that were off: {rules}", terminal_safe(&entry.name));
        }
        for WaivedFinding { fingerprint, reason, rule, object } in &entry.waivers {
            let of = if object.is_empty() { String::new() } else { format!("{rule} of {object}, ") };
            let line = format!("{}: waived {of}{fingerprint}: {reason}", entry.name);
            text += &hang(&format!("{}\n", terminal_safe(&line)), columns.unwrap_or(WIDTH));
        }
    }
    text
}

/// JSON for programs.
#[must_use]
pub fn json(app: &AppName, entries: &[Entry]) -> String {
    let change = |entry: &Entry| {
        let waiver = |WaivedFinding { fingerprint, reason, rule, object }: &WaivedFinding| {
            let mut waiver = json!({"fingerprint": fingerprint, "reason": reason});
            if !object.is_empty() {
                (waiver["rule"], waiver["object"]) = (json!(rule), json!(object));
            }
            waiver
        };
        json!({
            "name": entry.name, "startedAt": entry.change.started_at, "finishedAt": entry.change.finished_at,
            "outcome": outcome(entry), "successful": entry.change.successful, "by": entry.by, "commit": entry.commit, "modified": entry.modified, "run": entry.run,
            "description": entry.change.description, "namespaces": entry.change.namespaces,
            "rulesOff": entry.rules_off, "waivers": entry.waivers.iter().map(waiver).collect::<Vec<Value>>(),
        })
    };
    let changes: Vec<Value> = entries.iter().map(change).collect();
    let whole = json!({"schemaVersion": 1, "app": app.name, "namespace": app.namespace, "changes": changes});
    terminal_safe_json(&format!("{whole:#}")) + "\n"
}

fn outcome(entry: &Entry) -> &'static str {
    match entry.change.successful {
        Some(true) => "succeeded",
        Some(false) => "failed",
        None => "unfinished",
    }
}

/// `1 create, 2 update` of kapp's `update: Op: 1 create, 0 delete, 2 update, … / Wait to: …`; of another text all.
fn operations(description: &str) -> String {
    let counts = description.split_once("Op: ").and_then(|(_, rest)| rest.split_once(" / ")).map(|(counts, _)| counts);
    let Some(counts) = counts else { return description.to_owned() };
    let done: Vec<&str> = counts.split(", ").filter(|count| !count.starts_with("0 ")).collect();
    done.join(", ")
}
