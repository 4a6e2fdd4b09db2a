//! kapp's table of changes, and the line diffs before it.

use jiff::Timestamp;
use pushback_deploy::plan::sides;
use pushback_preflight::Operation;

use super::shown_plan::ShownChange;
use super::style::Style;
use super::table::{Column, Table, UnknownColumn, check};
use super::ui::Ui;
use super::{diff, state, words};

/// Strategy of what is compared and not written.
pub const NO_STRATEGY: &str = "???";

const COLUMNS: [Column; 10] = [
    Column::new("Namespace", "namespace"),
    Column::new("Name", "name"),
    Column::new("Kind", "kind"),
    Column::hidden("Version", "version"),
    Column::new("Age", "age"),
    Column::new("Op", "op"),
    Column::new("Op st.", "op_strategy"),
    Column::new("Wait to", "wait_to"),
    Column::new("Rs", "reconcile_state"),
    Column::new("Ri", "reconcile_info"),
];

/// Whether a plan can be shown so, before there is one.
///
/// # Errors
/// A column that the table of a plan does not have.
pub fn check_columns(style: &Style) -> Result<(), UnknownColumn> {
    if style.diff.summary { check(&COLUMNS, &style.columns) } else { Ok(()) }
}

/// Shows a plan as the flags want it.
pub fn show(ui: &mut Ui, changes: &[ShownChange], others: &[ShownChange], now: Timestamp) {
    let (look, waits) = (ui.style().diff, !ui.style().no_wait);
    if look.changes || look.yaml {
        let (skipped, others): (Vec<&ShownChange>, Vec<&ShownChange>) =
            others.iter().partition(|change| change.operation != Operation::Noop);
        let mut ordered: Vec<&ShownChange> =
            changes.iter().chain(skipped).filter(|change| change.operation != Operation::Exists).collect();
        ordered.sort_by_cached_key(|change| change.order());
        for ShownChange { object, operation, sides, .. } in ordered {
            let what = (words::operation(*operation), words::described(object));
            let is_unchanged = *operation == Operation::Noop;
            if look.yaml && !is_unchanged {
                let applied = sides.new.as_ref().map(|new| match operation {
                    Operation::Create => sides::as_created(new, &object.name),
                    _ => sides::raw(new, false),
                });
                // Files have no strategy.
                let strategy = if sides.strategy == NO_STRATEGY { " (strategy: unknown)" } else { "" };
                ui.block(&format!("---\n# {}: {}{strategy}\n{}\n", what.0, what.1, words::yaml(applied.as_ref())));
            }
            if look.changes {
                ui.progress(&format!("@@ {} {} @@", what.0, what.1));
                let text = match is_unchanged {
                    true => "\n".to_owned(),
                    false => diff::text(sides.old.as_ref(), sides.new.as_ref(), &look),
                };
                ui.block(&text);
            }
        }
        for change in others.into_iter().filter(|_| look.changes) {
            ui.progress(&format!("@@ noop {} @@", words::described(&change.object)));
            ui.block("\n");
        }
    }
    if look.summary {
        let table = table(changes.iter().chain(others), waits, now);
        // The command has refused other columns before it began.
        let _ = ui.table(&table);
    }
}

fn table<'l>(changes: impl Iterator<Item = &'l ShownChange>, waits: bool, now: Timestamp) -> Table {
    let mut changes: Vec<&ShownChange> = changes.collect();
    changes.sort_by_cached_key(|ShownChange { object, .. }| {
        (object.namespace.clone(), object.name.clone(), object.kind.clone())
    });
    let rows: Vec<Vec<String>> = changes.into_iter().map(|change| row(change, waits, now)).collect();
    let count = |column: usize, word: &str| rows.iter().filter(|row| row[column] == word).count();
    let (op, wait) = (5, 7);
    let notes = vec![
        format!(
            "Op:      {} create, {} delete, {} update, {} noop, {} exists",
            count(op, "create"),
            count(op, "delete"),
            count(op, "update"),
            count(op, ""),
            count(op, "exists")
        ),
        format!(
            "Wait to: {} reconcile, {} delete, {} noop",
            count(wait, "reconcile"),
            count(wait, "delete"),
            count(wait, "")
        ),
    ];
    Table {
        title: "Changes".to_owned(),
        content: String::new(),
        columns: COLUMNS.to_vec(),
        notes,
        fills_first: true,
        is_transposed: false,
        rows,
    }
}

fn row(change: &ShownChange, waits: bool, now: Timestamp) -> Vec<String> {
    let ShownChange { object, operation, sides, .. } = change;
    let namespace = if object.namespace.is_empty() { "(cluster)" } else { &object.namespace };
    let operation = match *operation {
        Operation::Noop => "",
        other => words::operation(other),
    };
    let awaited = sides.awaited.filter(|_| waits).map(words::awaited).unwrap_or_default();
    // What is masked has nothing to wait for.
    let (state, message) = match &sides.live {
        Some(live) => state::of(live),
        None if sides.created.is_empty() => ("", String::new()),
        None => ("ok", String::new()),
    };
    [
        namespace,
        &object.name,
        &object.kind,
        &object.api_version(),
        &words::age(&sides.created, now),
        operation,
        &sides.strategy,
        awaited,
        state,
        &words::information(&message),
    ]
    .map(str::to_owned)
    .to_vec()
}
