//! Splits a file into documents, each with its own byte range, so that one can be replaced without touching the rest.
//! Values are parsed document by document.

use std::ops::Range;

use pushback_manifest::yaml::{self, Limits};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{ClusterError, ErrorKind};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Documents between lines that start with `---`.
    Yaml,
    /// One or more consecutive values.
    Json,
}

impl Format {
    /// By the file's extension.
    pub(super) fn of(file: &str) -> Self {
        let json = file.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("json"));
        if json { Self::Json } else { Self::Yaml }
    }
}

/// One document of a file, as byte ranges of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Separator line, comments and content: everything up to the next separator.
    pub segment: Range<usize>,
    /// The segment without its separator; starts after the three dashes, which content may follow.
    pub body: Range<usize>,
    /// From the first to the last line that is neither blank nor a comment; empty if there is none.
    pub content: Range<usize>,
    /// Line on which the segment and the body start, from 1.
    pub body_line: u32,
    /// Line on which the content starts, from 1.
    pub line: u32,
}

impl Part {
    /// Shifts the part after a change in the length and lines of the text before it.
    pub(super) fn move_by(&mut self, old: usize, new: usize, old_lines: usize, new_lines: usize) {
        let shift =
            |range: &Range<usize>| (range.start + new).saturating_sub(old)..(range.end + new).saturating_sub(old);
        self.segment = shift(&self.segment);
        self.body = shift(&self.body);
        self.content = shift(&self.content);
        for line in [&mut self.body_line, &mut self.line] {
            let moved = (*line as usize + new_lines).saturating_sub(old_lines);
            *line = u32::try_from(moved).unwrap_or(u32::MAX);
        }
    }

    fn starting_at(start: usize, body: usize, line: u32) -> Self {
        Self { segment: start..start, body: body..body, content: 0..0, body_line: line, line }
    }

    fn ending_at(mut self, end: usize) -> Self {
        self.segment.end = end;
        self.body.end = end;
        if self.content.is_empty() {
            self.content = end..end;
        }
        self
    }
}

/// Parses all documents that have content.
///
/// # Errors
/// `Configuration`, with file and line, if a document cannot be parsed.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<(Part, Value)>, ClusterError> {
    match Format::of(file) {
        Format::Json => parse_json(text, file),
        Format::Yaml => split(text)
            .into_iter()
            .filter(|part| !part.content.is_empty())
            .map(|part| {
                let value = parse_document(&text[part.body.clone()], file, part.body_line)?;
                Ok((part, value))
            })
            .collect(),
    }
}

/// Parses the one document in `text`, which starts on `line` of its file.
fn parse_document(text: &str, file: &str, line: u32) -> Result<Value, ClusterError> {
    let moved = |inside: u32| line.saturating_add(inside.max(1)) - 1;
    let mut loaded = yaml::load(file, text.as_bytes(), &Limits::default())
        .map_err(|error| unreadable(file, moved(error.position.line), &error.message))?;
    loaded.documents.retain(|document| !document.value.is_null());
    if let Some(second) = loaded.documents.get(1) {
        let line = moved(second.positions.start().line);
        return Err(unreadable(file, line, "a second document starts without a line of three dashes"));
    }
    Ok(loaded.documents.pop().map_or(Value::Null, |document| document.value))
}

fn parse_json(text: &str, file: &str) -> Result<Vec<(Part, Value)>, ClusterError> {
    let mut start = byte_order_mark(text);
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
    let skipped = start;
    let mut line = 1;
    let mut parts = Vec::new();
    while let Some(value) = values.next() {
        if let Err(error) = value {
            // The loader explains errors better; if it finds none, this one is reported.
            parse_document(&text[start..], file, line)?;
            return Err(unreadable(file, u32::try_from(error.line()).unwrap_or(0), "is not JSON"));
        }
        let end = skipped + values.byte_offset();
        let blank = text[start..end].len() - text[start..end].trim_start().len();
        let content = start + blank..end;
        let body_line = line;
        line += lines(&text[start..content.start]);
        let value = parse_document(&text[content.clone()], file, line)?;
        parts.push((Part { segment: start..end, body: start..end, content: content.clone(), body_line, line }, value));
        line += lines(&text[content]);
        start = end;
    }
    Ok(parts)
}

fn unreadable(file: &str, line: u32, message: &str) -> ClusterError {
    ClusterError::new(ErrorKind::Configuration, format!("{file}:{line}: {message}"))
}

/// Splits a YAML text at its separators. Inside a document no line can start with `---` in the first column, not even
/// in a block or quoted scalar, so this needs no parser.
pub(super) fn split(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut offset = byte_order_mark(text);
    let mut current = Part::starting_at(offset, offset, 1);
    for (line, line_number) in text[offset..].split_inclusive('\n').zip(1_u32..) {
        let line_start = offset;
        offset += line.len();
        let mut significant_from = line_start;
        if let Some(rest) = separator_rest(line) {
            if line_start > current.segment.start {
                parts.push(current.ending_at(line_start));
            }
            current = Part::starting_at(line_start, line_start + 3, line_number);
            significant_from = offset - rest.trim_start().len();
        }
        let inside = !current.content.is_empty();
        let significant = without_indent(&text[significant_from..offset]);
        // A `%` line is a directive only before the document.
        let nothing = significant.is_empty()
            || significant.starts_with('#') && is_comment(text, significant_from, inside)
            || significant.starts_with('%') && !inside;
        if !nothing {
            if !inside {
                current.content.start = significant_from;
                current.line = line_number;
            }
            current.content.end = offset;
        }
    }
    if offset > current.segment.start {
        parts.push(current.ending_at(offset));
    }
    parts
}

/// `trim_start`, with a fast path for the usual case of spaces only.
fn without_indent(line: &str) -> &str {
    let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
    line[spaces..].trim_start()
}

/// Inside a document, an indented `#` may be part of a block scalar; in the first column it never is.
fn is_comment(text: &str, line_start: usize, inside: bool) -> bool {
    !inside || text[line_start..].starts_with('#')
}

/// The text after the dashes of a separator line.
fn separator_rest(line: &str) -> Option<&str> {
    line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn byte_order_mark(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

fn lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contents(text: &str) -> Vec<&str> {
        split(text).into_iter().map(|part| &text[part.content]).collect()
    }

    #[test]
    fn documents_are_cut_at_separator_lines_only() {
        let text = "a: |\n  ---\n  # kept\n---\n# head\nb: ---\n\n# tail\n--- # comment\n--- {c: 1}\n---d: 1\n";
        assert_eq!(contents(text), ["a: |\n  ---\n  # kept\n", "b: ---\n", "", "{c: 1}\n---d: 1\n"]);
        let rejoined: String = split(text).into_iter().map(|part| text[part.segment].to_owned()).collect();
        assert_eq!(rejoined, text);
    }

    #[test]
    fn a_block_scalar_keeps_lines_that_look_like_comments() {
        assert_eq!(contents("a: |\n  x\n  # y\n# z\n"), ["a: |\n  x\n  # y\n"]);
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_are_understood() {
        let text = "\u{feff}a: 1\r\n---\r\nb: 2\r\n";
        let values: Vec<Value> = parse(text, "a.yaml").unwrap().into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [serde_json::json!({"a": 1}), serde_json::json!({"b": 2})]);
    }

    #[test]
    fn an_error_names_the_line_and_nothing_of_the_text() {
        let error = parse("a: 1\n---\n# note\npassword: \"hunter2\n  x: [\n", "dir/a.yaml").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(error.message.starts_with("dir/a.yaml:4: ") || error.message.starts_with("dir/a.yaml:6: "), "{error}");
        assert!(!error.message.contains("hunter2"), "{error}");
        let error = parse("{\"a\": 1}\n{\"password\": hunter2}", "a.json").unwrap_err();
        assert_eq!(error.message, "a.json:2: is not JSON");
    }

    #[test]
    fn json_files_may_hold_several_values() {
        let text = "{\"a\": 1}\n\n {\"b\": 2.0}\n";
        let parts = parse(text, "a.json").unwrap();
        assert_eq!(parts[1].1, serde_json::json!({"b": 2}));
        assert_eq!((&text[parts[1].0.content.clone()], parts[1].0.line), ("{\"b\": 2.0}", 3));
    }

    proptest! {
        #[test]
        fn any_text_is_cut_without_loss_and_never_breaks_the_reader(
            lines in prop::collection::vec(prop_oneof![Just("---".to_owned()), Just("--- #".to_owned()), Just("%YAML 1.2".to_owned()),
                Just("...".to_owned()), Just("a: |".to_owned()), Just("a: {b: 1}".to_owned()), "\\PC{0,12}", "[ #:\\-{\\[\"'a\t\r]{0,8}"], 0..12),
        ) {
            let text = lines.join("\n");
            let parts = split(&text);
            let rejoined: String = parts.iter().map(|part| &text[part.segment.clone()]).collect();
            prop_assert_eq!(rejoined.as_str(), text.trim_start_matches('\u{feff}'));
            for part in &parts {
                prop_assert!(part.segment.start <= part.body.start && part.body.start <= part.content.start);
                prop_assert!(part.content.end <= part.segment.end);
            }
            for file in ["a.yaml", "a.json"] {
                for (part, _) in parse(&text, file).unwrap_or_default() {
                    let lines_before = text[..part.content.start].matches('\n').count();
                    prop_assert_eq!(part.line as usize, lines_before + 1);
                }
            }
        }
    }
}
