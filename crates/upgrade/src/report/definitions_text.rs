//! Changes between the definitions of two releases, as text for people and as Markdown for a pull request comment.

use pushback_releases::Severity;
use pushback_releases::definitions::{DefinitionsDiff, Presence};
use pushback_terminal::escape::terminal_safe;
use pushback_terminal::markdown::{self, LIMIT, code, prose};
use pushback_terminal::table::Table;
use serde_json::Value;

use super::difference_html;
use super::formats::ReleaseReport;

/// Bytes reserved for the note about omitted changes.
const NOTICE: usize = 400;
/// Most characters of a sentence or path.
const SENTENCE: usize = 500;
const PATH: usize = 200;

/// A block per definition, and the counts.
fn table(diff: &DefinitionsDiff, columns: Option<usize>) -> String {
    let mut text = String::new();
    for crd in &diff.crds {
        let how = match crd.change_type {
            Presence::Added => ", added",
            Presence::Removed => ", removed",
            Presence::Modified => "",
        };
        text += &format!("{}{how}\n", terminal_safe(&crd.crd_name));
        let mut table = Table::new(&["  SEVERITY", "OBJECTS", "VERSION", "CHANGE", "WHERE", "WHAT"]);
        let changes = crd.changes.iter().chain(crd.api_versions.iter().flat_map(|version| &version.schema_changes));
        for change in changes {
            let severity = format!("  {}", change.severity.as_str());
            let name = change.change_type.name();
            table.row(&[&severity, change.verdict.as_str(), &change.version, &name, &change.path, &change.sentence()]);
        }
        text += &table.text_within(columns);
        text.push('\n');
    }
    text + &counts(diff).join("\n") + "\n"
}

/// Counts of definitions, of changes by severity, and of changes by verdict.
fn counts(diff: &DefinitionsDiff) -> [String; 3] {
    let summary = &diff.summary;
    let verdicts = &summary.verdicts;
    [
        format!(
            "definitions: {} added, {} removed, {} modified",
            summary.crds_added, summary.crds_removed, summary.crds_modified
        ),
        format!(
            "changes: {} breaking, {} warning, {} info",
            summary.breaking_changes, summary.warnings, summary.info_changes
        ),
        format!("objects: {} breaking, {} unknown, {} safe", verdicts.breaking, verdicts.unknown, verdicts.safe),
    ]
}

/// A table per definition, within the length limit of a comment.
fn markdown(diff: &DefinitionsDiff) -> String {
    let mut text = "## Definitions\n\n".to_owned();
    for line in counts(diff) {
        text += &format!("- {line}\n");
    }
    let total = diff.changes().count();
    let mut shown = 0;
    let mut section = "";
    for change in diff.changes() {
        let head = if change.crd_name == section {
            String::new()
        } else {
            let columns = "| Severity | Objects | Version | Change | Where | What |\n|---|---|---|---|---|---|\n";
            format!("\n### {}\n\n{columns}", code(&change.crd_name, PATH))
        };
        let severity = match change.severity {
            Severity::Breaking => "**breaking**",
            other => other.as_str(),
        };
        let cell = |text: &str| if text.is_empty() { String::new() } else { markdown::cell(&code(text, PATH)) };
        let line = format!(
            "| {severity} | {} | {} | {} | {} | {} |\n",
            change.verdict.as_str(),
            cell(&change.version),
            change.change_type.name(),
            cell(&change.path),
            markdown::cell(&prose(&change.sentence(), SENTENCE))
        );
        if text.len() + head.len() + line.len() + NOTICE > LIMIT {
            break;
        }
        text += &head;
        text += &line;
        section = &change.crd_name;
        shown += 1;
    }
    if shown < total {
        text += &format!(
            "\n> [!WARNING]\n> **{} of {total} changes not shown**: this comment would be larger than {LIMIT} characters. \
             `--format json` has them all.\n",
            total - shown
        );
    }
    text
}

impl ReleaseReport for DefinitionsDiff {
    fn table(&self, columns: Option<usize>) -> String {
        table(self, columns)
    }

    fn markdown(&self) -> String {
        markdown(self)
    }

    fn page(&self) -> String {
        difference_html::definitions(self, counts(self))
    }

    fn data(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushback_releases::Definition;
    use pushback_releases::definitions::{Options, compare};
    use serde_json::{Map, Value, json};

    use super::*;

    fn definition(fields: &Value) -> Definition {
        let value = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.ex.com"},
            "spec": {
                "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
                }],
            },
        });
        Definition { name: "foos.ex.com".to_owned(), value: Arc::new(value), positions: None }
    }

    fn diff(old: &Value, new: &Value) -> DefinitionsDiff {
        DefinitionsDiff::of(compare(&[definition(old)], &[definition(new)], Options::default()))
    }

    #[test]
    fn the_table_says_why_objects_suffer_where_nobody_would_expect_it() {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let mut named = open.clone();
        named["properties"] = json!({"x": {"type": "string"}});
        let diff = diff(
            &json!({"a": {"type": "string"}, "b": {"type": "integer", "default": 1}, "c": open}),
            &json!({"b": {"type": "integer", "default": 2}, "c": named}),
        );
        insta::assert_snapshot!(table(&diff, None), @r#"
        foos.ex.com
          SEVERITY  OBJECTS   VERSION  CHANGE          WHERE  WHAT
          breaking  breaking  v1       FieldRemoved    a      field of type string removed
          warning   breaking  v1       DefaultChanged  b      default changed from 1 to 2
          info      breaking  v1       FieldAdded      c.x    field of type string added; breaking: version "v1", field "^.c.x": a field of type "string" is declared where any value was kept

        definitions: 0 added, 0 removed, 1 modified
        changes: 1 breaking, 1 warning, 1 info
        objects: 3 breaking, 0 unknown, 0 safe
        "#);
    }

    #[test]
    fn input_makes_no_markup() {
        let diff = diff(&json!({"a|b <i>@me": {"type": "string", "enum": ["|"]}}), &json!({}));
        let text = markdown(&diff);
        let row = text.lines().find(|line| line.contains("FieldRemoved")).expect("a row");
        assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
        assert!(row.contains("| `[\"a\\|b <i>@me\"]` |"), "{row}");
    }

    #[test]
    fn a_comment_stays_within_its_limit_and_says_what_is_left_out() {
        let fields: Map<String, Value> =
            (0..2_000).map(|number| (format!("field{number}"), json!({"type": "string"}))).collect();
        let text = markdown(&diff(&fields.into(), &json!({})));
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert!(text.contains("of 2000 changes not shown"), "{}", &text[text.len() - 300..]);
    }
}
