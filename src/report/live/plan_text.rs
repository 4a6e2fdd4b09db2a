//! The plan as text: changes grouped by operation, field by field or as a diff, and the counts.

use std::fmt::Write as _;

use console::measure_text_width;
use pushback_preflight::{Operation, Position};

use super::options::{DiffStyle, RenderOptions};
use crate::event::{Counts, FieldLine, Millis, PlannedLine};
use crate::report::escape::{terminal_safe, terminal_safe_lines};
use crate::report::theme::{Role, Theme, operation_look};
use crate::report::words::{column_width, counts_to_do, object_columns, pad, shorten, took};
use crate::text::counted;

/// Most field lines per object; the rest is counted.
const FIELD_LINES: usize = 20;
/// Most characters of a value.
const VALUE_LIMIT: usize = 120;
/// Widest path, kind or name that others are aligned to.
const PATH_WIDTH: usize = 64;
const KIND_WIDTH: usize = 32;
const NAME_WIDTH: usize = 48;

/// All changes that write, grouped by operation, then the line of counts.
#[must_use]
pub fn plan_text(changes: &[PlannedLine], counts: &Counts, elapsed: Millis, options: &RenderOptions) -> String {
    let theme = options.data_theme;
    let mut text = String::new();
    let shared = if options.verbose { Vec::new() } else { shared_notes(changes) };
    let columns: Vec<(String, String)> = changes.iter().map(|change| object_columns(&change.object)).collect();
    let kind_width = column_width(columns.iter().map(|(kind, _)| kind.as_str()), KIND_WIDTH);
    let name_width = column_width(columns.iter().map(|(_, name)| name.as_str()), NAME_WIDTH);
    for operation in [Operation::Create, Operation::Update, Operation::Replace, Operation::Delete] {
        let mut group = changes.iter().zip(&columns).filter(|(change, _)| change.operation == operation).peekable();
        if group.peek().is_none() {
            continue;
        }
        let (sign, role) = operation_look(operation, theme);
        let _ = writeln!(text, "  {}", theme.paint(role, &format!("{sign} {}", operation.as_str())));
        for (change, (kind, name)) in group {
            let line = match &change.position {
                Some(position) => format!(
                    "      {}  {}  {}",
                    pad(kind, kind_width),
                    pad(name, name_width),
                    theme.paint(Role::Pointer, &terminal_safe(&file_and_line(position)))
                ),
                None => format!("      {}  {name}", pad(kind, kind_width)),
            };
            let _ = writeln!(text, "{line}");
            text += &details(change, &shared, options);
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    for (note, count) in &shared {
        let label = theme.paint(Role::Pointer, "note:");
        let _ = writeln!(text, "{label} {} ({})", terminal_safe(note), counted(*count, "object"));
    }
    let _ = writeln!(
        text,
        "{} {}.   {}",
        theme.paint(Role::Strong, "Plan:"),
        counts_to_do(counts),
        theme.paint(Role::Quiet, &took(elapsed))
    );
    text
}

/// File and line of an object; the column is always the first.
fn file_and_line(position: &Position) -> String {
    Position { column: 0, ..position.clone() }.to_string()
}

/// Notes that several changes share, in order of first appearance, with their number.
fn shared_notes(changes: &[PlannedLine]) -> Vec<(&str, usize)> {
    let mut notes: Vec<(&str, usize)> = Vec::new();
    for note in changes.iter().flat_map(|change| &change.notes) {
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, count)) => *count += 1,
            None => notes.push((note, 1)),
        }
    }
    notes.retain(|(_, count)| *count > 1);
    notes
}

fn details(change: &PlannedLine, said_once: &[(&str, usize)], options: &RenderOptions) -> String {
    let theme = options.data_theme;
    let mut text = String::new();
    for note in change.notes.iter().filter(|note| said_once.iter().all(|(said, _)| said != note)) {
        let _ = writeln!(text, "        {} {}", theme.paint(Role::Pointer, "note:"), terminal_safe(note));
    }
    match options.diff {
        DiffStyle::None => {}
        DiffStyle::Text if !change.text.is_empty() => text += &unified(&change.text, theme),
        // A create or delete affects every field: the object's name is enough.
        DiffStyle::Fields | DiffStyle::Text => {
            if options.verbose || matches!(change.operation, Operation::Update | Operation::Replace) {
                let limit = if options.verbose { usize::MAX } else { FIELD_LINES };
                text += &field_lines(&change.fields, limit, theme);
            }
        }
    }
    text
}

fn field_lines(fields: &[FieldLine], limit: usize, theme: Theme) -> String {
    // Show one line more than the limit rather than "and 1 more field", which takes a line too.
    let shown = if fields.len() <= limit.saturating_add(1) { fields.len() } else { limit };
    let paths: Vec<String> = fields[..shown].iter().map(|field| terminal_safe(&field.path).into_owned()).collect();
    let width = column_width(paths.iter().map(String::as_str), PATH_WIDTH);
    let value = |text: &str| terminal_safe(&shorten(text, VALUE_LIMIT, theme.ellipsis())).into_owned();
    let mut text = String::new();
    for (field, path) in fields.iter().zip(&paths) {
        let change = match (&field.old, &field.new) {
            (Some(old), Some(new)) => {
                let old = value(old);
                // Long values are easier to compare one above the other.
                if measure_text_width(&old) + new.len().min(VALUE_LIMIT) > VALUE_LIMIT {
                    let indent = " ".repeat(width.max(measure_text_width(path)) + 10);
                    format!("{old}\n{indent}{} {}", theme.arrow(), value(new))
                } else {
                    format!("{old} {} {}", theme.arrow(), value(new))
                }
            }
            (None, Some(new)) => theme.paint(Role::Good, &format!("+ {}", value(new))),
            (Some(old), None) => theme.paint(Role::Bad, &format!("- {}", value(old))),
            (None, None) => theme.paint(Role::Quiet, "(changed)"),
        };
        let _ = writeln!(text, "        {}  {change}", theme.paint(Role::Pointer, &pad(path, width)));
    }
    if shown < fields.len() {
        let more = format!("{} and {}", theme.ellipsis(), counted(fields.len() - shown, "more field"));
        let _ = writeln!(text, "        {}", theme.paint(Role::Quiet, &more));
    }
    text
}

fn unified(diff: &str, theme: Theme) -> String {
    let mut text = String::new();
    for line in terminal_safe_lines(diff.trim_end_matches('\n')).lines() {
        let role = match line.as_bytes().first() {
            Some(b'+') => Some(Role::Good),
            Some(b'-') => Some(Role::Bad),
            Some(b'@') => Some(Role::Pointer),
            _ => None,
        };
        let line = role.map_or_else(|| line.to_owned(), |role| theme.paint(role, line));
        let _ = writeln!(text, "{}", format!("        {line}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_preflight::{ObjectRef, Position};

    use super::*;

    fn change(operation: Operation, kind: &str, name: &str, line: u32) -> PlannedLine {
        PlannedLine {
            object: ObjectRef {
                group: String::new(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: "shop".to_owned(),
                name: name.to_owned(),
            },
            operation,
            position: (line > 0).then(|| Position { file: "shop/web.yaml".to_owned(), line, column: 1 }),
            fields: Vec::new(),
            text: String::new(),
            notes: Vec::new(),
        }
    }

    fn field(path: &str, old: Option<&str>, new: Option<&str>) -> FieldLine {
        FieldLine { path: path.to_owned(), old: old.map(str::to_owned), new: new.map(str::to_owned) }
    }

    fn options(diff: DiffStyle) -> RenderOptions {
        RenderOptions { data_theme: Theme { color: false, unicode: true }, diff, ..RenderOptions::default() }
    }

    fn rendered(changes: &[PlannedLine], options: &RenderOptions) -> String {
        let mut counts = Counts { noop: 18, ..Counts::default() };
        changes.iter().for_each(|change| counts.add(change.operation));
        plan_text(changes, &counts, Millis(1_100), options)
    }

    #[test]
    fn changes_are_grouped_aligned_and_placed() {
        let mut deployment = change(Operation::Update, "Deployment", "web", 12);
        deployment.fields = vec![
            field("spec.replicas", Some("3"), Some("4")),
            field("spec.template.spec.containers[web].image", Some("registry/web:1.8.2"), Some("registry/web:1.9.0")),
            field("spec.template.spec.containers[web].env[MODE]", None, Some("\"fast\"")),
            field("spec.paused", Some("true"), None),
        ];
        deployment.notes = vec!["takes over spec.replicas from kubectl-scale".to_owned()];
        let mut secret = change(Operation::Update, "Secret", "web-tls", 1);
        secret.fields =
            vec![field("data[\"tls.key\"]", Some("(secret, 1704 bytes)"), Some("(secret, changed, 1708 bytes)"))];
        let changes = [
            change(Operation::Delete, "Service", "web-old", 0),
            deployment,
            change(Operation::Create, "ConfigMap", "web-settings-v4", 3),
            secret,
            change(Operation::Replace, "Job", "migrate", 4),
        ];
        assert_snapshot!(rendered(&changes, &options(DiffStyle::Fields)), @r#"
          + create
              ConfigMap   shop/web-settings-v4  shop/web.yaml:3
          ~ update
              Deployment  shop/web              shop/web.yaml:12
                note: takes over spec.replicas from kubectl-scale
                spec.replicas                                 3 → 4
                spec.template.spec.containers[web].image      registry/web:1.8.2 → registry/web:1.9.0
                spec.template.spec.containers[web].env[MODE]  + "fast"
                spec.paused                                   - true
              Secret      shop/web-tls          shop/web.yaml:1
                data["tls.key"]  (secret, 1704 bytes) → (secret, changed, 1708 bytes)
          ± replace
              Job         shop/migrate          shop/web.yaml:4
          - delete
              Service     shop/web-old

        Plan: 1 to create, 2 to update, 1 to replace, 1 to delete, 18 unchanged.   1.1s
        "#);
    }

    #[test]
    fn a_note_that_several_objects_share_is_said_once_unless_verbose() {
        let mut first = change(Operation::Create, "ConfigMap", "a", 1);
        first.notes = vec!["not verified by the server: Namespace shop is created by this run".to_owned()];
        let second = PlannedLine { object: change(Operation::Create, "Secret", "b", 5).object, ..first.clone() };
        let mut third = change(Operation::Update, "Service", "c", 9);
        third.notes = vec!["takes over spec.ports from kubectl-edit".to_owned()];
        let changes = [first, second, third];
        assert_snapshot!(rendered(&changes, &options(DiffStyle::Fields)), @"
          + create
              ConfigMap  shop/a  shop/web.yaml:1
              Secret     shop/b  shop/web.yaml:1
          ~ update
              Service    shop/c  shop/web.yaml:9
                note: takes over spec.ports from kubectl-edit

        note: not verified by the server: Namespace shop is created by this run (2 objects)
        Plan: 2 to create, 1 to update, 18 unchanged.   1.1s
        ");
        let verbose = RenderOptions { verbose: true, ..options(DiffStyle::Fields) };
        assert_eq!(rendered(&changes, &verbose).matches("is created by this run").count(), 2);
    }

    #[test]
    fn a_plan_without_changes_says_so() {
        assert_snapshot!(rendered(&[], &options(DiffStyle::Fields)), @"Plan: nothing to change, 18 unchanged.   1.1s");
    }

    #[test]
    fn many_fields_are_capped_and_counted_unless_verbose() {
        let mut object = change(Operation::Update, "ConfigMap", "a", 1);
        object.fields = (0..30).map(|index| field(&format!("data.key{index}"), None, Some("1"))).collect();
        let text = rendered(&[object.clone()], &options(DiffStyle::Fields));
        assert!(text.contains("data.key19") && !text.contains("data.key20"), "{text}");
        assert!(text.contains("… and 10 more fields\n"), "{text}");
        let verbose = RenderOptions { verbose: true, ..options(DiffStyle::Fields) };
        assert!(rendered(&[object.clone()], &verbose).contains("data.key29"));
        object.fields.truncate(21);
        assert!(rendered(&[object], &options(DiffStyle::Fields)).contains("data.key20"));
    }

    #[test]
    fn long_values_stand_one_above_the_other() {
        let mut object = change(Operation::Update, "ConfigMap", "a", 1);
        object.fields = vec![field("data.list", Some(&"a".repeat(130)), Some(&"b".repeat(80)))];
        assert_snapshot!(rendered(&[object], &options(DiffStyle::Fields)), @"
          ~ update
              ConfigMap  shop/a  shop/web.yaml:1
                data.list  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… (130 characters)
                           → bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb

        Plan: 1 to update, 18 unchanged.   1.1s
        ");
    }

    #[test]
    fn text_diffs_replace_the_field_lines() {
        let mut object = change(Operation::Update, "ConfigMap", "a", 1);
        object.fields = vec![field("data.key", Some("1"), Some("2"))];
        object.text = "@@ -1,3 +1,3 @@\n data:\n-  key: 1\n+  key: 2\n".to_owned();
        assert_snapshot!(rendered(&[object], &options(DiffStyle::Text)), @"
          ~ update
              ConfigMap  shop/a  shop/web.yaml:1
                @@ -1,3 +1,3 @@
                 data:
                -  key: 1
                +  key: 2

        Plan: 1 to update, 18 unchanged.   1.1s
        ");
    }

    #[test]
    fn hostile_names_paths_values_and_texts_are_shown_not_obeyed() {
        let evil = "a\u{1b}[2J\u{202e}\nb";
        let mut object = change(Operation::Update, evil, evil, 1);
        object.fields = vec![field(evil, Some(evil), Some(evil)), field(evil, None, Some(evil))];
        object.notes = vec![evil.to_owned()];
        object.text = evil.to_owned();
        for diff in [DiffStyle::Fields, DiffStyle::Text] {
            let text = rendered(&[object.clone()], &options(diff));
            assert!(!text.chars().any(|c| c != '\n' && crate::report::escape::is_hidden(c)), "{text:?}");
        }
    }
}
