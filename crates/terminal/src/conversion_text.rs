//! Conversions for people: manifests, schemas, drafts of plans, and what is not in a converted object.

use std::fmt::Write;

use pushback_conversion::Suggestion;
use pushback_objects::text::counted;
use pushback_storage::conversion::{ConvertReport, GoldenReport, TestReport, TestedDefect};
use serde_json::Value;

use crate::escape::terminal_safe;

/// Values as YAML documents.
#[must_use]
pub fn documents(values: &[&Value]) -> String {
    let texts: Vec<String> = values.iter().map(|value| yaml(value)).collect();
    texts.join("---\n")
}

/// A value as YAML.
#[must_use]
pub fn yaml(value: &Value) -> String {
    serde_yaml::to_string(value).unwrap_or_else(|_| format!("{value:#}\n"))
}

/// How many objects were converted, and what is not in them.
#[must_use]
pub fn converted(report: &ConvertReport, to: &str) -> String {
    let mut text = String::new();
    for field in &report.lost {
        let (place, object, path) = (&field.position, &field.object, &field.lost.path);
        let line = format!("{place}: {object}: {path}: {}", field.lost.why.as_str());
        let _ = writeln!(text, "{}", terminal_safe(&line));
    }
    let _ = write!(text, "{} converted to {}", counted(report.objects, "object"), terminal_safe(to));
    if !report.written.is_empty() {
        let _ = write!(text, " in {}", counted(report.written.len(), "file"));
    }
    text.push('\n');
    text
}

/// Draft of a conversion plan, with what fields may have become. It decides nothing: a field without a counterpart needs a
/// reason before the plan is accepted. `name` is that of the CRD, `None` for the steps of a plan that exists.
#[must_use]
pub fn draft(name: Option<&str>, suggestions: &[Suggestion]) -> String {
    let mut text = match name {
        None => String::new(),
        Some(name) => format!(
            "# A draft: check each line, and give a reason for each field that is removed.\napiVersion: \
             pushback.dev/v1alpha1\nkind: ConversionPlan\nmetadata: {{name: {name}}}\npolicy: {{unassessed: error, bag: \
             annotation}}\n"
        ),
    };
    if suggestions.is_empty() {
        text += "# Nothing to suggest: every field of a version has a counterpart in the next one.\n";
        return text;
    }
    text += "steps:\n";
    let mut rest = suggestions;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|one| (&one.from, &one.to) == (&first.from, &first.to)).count();
        let (step, after) = rest.split_at(count);
        rest = after;
        let _ = writeln!(text, "- from: {}\n  to: {}", first.from, first.to);
        for (key, is_move) in [("renames", false), ("moves", true)] {
            let found: Vec<&Suggestion> =
                step.iter().filter(|one| one.newer.is_some() && one.is_move == is_move).collect();
            if !found.is_empty() {
                let _ = writeln!(text, "  {key}:");
            }
            for one in found {
                let newer = one.newer.as_ref().map(ToString::to_string).unwrap_or_default();
                let likeness =
                    if is_move { "the same name".to_owned() } else { format!("{:.0} % alike", one.similarity * 100.0) };
                let _ = writeln!(text, "    {}: {} # {likeness}", scalar(&one.older.to_string()), scalar(&newer));
            }
        }
        let gone: Vec<&Suggestion> = step.iter().filter(|one| one.newer.is_none()).collect();
        if !gone.is_empty() {
            text.push_str("  removed:\n");
        }
        for one in gone {
            let _ =
                writeln!(text, "    {}: {{assessed: false}} # give a reason instead", scalar(&one.older.to_string()));
        }
    }
    text
}

/// A path as a YAML scalar.
fn scalar(path: &str) -> String {
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if is_plain { path.to_owned() } else { Value::from(path).to_string() }
}

/// Files with conversions of fixed objects.
#[must_use]
pub fn goldens(report: &GoldenReport) -> String {
    let mut text = String::new();
    for line in &report.different {
        let _ = writeln!(text, "{}", terminal_safe(line));
    }
    for file in &report.written {
        let _ = writeln!(text, "{} written", terminal_safe(file));
    }
    if report.different.is_empty() && report.written.is_empty() && report.equal.is_empty() {
        text += "The plan has no hooks, so there is nothing to record or to compare.\n";
    }
    if !report.equal.is_empty() {
        let _ = writeln!(text, "{} as recorded", counted(report.equal.len(), "conversion"));
    }
    text
}

/// What the test of a plan found.
#[must_use]
pub fn tested(report: &TestReport) -> String {
    let mut text = String::new();
    for defect in &report.defects {
        let _ = writeln!(text, "{}", terminal_safe(&defect_line(defect)));
        let _ = writeln!(text, "  {}", terminal_safe(&content(&defect.witness)));
    }
    for version in &report.untried {
        let _ = writeln!(text, "{}: no valid object could be made", terminal_safe(version));
    }
    if let Some(golden) = &report.golden {
        for line in &golden.different {
            let _ = writeln!(text, "{}", terminal_safe(line));
        }
        for file in &golden.written {
            let _ = writeln!(text, "{} written", terminal_safe(file));
        }
    }
    for found in report.live.iter().flat_map(|live| &live.affected) {
        let line = format!("{} through {}: {}", found.object, found.through, found.paths.join(", "));
        let _ = writeln!(text, "{}", terminal_safe(&line));
    }
    let _ = writeln!(
        text,
        "{}: {} of {} made {}",
        terminal_safe(&report.crd),
        counted(report.objects, "object"),
        counted(report.versions.len(), "version"),
        counted(report.trips, "round trip")
    );
    if report.refused > 0 {
        let refused = counted(report.refused, "object");
        let _ = writeln!(text, "{refused} refused by another version when written back, with an error");
    }
    if let Some(golden) = &report.golden {
        let differing = golden.different.len();
        let _ = writeln!(text, "{} as recorded, {differing} not", counted(golden.equal, "conversion"));
    }
    if let Some(live) = &report.live {
        let affected = live.affected.iter().map(|found| &found.object).collect::<std::collections::BTreeSet<_>>().len();
        let examined = counted(live.examined, "live object");
        let _ = writeln!(text, "{affected} of {examined} would not come back as before");
    }
    let (known, new): (Vec<_>, Vec<_>) = report.defects.iter().partition(|defect| defect.acknowledged);
    let acknowledged = if known.is_empty() { String::new() } else { format!(", {} acknowledged", known.len()) };
    let _ = match new.len() {
        0 => writeln!(text, "no defect found{acknowledged}; samples are not a proof"),
        count => writeln!(text, "{} found{acknowledged}", counted(count, "defect")),
    };
    text
}

fn defect_line(defect: &TestedDefect) -> String {
    let TestedDefect { from, through, kind, path, before, after, reason, acknowledged, .. } = defect;
    let path = if path.is_empty() { "the object" } else { path };
    let shown = |value: &Option<Value>| value.as_ref().map(ToString::to_string).unwrap_or_default();
    let what = match *kind {
        "changed" => format!("{path} changes from {} to {}", shown(before), shown(after)),
        "invented" => format!("{path} is absent, and becomes {}", shown(after)),
        "failed" => format!("{path}: {reason}"),
        _ => format!("{path} is lost"),
    };
    let acknowledged = if *acknowledged { " (acknowledged)" } else { "" };
    format!("{from} through {through}: {what}{acknowledged}")
}

/// An object without its type and name.
fn content(object: &Value) -> String {
    let mut content = object.clone();
    if let Value::Object(fields) = &mut content {
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
    content.to_string()
}
