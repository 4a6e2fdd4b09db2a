//! Storage versions for people and for programs: a table of definitions, and what a migration did.

use std::fmt::Write;

use pushback_crd::definition::StoredState;
use pushback_objects::text::counted;
use pushback_storage::migrate::Migration;
use pushback_storage::outcome::MigrationReport;
use pushback_storage::pass::PassCount;
use pushback_storage::status::{DefinitionStatus, StatusReport};
use serde::Serialize;

use crate::escape::{terminal_safe, terminal_safe_json, terminal_safe_lines};
use crate::table::Table;

/// The table of a status: definitions with something to do, or `all`; then how many there are, and what to do next.
#[must_use]
pub fn status(report: &StatusReport, all: bool, columns: Option<u16>) -> String {
    let table = Table::new(&["DEFINITION", "STORAGE", "STORED", "SERVED", "OBJECTS", "STATE"]);
    let mut table = table.with_names(&[0]).with_message();
    let shown: Vec<&DefinitionStatus> =
        report.definitions.iter().filter(|definition| all || definition.has_debt()).collect();
    for definition in &shown {
        let state = &definition.state;
        table.row(&[
            &state.definition,
            state.storage.as_deref().unwrap_or_default(),
            &state.stored.join(","),
            &definition.served.join(","),
            &definition.objects.map(|count| count.to_string()).unwrap_or_default(),
            &state_of(definition),
        ]);
    }
    let mut text = if shown.is_empty() { String::new() } else { table.text_for(columns, "…") + "\n" };
    let in_debt: Vec<&DefinitionStatus> = report.in_debt().collect();
    let read = counted(report.definitions_read, "definition");
    let _ = match in_debt.as_slice() {
        [] => writeln!(text, "{read}: every object is stored in the storage version"),
        some => writeln!(text, "{read}: {} with objects that may be stored in another version", some.len()),
    };
    let movable = in_debt.iter().filter(|definition| definition.blockers.is_empty() && definition.unreadable.is_none());
    match movable.collect::<Vec<_>>().as_slice() {
        [] => {}
        [one] => text += &format!("next: pushback storage migrate {}\n", terminal_safe(&one.state.definition)),
        _ => text += "next: pushback storage migrate --all-debt\n",
    }
    text
}

fn state_of(definition: &DefinitionStatus) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !definition.undefined.is_empty() {
        parts.push(format!("stored {} is not defined", definition.undefined.join(",")));
    }
    parts.extend(definition.blockers.iter().cloned());
    parts.extend(definition.unreadable.iter().map(|error| format!("cannot be listed: {error}")));
    match (definition.has_debt(), parts.is_empty()) {
        (false, true) => "settled".to_owned(),
        (true, true) => "migrate".to_owned(),
        _ => parts.join("; "),
    }
}

/// What a migration did, definition by definition.
#[must_use]
pub fn migrated(report: &MigrationReport, dry_run: bool) -> String {
    let mut text = String::new();
    for migration in &report.migrations {
        text += &one_migration(migration, dry_run);
    }
    if report.migrations.is_empty() && report.errors.is_empty() {
        text += "Nothing to migrate: every object is stored in the storage version.\n";
    }
    text
}

fn one_migration(migration: &Migration, dry_run: bool) -> String {
    let name = terminal_safe(&migration.definition);
    let all = migration.passes.iter();
    let objects = all.clone().map(|pass| pass.objects).max().unwrap_or_default();
    let sum = |of: fn(&PassCount) -> u64| all.clone().map(of).sum::<u64>();
    let objects = counted(objects, "object");
    let mut text = format!("{name}: {objects}");
    let rewritten = sum(|pass| pass.rewritten);
    let _ = match dry_run {
        true => write!(text, " would be rewritten at {}", migration.storage),
        false => write!(text, ", {rewritten} rewritten at {}", migration.storage),
    };
    let details = [
        (sum(|pass| pass.generation_grew), "got a new generation, so that controllers reconcile"),
        (sum(|pass| pass.owners_moved), "had field owners moved to the version"),
        (sum(|pass| pass.owners_at_risk), "kept field owners at an old version: their next apply may fail"),
        (sum(|pass| pass.gone), "were deleted meanwhile"),
    ];
    text += "\n";
    for (count, what) in details.iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "  {count} {what}");
    }
    for pass in all.clone() {
        for failure in &pass.failures {
            let _ = writeln!(text, "  failed: {}: {}", terminal_safe(&failure.object), terminal_safe(&failure.message));
        }
        if pass.failed > pass.failures.len() as u64 {
            let _ = writeln!(text, "  failed: {} more", pass.failed - pass.failures.len() as u64);
        }
    }
    if !migration.shards_left.is_empty() {
        let left: Vec<String> = migration.shards_left.iter().map(|index| (index + 1).to_string()).collect();
        let _ =
            writeln!(text, "  this shard is done; shards {} are not, and the last one proves it all", left.join(", "));
    } else if migration.proved {
        let _ = writeln!(text, "  proved: another write of every object changed nothing in etcd");
    } else if !dry_run {
        let _ = writeln!(text, "  not proved: objects may still be stored in another version");
    }
    if migration.stored != migration.stored_before {
        let (before, now) = (migration.stored_before.join(", "), migration.stored.join(", "));
        let _ = writeln!(text, "  stored versions: {before} -> {now}");
    }
    text
}

/// The definition after a step.
#[must_use]
pub fn versions(state: &StoredState) -> String {
    let mut table = Table::new(&["VERSION", "SERVED", "STORAGE"]);
    for (name, served) in &state.versions {
        let yes = |is: bool| if is { "yes" } else { "no" };
        table.row(&[name, yes(*served), yes(state.storage.as_deref() == Some(name))]);
    }
    format!("{}\n{}", terminal_safe(&state.definition), table.text())
}

/// Objects as YAML documents.
#[must_use]
pub fn yaml(objects: &[serde_json::Value]) -> String {
    let documents: Vec<String> =
        objects.iter().map(|object| serde_yaml::to_string(object).unwrap_or_default()).collect();
    terminal_safe_lines(&documents.join("---\n")).into_owned()
}

/// A report as JSON.
#[must_use]
pub fn json(report: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(report).unwrap_or_default();
    terminal_safe_json(&text) + "\n"
}
