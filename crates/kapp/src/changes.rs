//! kapp's table of changes, and the line diffs before it.

use jiff::Timestamp;
use pushback_deploy::plan::sides;
use pushback_events::{Awaited, PlannedLine, Whole};
use pushback_preflight::Operation;

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
pub fn show(ui: &mut Ui, changes: &[PlannedLine], others: &[PlannedLine], now: Timestamp) {
    let (look, waits) = (ui.style().diff, !ui.style().no_wait);
    if look.changes || look.yaml {
        let (skipped, others): (Vec<&PlannedLine>, Vec<&PlannedLine>) =
            others.iter().partition(|line| line.operation != Operation::Noop);
        let mut ordered: Vec<&PlannedLine> =
            changes.iter().chain(skipped).filter(|line| line.whole.is_some()).collect();
        // Versioned objects come first.
        let is_versioned = |whole: &Whole| whole.new.as_ref().or(whole.old.as_ref()).is_some_and(sides::is_version);
        ordered.sort_by_key(|line| line.whole.as_ref().map(|whole| (whole.wave, !is_versioned(whole))));
        for line in ordered {
            let Some(whole) = &line.whole else { continue };
            if line.operation == Operation::Exists {
                continue;
            }
            let what = (words::operation(line.operation), words::described(&line.object));
            let is_unchanged = line.operation == Operation::Noop;
            if look.yaml && !is_unchanged {
                let applied = whole.new.as_ref().map(|new| match line.operation {
                    Operation::Create => sides::as_created(new, &line.object.name),
                    _ => sides::raw(new, false),
                });
                // Files have no strategy.
                let strategy = if whole.strategy == NO_STRATEGY { " (strategy: unknown)" } else { "" };
                ui.block(&format!("---\n# {}: {}{strategy}\n{}\n", what.0, what.1, words::yaml(applied.as_ref())));
            }
            if look.changes {
                ui.progress(&format!("@@ {} {} @@", what.0, what.1));
                let text = match is_unchanged {
                    true => "\n".to_owned(),
                    false => diff::text(whole.old.as_ref(), whole.new.as_ref(), &look),
                };
                ui.block(&text);
            }
        }
        for line in others.into_iter().filter(|_| look.changes) {
            ui.progress(&format!("@@ noop {} @@", words::described(&line.object)));
            ui.block("\n");
        }
    }
    if look.summary {
        let table = table(changes.iter().chain(others), waits, now);
        // The command has refused other columns before it began.
        let _ = ui.table(&table);
    }
}

fn table<'l>(lines: impl Iterator<Item = &'l PlannedLine>, waits: bool, now: Timestamp) -> Table {
    let mut rows: Vec<(&PlannedLine, Vec<String>)> = lines.map(|line| (line, row(line, waits, now))).collect();
    let place = |line: &PlannedLine| {
        let object = &line.object;
        (object.namespace.clone(), object.name.clone(), object.kind.clone())
    };
    rows.sort_by_cached_key(|(line, _)| place(line));
    let count = |column: usize, word: &str| rows.iter().filter(|(_, row)| row[column] == word).count();
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
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    }
}

fn row(line: &PlannedLine, waits: bool, now: Timestamp) -> Vec<String> {
    let nothing = Whole::default();
    let whole = line.whole.as_deref().unwrap_or(&nothing);
    let namespace = if line.object.namespace.is_empty() { "(cluster)" } else { &line.object.namespace };
    let operation = match line.operation {
        Operation::Noop => "",
        other => words::operation(other),
    };
    let awaited = match whole.awaited.filter(|_| waits) {
        Some(Awaited::Ready) => "reconcile",
        Some(Awaited::Deleted) => "delete",
        None => "",
    };
    // What is masked has nothing to wait for.
    let (state, message) = match &whole.live {
        Some(live) => state::of(live),
        None if whole.created.is_empty() => ("", String::new()),
        None => ("ok", String::new()),
    };
    [
        namespace,
        &line.object.name,
        &line.object.kind,
        &line.object.api_version(),
        &words::age(&whole.created, now),
        operation,
        &whole.strategy,
        awaited,
        state,
        &words::information(&message),
    ]
    .map(str::to_owned)
    .to_vec()
}
