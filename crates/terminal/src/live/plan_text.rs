//! The plan as text: changes grouped by operation, field by field or as a diff, and the counts.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use console::measure_text_width;
use pushback_events::{Counts, FieldLine, Millis, PlannedLine};
use pushback_objects::Position;
use pushback_objects::text::counted;
use pushback_preflight::Operation;

use super::options::{DiffStyle, RenderOptions};
use super::plan_fields::field_lines;
use crate::escape::{terminal_safe, terminal_safe_lines};
use crate::shorten::shorten_place;
use crate::theme::{Role, Theme, operation_look};
use crate::words::{ObjectColumns, counts_to_do, hang, object_columns, took};

/// Least objects that are told together if they change in the same way, and most of them that are named.
const ALIKE: usize = 3;
const NAMED: usize = 4;
/// Columns before an object, and fewest columns of kind and name.
const MARGIN: usize = 6;
const NARROWEST_ROW: usize = 24;

/// All changes that write, grouped by operation, then the line of counts.
#[must_use]
pub fn plan_text(changes: &[PlannedLine], counts: &Counts, elapsed: Millis, options: &RenderOptions) -> String {
    let theme = options.data_theme;
    let text = changes_text(changes, options);
    let line = format!(
        "{} {}.   {}\n",
        theme.paint(Role::Strong, "Plan:"),
        counts_to_do(counts),
        theme.paint(Role::Quiet, &took(elapsed))
    );
    text + &hang(&line, options.data_width())
}

/// The same without the counts.
#[must_use]
pub fn changes_text(changes: &[PlannedLine], options: &RenderOptions) -> String {
    let theme = options.data_theme;
    let mut text = String::new();
    let (unchanged, changes): (Vec<&PlannedLine>, Vec<&PlannedLine>) =
        changes.iter().partition(|change| change.operation == Operation::Noop);
    let shared = if options.verbose { Vec::new() } else { shared_notes(&changes) };
    let rows = PlanRows::new(&changes, options);
    for operation in [Operation::Create, Operation::Update, Operation::Replace, Operation::Delete] {
        let of_operation = || changes.iter().copied().filter(|change| change.operation == operation);
        if of_operation().next().is_none() {
            continue;
        }
        let alike = alike(of_operation(), options);
        let (sign, role) = operation_look(operation, theme);
        let _ = writeln!(text, "  {}", theme.paint(role, &format!("{sign} {}", operation.as_str())));
        for change in of_operation() {
            match alike.get(change.fields.as_slice()).map(Vec::as_slice).filter(|_| change.notes.is_empty()) {
                Some([first, others @ ..]) if std::ptr::eq(*first, change) => {
                    text += &hang(&told_together(first, others, options), options.data_width());
                    text += &details(change, &shared, options);
                    continue;
                }
                Some(_) => continue,
                None => {}
            }
            text += &rows.row(change);
            text += &details(change, &shared, options);
        }
    }
    text += &unchanged_text(&unchanged, options);
    if !text.is_empty() {
        text.push('\n');
    }
    for (note, count) in &shared {
        let label = theme.paint(Role::Pointer, "note:");
        let note = format!("{label} {} ({})\n", terminal_safe(note), counted(*count, "object"));
        text += &hang(&note, options.data_width());
    }
    text
}

/// Rows of a plan: kind, name and place of each object in one line.
struct PlanRows<'o> {
    options: &'o RenderOptions,
    columns: ObjectColumns,
    /// Columns of an object that leave room for its place.
    room: usize,
}

impl<'o> PlanRows<'o> {
    fn new(changes: &[&PlannedLine], options: &'o RenderOptions) -> Self {
        let columns = ObjectColumns::new(changes.iter().map(|change| &change.object));
        let Some(width) = options.names_fit() else { return Self { options, columns, room: usize::MAX } };
        let shortest = |change: &&PlannedLine| {
            let place = terminal_safe(&file_and_line(change.position.as_ref()?)).into_owned();
            let file = place.rsplit('/').next().map_or(0, measure_text_width);
            // With the folder's ellipsis in front; what is longer is shortened in the middle.
            Some(file + 2)
        };
        let places = changes.iter().filter_map(shortest).max().unwrap_or_default().min(width / 3);
        let room = width.saturating_sub(MARGIN + 2 + places).max(NARROWEST_ROW);
        Self { options, columns: columns.within(room), room }
    }

    fn row(&self, change: &PlannedLine) -> String {
        let theme = self.options.data_theme;
        let cells = self.columns.cells(&change.object, self.room, theme.ellipsis());
        let Some(position) = &change.position else { return format!("{:MARGIN$}{}\n", "", cells.trim_end()) };
        let place = terminal_safe(&file_and_line(position)).into_owned();
        let used = MARGIN + measure_text_width(&cells) + 2;
        let left = usize::from(self.options.data_width()).saturating_sub(used);
        let place = if self.options.verbose { place } else { shorten_place(&place, left, theme.ellipsis()) };
        format!("{:MARGIN$}{cells}  {}\n", "", theme.paint(Role::Pointer, &place))
    }
}

/// Unchanged objects with something to note. Those with the same notes are one line.
fn unchanged_text(lines: &[&PlannedLine], options: &RenderOptions) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let theme = options.data_theme;
    let (sign, role) = operation_look(Operation::Noop, theme);
    let mut text = format!("  {}\n", theme.paint(role, &format!("{sign} unchanged")));
    let mut groups: Vec<Vec<&PlannedLine>> = Vec::new();
    for line in lines {
        match groups.iter_mut().find(|group| group[0].notes == line.notes && !options.verbose) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    for group in groups {
        let (first, others) = (group[0], &group[1..]);
        if others.is_empty() {
            text += &PlanRows::new(&[first], options).row(&PlannedLine { position: None, ..first.clone() });
        } else {
            text += &hang(&told_together(first, others, options), options.data_width());
        }
        text += &details(first, &[], options);
    }
    text
}

/// Updates that change the same fields in the same way, by these fields.
fn alike<'c>(
    changes: impl Iterator<Item = &'c PlannedLine>,
    options: &RenderOptions,
) -> HashMap<&'c [FieldLine], Vec<&'c PlannedLine>> {
    let mut groups: HashMap<&[FieldLine], Vec<&PlannedLine>> = HashMap::new();
    if options.verbose || options.diff != DiffStyle::Fields {
        return groups;
    }
    let is_told = |change: &&PlannedLine| change.operation == Operation::Update && change.notes.is_empty();
    let is_whole = |change: &&PlannedLine| !change.fields.is_empty() && change.fields.iter().all(is_whole);
    for change in changes.filter(is_told).filter(is_whole) {
        groups.entry(&change.fields).or_default().push(change);
    }
    groups.retain(|_, group| group.len() >= ALIKE);
    groups
}

/// Whether the texts of a field stand for its values: what is abbreviated may differ.
fn is_whole(field: &FieldLine) -> bool {
    let is_whole = |text: &String| !text.starts_with('(') && !text.contains('…');
    field.old.iter().chain(&field.new).all(is_whole)
}

/// `34 objects alike: ConfigMap a, Service b, …`.
fn told_together(first: &PlannedLine, others: &[&PlannedLine], options: &RenderOptions) -> String {
    let all = || std::iter::once(first).chain(others.iter().copied());
    let kinds: BTreeSet<&str> = all().map(|change| change.object.kind.as_str()).collect();
    let name = |change: &PlannedLine| {
        let (kind, name) = object_columns(&change.object);
        if kinds.len() == 1 { name } else { format!("{kind} {name}") }
    };
    let mut named: Vec<String> = all().take(NAMED).map(name).collect();
    if others.len() + 1 > NAMED {
        named.push(options.data_theme.ellipsis().to_owned());
    }
    let kind = if kinds.len() == 1 { object_columns(&first.object).0 + ", " } else { String::new() };
    format!("      {kind}{} alike: {}", counted(others.len() + 1, "object"), named.join(", "))
}

/// File and line of an object; the column is always the first.
fn file_and_line(position: &Position) -> String {
    Position { column: 0, ..position.clone() }.to_string()
}

/// Notes that several changes share, in order of first appearance, with their number.
fn shared_notes<'c>(changes: &[&'c PlannedLine]) -> Vec<(&'c str, usize)> {
    let mut notes: Vec<(&str, usize)> = Vec::new();
    for note in changes.iter().copied().flat_map(|change| &change.notes) {
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
        let note = format!("        {} {}\n", theme.paint(Role::Pointer, "note:"), terminal_safe(note));
        text += &hang(&note, options.data_width());
    }
    match options.diff {
        DiffStyle::None => {}
        DiffStyle::Text if !change.text.is_empty() => text += &unified(&change.text, theme),
        // A create or delete affects every field: the object's name is enough.
        DiffStyle::Fields | DiffStyle::Text => {
            if options.verbose || matches!(change.operation, Operation::Update | Operation::Replace) {
                text += &field_lines(&change.fields, options.look());
            }
        }
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
    use pushback_objects::{ObjectRef, Position};

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
    fn unchanged_objects_with_the_same_notes_are_one_line() {
        let unchanged = |name: &str, note: &str| PlannedLine {
            notes: vec![note.to_owned()],
            ..change(Operation::Noop, "ConfigMap", name, 1)
        };
        let mut changes: Vec<PlannedLine> =
            (0..9).map(|number| unchanged(&format!("c{number}"), "only field ownership changes")).collect();
        changes.push(unchanged("d", "continues the work of kapp"));
        let counts = Counts { noop: 18, ..Counts::default() };
        let options = options(DiffStyle::Fields);
        assert_snapshot!(plan_text(&changes, &counts, Millis(1_100), &options), @"
          = unchanged
              ConfigMap, 9 objects alike: shop/c0, shop/c1, shop/c2, shop/c3, …
                note: only field ownership changes
              ConfigMap  shop/d
                note: continues the work of kapp

        Plan: nothing to change, 18 unchanged.   1.1s
        ");
        let verbose = RenderOptions { verbose: true, ..options };
        assert_eq!(changes_text(&changes, &verbose).matches("only field ownership").count(), 9);
    }

    #[test]
    fn a_plan_without_changes_says_so() {
        assert_snapshot!(rendered(&[], &options(DiffStyle::Fields)), @"Plan: nothing to change, 18 unchanged.   1.1s");
    }

    #[test]
    fn objects_that_change_alike_are_told_together() {
        let update = |kind: &str, name: &str, fields: &[FieldLine]| PlannedLine {
            fields: fields.to_vec(),
            ..change(Operation::Update, kind, name, 1)
        };
        let version = [field("metadata.labels.version", Some("1"), Some("2"))];
        let text = [field("data.text", Some("(3 lines)"), Some("(4 lines, +1)"))];
        let mut changes: Vec<PlannedLine> =
            (0..300).map(|number| update("ConfigMap", &format!("c{number}"), &version)).collect();
        changes.extend(["x", "y", "z"].map(|name| update("Secret", name, &text)));
        assert_snapshot!(rendered(&changes, &options(DiffStyle::Fields)), @"
          ~ update
              ConfigMap, 300 objects alike: shop/c0, shop/c1, shop/c2, shop/c3, …
                metadata.labels.version  1 → 2
              Secret     shop/x     shop/web.yaml:1
                data.text  (3 lines) → (4 lines, +1)
              Secret     shop/y     shop/web.yaml:1
                data.text  (3 lines) → (4 lines, +1)
              Secret     shop/z     shop/web.yaml:1
                data.text  (3 lines) → (4 lines, +1)

        Plan: 303 to update, 18 unchanged.   1.1s
        ");
        changes.truncate(2);
        changes.push(update("Service", "s", &version));
        let text = rendered(&changes, &options(DiffStyle::Fields));
        assert!(
            text.contains("      3 objects alike: ConfigMap shop/c0, ConfigMap shop/c1, Service shop/s\n"),
            "{text}"
        );
        let verbose = RenderOptions { verbose: true, ..options(DiffStyle::Fields) };
        assert_eq!(rendered(&changes, &verbose).matches("metadata.labels.version").count(), 3);
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
                data.list
                    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
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
            assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_hidden(c)), "{text:?}");
        }
    }
}
