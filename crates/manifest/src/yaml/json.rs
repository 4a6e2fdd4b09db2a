//! A stream of JSON texts, with or without white space between them: `{}{}` as kubectl reads it.
//! Produces the trees of the YAML parser, so that limits, warnings and positions are the same.

use std::borrow::Cow;
use std::sync::Arc;

use super::construct::construct;
use super::document::Loaded;
use super::fault::{Fault, Place};
use super::scalar::Tag;
use super::tree::{Kind, TreeBuilder};
use crate::limits::{Limits, Usage};

/// Reads a stream of JSON texts.
pub(super) fn load(file: &Arc<str>, text: &str, limits: &Limits, usage: &mut Usage) -> Result<Loaded, Fault> {
    let mut reader = Reader { text, offset: 0, line: 1, counted: (0, 1) };
    let mut loaded = Loaded::default();
    loop {
        reader.skip_white_space();
        if reader.peek().is_none() {
            return Ok(loaded);
        }
        let mut document = TreeBuilder::new(limits, usage.nodes);
        reader.document(&mut document)?;
        let tree = document.finish();
        usage.nodes += tree.nodes.len();
        construct(file, &tree, limits, usage, &mut loaded)?;
    }
}

struct Reader<'input> {
    text: &'input str,
    offset: usize,
    line: u32,
    /// An offset in this line, and its column: JSON is often one long line, which must be counted only once.
    counted: (usize, u32),
}

/// What the syntax allows next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    /// Right after `[`.
    ValueOrEnd,
    Key,
    /// Right after `{`.
    KeyOrEnd,
    CommaOrEnd,
}

impl<'input> Reader<'input> {
    /// Parses one JSON text, without recursion.
    fn document(&mut self, tree: &mut TreeBuilder<'input, '_>) -> Result<(), Fault> {
        let mut expected = Expected::Value;
        loop {
            self.skip_white_space();
            let place = self.place();
            let in_object = matches!(tree.innermost(), Some(Kind::Mapping));
            match (expected, self.peek()) {
                (Expected::CommaOrEnd, Some(b',')) => {
                    self.offset += 1;
                    expected = if in_object { Expected::Key } else { Expected::Value };
                    continue;
                }
                (Expected::CommaOrEnd | Expected::KeyOrEnd, Some(b'}')) if in_object => {
                    self.offset += 1;
                    tree.close();
                }
                (Expected::CommaOrEnd | Expected::ValueOrEnd, Some(b']')) if !in_object => {
                    self.offset += 1;
                    tree.close();
                }
                (Expected::Key | Expected::KeyOrEnd, Some(b'"')) => {
                    let text = self.string()?;
                    tree.leaf(Kind::Scalar { text, plain: false, tag: Tag::None }, place)?;
                    self.skip_white_space();
                    if self.peek() != Some(b':') {
                        return Err(self.unexpected("`:` behind the key"));
                    }
                    self.offset += 1;
                    expected = Expected::Value;
                    continue;
                }
                (Expected::Value | Expected::ValueOrEnd, Some(b'{')) => {
                    self.offset += 1;
                    tree.open(Kind::Mapping, place)?;
                    expected = Expected::KeyOrEnd;
                    continue;
                }
                (Expected::Value | Expected::ValueOrEnd, Some(b'[')) => {
                    self.offset += 1;
                    tree.open(Kind::Sequence, place)?;
                    expected = Expected::ValueOrEnd;
                    continue;
                }
                (Expected::Value | Expected::ValueOrEnd, Some(b'"')) => {
                    let text = self.string()?;
                    tree.leaf(Kind::Scalar { text, plain: false, tag: Tag::None }, place)?;
                }
                (Expected::Value | Expected::ValueOrEnd, Some(_)) => {
                    let text = Cow::Borrowed(self.literal()?);
                    tree.leaf(Kind::Scalar { text, plain: true, tag: Tag::None }, place)?;
                }
                (Expected::Key | Expected::KeyOrEnd, _) => return Err(self.unexpected("a key in double quotes")),
                (Expected::CommaOrEnd, _) if in_object => return Err(self.unexpected("`,` or `}`")),
                (Expected::CommaOrEnd, _) => return Err(self.unexpected("`,` or `]`")),
                (Expected::Value | Expected::ValueOrEnd, None) => return Err(self.unexpected("a value")),
            }
            if tree.innermost().is_none() {
                return Ok(());
            }
            expected = Expected::CommaOrEnd;
        }
    }

    /// Parses a string and resolves its escapes.
    fn string(&mut self) -> Result<Cow<'input, str>, Fault> {
        let place = self.place();
        let bytes = self.text.as_bytes();
        let mut end = self.offset + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => {
                    return Err(Fault::new(place, "the string is not closed before the end of its line")
                        .hint("Add the missing `\"`, or write a line break as \\n."));
                }
                Some(_) => end += 1,
            }
        }
        let quoted = self.text.get(self.offset..=end).unwrap_or_default();
        self.offset = end + 1;
        let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        if !inner.bytes().any(|byte| byte == b'\\' || byte.is_ascii_control()) {
            return Ok(Cow::Borrowed(inner));
        }
        serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| {
            Fault::new(place, "the string has an escape or a character that JSON does not know")
                .hint("JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX; a tab is written as \\t.")
        })
    }

    /// Parses a number, `true`, `false` or `null`; the YAML rules resolve these the same way.
    fn literal(&mut self) -> Result<&'input str, Fault> {
        let rest = &self.text[self.offset..];
        let end = rest.find(|c: char| c.is_whitespace() || "{}[],:\"".contains(c)).unwrap_or(rest.len());
        let literal = &rest[..end];
        if serde_json::from_str::<serde_json::Value>(literal).is_err() {
            return Err(self.unexpected("a value"));
        }
        self.offset += end;
        Ok(literal)
    }

    fn unexpected(&mut self, expected: &str) -> Fault {
        let found = match self.text[self.offset.min(self.text.len())..].chars().next() {
            None => "the end of the file".to_owned(),
            Some(c) if c.is_control() => format!("`{}`", c.escape_default()),
            Some(c) => format!("`{c}`"),
        };
        let fault = Fault::new(self.place(), format!("expected {expected}, found {found}"));
        match found.as_str() {
            "`}`" | "`]`" => fault.hint("JSON allows no comma before a closing bracket."),
            "`/`" | "`#`" => fault.hint("JSON has no comments; YAML has them, with `#`."),
            _ => fault,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_white_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.offset += 1;
            if byte == b'\n' {
                self.line = self.line.saturating_add(1);
                self.counted = (self.offset, 1);
            }
        }
    }

    fn place(&mut self) -> Place {
        let (offset, column) = self.counted;
        let more = self.text.get(offset..self.offset).map_or(0, |passed| passed.chars().count());
        self.counted = (self.offset, column.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)));
        Place { line: self.line, column: self.counted.1 }
    }
}
