//! Explains the YAML parser's errors: what was expected, and what to do.

use serde_yaml::granit_parser::{ErrorKind, ScanError};

use super::fault::{Fault, Place};
use super::tree::too_deep;
use crate::limits::Limits;

/// The parser's error in our own words. Only single characters of the text are quoted.
pub(super) fn explain(error: &ScanError, text: &str, limits: &Limits) -> Fault {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = Place { line: number(error.marker().line()), column: number(error.marker().col() + 1) };
    let line = text.lines().nth(error.marker().line().saturating_sub(1)).unwrap_or_default();
    if *error.kind() == ErrorKind::RecursionLimitExceeded {
        return too_deep(limits, place);
    }
    let indentation = |line: &str| line[..line.len() - line.trim_start_matches([' ', '\t']).len()].contains('\t');
    if is_about_tabs(error.kind()) || indentation(line) {
        // A value that continues on the next line is reported where it starts.
        let from = error.marker().line().max(1);
        let tab = text.lines().enumerate().skip(from - 1).take(2).find(|(_, line)| indentation(line));
        let place = match tab {
            Some((index, line)) if index + 1 != from => {
                Place { line: number(index + 1), column: number(line.find('\t').unwrap_or_default() + 1) }
            }
            _ => place,
        };
        return Fault::new(place, "a tab is used as indentation; YAML allows only spaces there")
            .hint("Replace the tab with spaces.");
    }
    let (message, hint) = words(error.kind());
    let fault = Fault::new(place, message).hint(hint);
    if line.contains("{{") || line.contains("{%") {
        return fault.hint("This looks like a template: render it first (helm template, ytt, …) and pass the result.");
    }
    fault
}

fn is_about_tabs(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    )
}

fn words(kind: &ErrorKind) -> (String, &'static str) {
    let (message, hint) = match kind {
        ErrorKind::UnclosedQuotedScalar => ("the quote is not closed", "Add the closing quote."),
        ErrorKind::DocumentIndicatorInQuotedScalar => (
            "`---` or `...` at the start of a line inside a quoted string",
            "Close the quote, indent the line, or use a block (`|`).",
        ),
        ErrorKind::UnclosedFlowCollection { open } => {
            return (format!("`{open}` is not closed"), "Add the closing bracket.");
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            return (
                format!("`{open}` is closed by `{close}`"),
                "Close brackets in the order in which they were opened.",
            );
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            ("a closing bracket without an opening one", "Remove it, or put the text in quotes.")
        }
        ErrorKind::UnexpectedEofFlowSequence | ErrorKind::ExpectedFlowSequenceSeparator => {
            ("expected `,` or `]` in the list", "Separate items with commas and close the list with `]`.")
        }
        ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::ExpectedFlowMappingSeparator => {
            ("expected `,` or `}` in the map", "Separate entries with commas and close the map with `}`.")
        }
        ErrorKind::UnexpectedEofBlockSequence | ErrorKind::UnexpectedEofBlockMapping | ErrorKind::UnexpectedEof => {
            ("the file ends too early", "Complete the last value.")
        }
        ErrorKind::ExpectedBlockMappingKey => (
            "expected a key of the map above",
            "Indent it like the other keys, and check quotes and brackets in the lines before.",
        ),
        ErrorKind::ExpectedBlockSequenceEntry => {
            ("expected the next `- item` of the list", "Indent it like the other items.")
        }
        ErrorKind::InvalidQuotedScalarIndent => (
            "the quoted string above is not closed, or this line of it is not indented",
            "Add the closing quote, or indent the line.",
        ),
        ErrorKind::InvalidIndentation | ErrorKind::InvalidFlowScalarIndent | ErrorKind::InvalidBlockScalarIndent => (
            "the line is indented wrongly",
            "Indent it like its neighbours; a block's lines at least as far as its first.",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "expected `:` after a key",
            "Write `key: value` with a space after the colon; a key has one line and at most 1024 characters.",
        ),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            ("a `:` is not allowed here", "Put text that contains `: ` in quotes, or check the indentation.")
        }
        ErrorKind::MappingKeyNotAllowed => ("a key is not allowed here", "Check the indentation of this line."),
        ErrorKind::BlockSequenceEntryNotAllowed | ErrorKind::BlockEntryInFlowCollection => {
            ("a `- item` is not allowed here", "Start the list on a line of its own, or put the text in quotes.")
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return (format!("no value may start with `{}`", character.escape_default()), "Put the text in quotes.");
        }
        ErrorKind::ExpectedNodeContent => ("expected a value", "Write one, or put the text in quotes."),
        ErrorKind::ExpectedDocumentStart => {
            ("expected `---`, the start of a document", "Check the indentation of this line and of the one before.")
        }
        ErrorKind::InvalidDocumentEnd => ("text behind `...`", "Put it on a line of its own after `---`."),
        ErrorKind::BomInsideDocument => {
            ("a byte order mark inside a document", "Remove the invisible character U+FEFF.")
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            ("text after the closing quote", "Put the whole value in quotes; double a quote inside ('it''s').")
        }
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => (
            "an escape that double-quoted strings do not know",
            "Double the backslash, or use single quotes, where a backslash stands for itself.",
        ),
        ErrorKind::CommentNotSeparated => ("`#` directly after a value", "Put a space before the comment."),
        ErrorKind::CommentInterceptedScalar => {
            ("a comment interrupts a text of several lines", "Use a block (`|`), or move the comment.")
        }
        ErrorKind::MissingAnchorOrAliasName => {
            ("`&` or `*` without a name", "Put text that starts with `&` or `*` in quotes.")
        }
        ErrorKind::UndeclaredTagHandle => {
            ("the tag's prefix is not declared", "Remove the tag, or put the text in quotes.")
        }
        other => return (other.to_string(), "Check this line and the one before."),
    };
    (message.to_owned(), hint)
}
