//! What becomes of stored objects, for people: the steps, and a table of the fields that matter.

use std::fmt::Write;

use pushback_objects::text::counted;
use pushback_storage::preview::{FieldChange, FieldFate, Preview, PreviewReport, StepKind};

use crate::escape::terminal_safe;
use crate::table::Table;

/// The steps of each definition with objects, and the fields in which they lose something or are converted; or `all`.
#[must_use]
pub fn text(report: &PreviewReport, all: bool) -> String {
    let is_idle = |it: &Preview| it.steps.is_empty() && it.refused.is_none();
    let is_shown = |it: &Preview| all || it.objects > 0 || it.refused.is_some();
    let mut text = String::new();
    for preview in report.definitions.iter().filter(|it| !is_idle(it) && is_shown(it)) {
        text += &definition(preview, all);
        text.push('\n');
    }
    for preview in report.definitions.iter().filter(|it| !is_idle(it) && !is_shown(it)) {
        text += &format!("{}: no objects; {}\n", terminal_safe(&preview.definition), versions(preview));
    }
    let idle: Vec<&Preview> = report.definitions.iter().filter(|it| is_idle(it)).collect();
    match idle.as_slice() {
        [] => {}
        [one] => text += &format!("{}: nothing is to be done\n", terminal_safe(&one.definition)),
        many => text += &format!("{}: nothing is to be done\n", counted(many.len(), "definition")),
    }
    text
}

/// The command that does it.
#[must_use]
pub fn next(report: &PreviewReport) -> String {
    let pending: Vec<&Preview> = report.definitions.iter().filter(|it| !it.steps.is_empty()).collect();
    if pending.is_empty() || report.refused().is_some() {
        return String::new();
    }
    let writes = |it: &&&Preview| it.steps.iter().any(|step| step.step == StepKind::Write);
    match pending.iter().filter(writes).map(|it| it.policy.unwrap_or("refuse")).max_by_key(|name| *name == "bridge") {
        Some(policy) => format!("next: pushback apply --storage={policy} with these definitions\n"),
        None => {
            let names: Vec<&str> = pending.iter().map(|it| it.definition.as_str()).collect();
            format!("next: pushback storage migrate {}\n", terminal_safe(&names.join(" ")))
        }
    }
}

fn versions(preview: &Preview) -> String {
    format!("stored in {}, afterwards in {}", preview.stored.join(", "), preview.target)
}

fn definition(preview: &Preview, all: bool) -> String {
    let (name, objects) = (terminal_safe(&preview.definition), counted(preview.objects, "object"));
    let mut text = format!("{name}: {objects}; {}\n", versions(preview));
    for (number, step) in preview.steps.iter().enumerate() {
        let _ = writeln!(text, "  {}. {}", number + 1, terminal_safe(&step.says));
    }
    if preview.new_generation > 0 {
        let count = counted(preview.new_generation, "object");
        let _ = writeln!(text, "  {count} with a new generation: controllers reconcile");
    }
    text += &fields(preview, all);
    if let Some(refused) = &preview.refused {
        let _ = writeln!(text, "  refused: {}", terminal_safe(refused));
    }
    text
}

fn fields(preview: &Preview, all: bool) -> String {
    let matters =
        |field: &&FieldChange| all || field.objects.unwrap_or_default() > 0 || field.fate == FieldFate::Planned;
    let (shown, rest): (Vec<&FieldChange>, Vec<&FieldChange>) = preview.fields.iter().partition(matters);
    let mut text = String::new();
    if !shown.is_empty() {
        text += &table(&shown);
    }
    let new = rest.iter().filter(|field| field.fate == FieldFate::New).count();
    for (count, what) in [(rest.len() - new, "lacks, used by no object"), (new, "has in addition")] {
        if count > 0 {
            let _ = writeln!(text, "  {} that {} {what} (--all)", counted(count, "field"), preview.target);
        }
    }
    text
}

fn table(fields: &[&FieldChange]) -> String {
    let mut table = Table::new(&["  VERSIONS", "FIELD", "BECOMES", "OBJECTS", "WHAT"]);
    for field in fields {
        let example = field.example.as_ref().map(|name| format!(", such as {name}")).unwrap_or_default();
        let what = match field.fate {
            FieldFate::Lost => format!("lost: {}{example}", field.how),
            FieldFate::New => "new".to_owned(),
            FieldFate::Planned => field.how.clone(),
        };
        table.row(&[
            &format!("  {} -> {}", field.from, field.to),
            field.old.as_deref().unwrap_or_default(),
            field.new.as_deref().unwrap_or_default(),
            &field.objects.map(|count| count.to_string()).unwrap_or_default(),
            &what,
        ]);
    }
    table.text()
}

/// What has been done.
#[must_use]
pub fn done(report: &PreviewReport) -> String {
    if !report.carried_out {
        return "Nothing was written.\n".to_owned();
    }
    let mut text = String::new();
    for preview in report.definitions.iter().filter(|it| !it.steps.is_empty()) {
        let name = terminal_safe(&preview.definition);
        let _ = writeln!(text, "{name}: written; {} stored in {}", counted(preview.objects, "object"), preview.target);
    }
    text
}
