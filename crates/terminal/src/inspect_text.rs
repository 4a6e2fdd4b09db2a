//! An app's objects: a tree for people, JSON for programs.

use std::sync::Arc;

use jiff::Timestamp;
use pushback_app::record::Observed;
use pushback_deploy::apply::tree::Line;
use serde_json::{Value, json};

use crate::escape::{terminal_safe, terminal_safe_json, terminal_safe_lines};
use crate::raw_objects::{raw_objects, sorted_documents};
use crate::table::Table;
use crate::words::age;

/// Options of the table of an app's objects.
#[derive(Clone, Copy, Debug)]
pub struct InspectTable {
    /// Prints the status of each object too.
    pub with_status: bool,
    /// Set where controllers reconcile the objects.
    pub server: bool,
    /// Time that ages are counted to.
    pub now: Timestamp,
    /// Columns of the terminal.
    pub columns: Option<u16>,
}

/// A table for people.
#[must_use]
pub fn table(observed: &Observed, lines: &[Line], options: InspectTable) -> String {
    let InspectTable { with_status, server, now, columns } = options;
    let table = Table::new(&["NAMESPACE", "NAME", "KIND", "OWNER", "STATE", "AGE", "MESSAGE"]);
    let mut table = table.with_names(&[0, 1, 2]).with_message();
    for line in lines {
        let namespace = if line.object.namespace.is_empty() { "(cluster)" } else { &line.object.namespace };
        let indent = if line.depth == 0 { String::new() } else { format!("{}L ", "  ".repeat(line.depth - 1)) };
        let name = format!("{indent}{}", line.object.name);
        let state = if server { state_word(line.state) } else { "-" };
        let age = line.created.parse().map(|created| age(created, now)).unwrap_or_default();
        table.row(&[namespace, &name, &line.object.kind, line.owner, state, &age, &line.message]);
    }
    let mut text = format!("App {} in namespace {}\n", observed.app.name, observed.app.namespace);
    if let Some(lock) = observed.record.as_ref().and_then(|record| record.lock.as_ref()) {
        text.push_str(&format!("Locked by {}\n", terminal_safe(&lock.describe())));
    }
    if lines.is_empty() {
        text.push_str("no objects\n");
        return text;
    }
    text.push_str(&table.text_for(columns, "…"));
    if with_status {
        for line in lines.iter().filter(|line| !line.status.is_null()) {
            let status = serde_yaml::to_string(&line.status).unwrap_or_default();
            text.push_str(&format!("\n# {}\n{}", line.object, terminal_safe_lines(&status)));
        }
    }
    text
}

/// A state as people read it; programs read kapp's words.
fn state_word(state: &str) -> &str {
    match state {
        "ok" => "ready",
        "ongoing" => "waiting",
        other => other,
    }
}

/// The objects as YAML, or as a List in JSON; Secrets masked.
#[must_use]
pub fn raw(objects: &[Arc<Value>], with_managed_fields: bool, as_json: bool) -> String {
    if as_json {
        let items = raw_objects(objects.iter(), with_managed_fields);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        return terminal_safe_json(&format!("{list:#}")) + "\n";
    }
    terminal_safe_lines(&sorted_documents(objects.iter(), with_managed_fields).concat()).into_owned()
}

/// JSON for programs.
#[must_use]
pub fn json(observed: &Observed, lines: &[Line]) -> String {
    let object = |line: &Line| {
        let mut entry = json!({
            "object": line.object, "depth": line.depth, "owner": line.owner, "state": line.state,
            "message": line.message,
        });
        if !line.created.is_empty() {
            entry["creationTimestamp"] = line.created.as_str().into();
        }
        entry
    };
    let objects: Vec<Value> = lines.iter().map(object).collect();
    let report = json!({
        "schemaVersion": 1, "app": observed.app.name, "namespace": observed.app.namespace, "objects": objects,
    });
    terminal_safe_json(&format!("{report:#}")) + "\n"
}
