//! Replaces, adds and removes one document in the text of a file; every byte outside it stays.
//! The new text is parsed before it is used: it must give the same value.

use serde_json::{Map, Value};

use super::read::{self, Format, Part};
use crate::json_patch::same;
use crate::{ClusterError, ErrorKind};

/// The text of a file that holds one object.
///
/// # Errors
/// `Invalid` if no rendering of the value parses to the same value.
pub(super) fn new_file(value: &Value, file: &str) -> Result<String, ClusterError> {
    for rendering in renderings(Format::of(file)) {
        let text = rendering(value)?;
        if read::parse(&text, file).is_ok_and(|documents| matches!(&documents[..], [(_, read)] if same(read, value))) {
            return Ok(text);
        }
    }
    Err(not_writable(file))
}

/// The text of a file with those documents replaced for which `convert` gives another value, and their number. The
/// ending of `file` decides the format.
///
/// # Errors
/// The text cannot be parsed, `convert` fails, or a value cannot be written so that it is read again as it is.
pub fn rewrite<E: From<ClusterError>>(
    text: &str,
    file: &str,
    mut convert: impl FnMut(&Value, u32) -> Result<Option<Value>, E>,
) -> Result<(String, usize), E> {
    let mut documents = Vec::new();
    for (part, value) in read::parse(text, file)? {
        documents.extend(convert(&value, part.line)?.map(|value| (part, value)));
    }
    let mut text = text.to_owned();
    // From the end, so that the places of those before stay.
    for (part, value) in documents.iter().rev() {
        text = replace(&text, part, value, file)?;
    }
    Ok((text, documents.len()))
}

/// The file's text with one document replaced.
///
/// # Errors
/// `Invalid` if no rendering of the value parses to the same value.
pub(super) fn replace(text: &str, part: &Part, value: &Value, file: &str) -> Result<String, ClusterError> {
    let format = Format::of(file);
    // Blank lines after a block scalar that keeps its trailing line breaks would become part of it: remove them.
    for until in [part.content.end, part.segment.end] {
        for rendering in renderings(format) {
            let rendered = rendering(value)?;
            let mut segment = text[part.segment.start..part.content.start].to_owned();
            match format {
                Format::Json => segment.push_str(rendered.trim_end()),
                Format::Yaml => {
                    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
                    if !(segment.is_empty() || segment.ends_with('\n') || segment == "\u{feff}") {
                        segment.truncate(segment.trim_end_matches([' ', '\t']).len());
                        segment.push_str(newline);
                    }
                    segment.push_str(&if newline == "\n" { rendered } else { rendered.replace('\n', newline) });
                }
            }
            segment.push_str(&text[until..part.segment.end]);
            if read::parse(&segment, file).is_ok_and(|read| matches!(&read[..], [(_, read)] if same(read, value))) {
                return Ok([&text[..part.segment.start], &segment, &text[part.segment.end..]].concat());
            }
        }
    }
    Err(not_writable(file))
}

/// The file's text without one document. Comments directly above its content are removed too; others stay.
pub(super) fn remove(text: &str, part: &Part, file: &str) -> String {
    if Format::of(file) == Format::Json {
        return [&text[..part.segment.start], &text[part.segment.end..]].concat();
    }
    let before = &text[part.body.start..part.content.start];
    let attached = before.split_inclusive('\n').rev().take_while(|line| line.trim_start().starts_with('#'));
    // Text after the dashes, on the same line, belongs to the separator and not to the content.
    let attached: usize = attached.map(str::len).sum::<usize>();
    let separator = text[part.segment.start..part.content.start].find('\n').map_or(0, |end| end + 1);
    let separator = if part.body.start > part.segment.start { separator } else { 0 };
    let from = (part.content.start - attached).max(part.segment.start + separator);
    let rest = [&text[part.segment.start..from], &text[part.content.end..part.segment.end]].concat();
    let comments = rest.strip_prefix("---").unwrap_or(&rest);
    let rest = if comments.trim().is_empty() { "" } else { rest.as_str() };
    [&text[..part.segment.start], rest, &text[part.segment.end..]].concat()
}

type Rendering = fn(&Value) -> Result<String, ClusterError>;

/// The renderings of a value to try, the best one first. JSON is the YAML that is hardest to misread.
fn renderings(format: Format) -> &'static [Rendering] {
    match format {
        Format::Json => &[json],
        Format::Yaml => &[yaml, json],
    }
}

fn yaml(value: &Value) -> Result<String, ClusterError> {
    // Long lines are not folded: every later change of a folded scalar would change many lines.
    let options = serde_yaml::ser_options! { folded_wrap_chars: 1_000_000_000 };
    serde_yaml::to_string_with_options(&ordered(value), options).map_err(|_| not_writable("the object"))
}

fn json(value: &Value) -> Result<String, ClusterError> {
    let text = serde_json::to_string_pretty(&ordered(value)).map_err(|_| not_writable("the object"))?;
    Ok(text + "\n")
}

/// `apiVersion`, `kind` and `metadata` first, the rest in its own order.
fn ordered(value: &Value) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    let first = ["apiVersion", "kind", "metadata"];
    let head = first.iter().filter_map(|key| map.get_key_value(*key));
    let tail = map.iter().filter(|(key, _)| !first.contains(&key.as_str()));
    let ordered: Map<String, Value> = head.chain(tail).map(|(key, value)| (key.clone(), value.clone())).collect();
    Value::Object(ordered)
}

fn not_writable(file: &str) -> ClusterError {
    ClusterError::new(ErrorKind::Invalid, format!("{file}: cannot be written so that it reads back the same"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const FILE: &str =
        "# licence\n\n# about a\na: 1 # one\n\n# before b\n---\n# about b\nb: |\n  text\n\n# tail\n---\nc: 3";

    fn part(index: usize) -> Part {
        read::split(FILE).remove(index)
    }

    #[test]
    fn replacing_a_document_keeps_what_is_around_it() {
        let text = replace(FILE, &part(1), &json!({"b": "x", "kind": "K"}), "f.yaml").unwrap();
        assert_eq!(text, FILE.replace("b: |\n  text\n", "kind: K\nb: x\n"));
        let text = replace(FILE, &part(0), &json!({"a": 2}), "f.yaml").unwrap();
        assert_eq!(text, FILE.replace("a: 1 # one\n", "a: 2\n"));
        let text = replace(FILE, &part(2), &json!({"c": 4}), "f.yaml").unwrap();
        assert_eq!(text, FILE.replace("c: 3", "c: 4\n"));
    }

    #[test]
    fn removing_a_document_takes_its_own_comment_along_and_no_other() {
        assert_eq!(remove(FILE, &part(0), "f.yaml"), FILE.replace("# about a\na: 1 # one\n", ""));
        assert_eq!(remove(FILE, &part(1), "f.yaml"), FILE.replace("# about b\nb: |\n  text\n", ""));
        assert_eq!(remove(FILE, &part(2), "f.yaml"), FILE.replace("---\nc: 3", ""));
    }

    #[test]
    fn content_on_the_separator_line_is_replaced_below_it() {
        let text = "--- {a: 1}\n---\nb: 2\n";
        let part = read::split(text).remove(0);
        assert_eq!(replace(text, &part, &json!({"a": 2}), "f.yaml").unwrap(), "---\na: 2\n---\nb: 2\n");
        assert_eq!(remove(text, &part, "f.yaml"), "---\nb: 2\n");
    }

    #[test]
    fn blank_lines_behind_a_document_never_become_part_of_its_value() {
        let text = "a: 1\n\n\n---\nb: 2\n";
        let value = json!({"a": "ends with lines\n\n"});
        let edited = replace(text, &read::split(text).remove(0), &value, "f.yaml").unwrap();
        assert_eq!(read::parse(&edited, "f.yaml").unwrap()[0].1, value);
        assert!(edited.ends_with("---\nb: 2\n"), "{edited}");
    }

    #[test]
    fn windows_line_ends_are_kept() {
        let text = "a: 1\r\n---\r\nb: 2\r\n";
        let edited = replace(text, &read::split(text).remove(1), &json!({"b": {"c": "x\ny\n"}}), "f.yaml").unwrap();
        assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count());
        assert_eq!(read::parse(&edited, "f.yaml").unwrap()[1].1, json!({"b": {"c": "x\ny\n"}}));
    }

    #[test]
    fn json_stays_json() {
        let text = "{\"a\": 1}\n{\"b\": 2}\n";
        let parts = read::parse(text, "f.json").unwrap();
        let edited = replace(text, &parts[0].0, &json!({"a": 3}), "f.json").unwrap();
        assert_eq!(edited, "{\n  \"a\": 3\n}\n{\"b\": 2}\n");
        assert_eq!(remove(text, &parts[0].0, "f.json"), "\n{\"b\": 2}\n");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~\n\t#:|>'\"\r\u{85}\u{2028}é-]{0,40}".prop_map(Value::from),
            prop_oneof![
                Just("yes"),
                Just("1_000"),
                Just("0o7"),
                Just("---"),
                Just("null"),
                Just("~"),
                Just("2001-01-01")
            ]
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-z#: /.]{1,8}|on|y|1|~", inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_object_reads_back_the_same_and_leaves_its_neighbours_alone(value in any_value(), which in 0usize..3) {
            let value = json!({"value": value});
            let edited = replace(FILE, &part(which), &value, "f.yaml").unwrap();
            let values: Vec<Value> = read::parse(&edited, "f.yaml").unwrap().into_iter().map(|(_, value)| value).collect();
            let before: Vec<Value> = read::parse(FILE, "f.yaml").unwrap().into_iter().map(|(_, value)| value).collect();
            for index in 0..3 {
                prop_assert!(same(&values[index], if index == which { &value } else { &before[index] }), "{}", edited);
            }
        }
    }
}
