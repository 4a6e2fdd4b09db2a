//! Parses one Config document strictly: every value knows its path, and every error is collected.
//! Parsers return `None` after they have noted an error, so that one pass finds all errors.

use std::cell::RefCell;
use std::sync::Arc;

use pushback_preflight::source::display_path;
use pushback_preflight::suggest::nearest;
use pushback_preflight::{PathSegment, Position, Positions};
use serde_json::{Map, Value};

use crate::manifest::InputError;

/// The keys that a map may have.
#[derive(Debug)]
pub(super) struct Shape {
    /// Supported keys.
    pub(super) keys: &'static [&'static str],
    /// Keys of kapp that are known but not supported.
    pub(super) later: &'static [&'static str],
}

/// One document that is being parsed.
#[derive(Debug)]
pub(super) struct Document {
    positions: Arc<Positions>,
    errors: RefCell<Vec<InputError>>,
}

impl Document {
    pub(super) fn new(positions: Arc<Positions>) -> Self {
        Self { positions, errors: RefCell::default() }
    }

    pub(super) fn positions(&self) -> &Arc<Positions> {
        &self.positions
    }

    pub(super) fn root<'a>(&'a self, value: &'a Value) -> Node<'a> {
        Node { value, path: Vec::new(), document: self }
    }

    /// The errors in the order of the text.
    pub(super) fn into_errors(self) -> Vec<InputError> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| (error.position.line, error.position.column));
        errors
    }
}

/// A value of the document, and the path to it.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    value: &'a Value,
    path: Vec<PathSegment>,
    document: &'a Document,
}

impl<'a> Node<'a> {
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    pub(super) fn path(&self) -> &[PathSegment] {
        &self.path
    }

    pub(super) fn document(&self) -> &'a Document {
        self.document
    }

    pub(super) fn position(&self) -> Position {
        self.document.positions.locate(&self.path)
    }

    /// Notes an error here and returns `None`, so that a parser can end with it.
    pub(super) fn fail<T>(&self, message: impl AsRef<str>, hints: &[&str]) -> Option<T> {
        self.note(message, hints);
        None
    }

    /// Notes an error here; parsing continues.
    pub(super) fn note(&self, message: impl AsRef<str>, hints: &[&str]) {
        let path = display_path(&self.path);
        let separator = if path.is_empty() { "" } else { ": " };
        self.document.errors.borrow_mut().push(InputError {
            message: format!("{path}{separator}{}", message.as_ref()),
            position: self.position(),
            hints: hints.iter().map(|&hint| hint.to_owned()).collect(),
        });
    }

    pub(super) fn child(&self, segment: impl Into<PathSegment>, value: &'a Value) -> Self {
        let mut path = self.path.clone();
        path.push(segment.into());
        Self { value, path, document: self.document }
    }

    /// A map without other keys than the shape's.
    pub(super) fn fields(&self, shape: &'static Shape) -> Option<Fields<'a>> {
        let map = self.map()?;
        for (key, value) in map {
            let child = self.child(key.as_str(), value);
            if shape.later.contains(&key.as_str()) {
                child.note(
                    "this key of kapp is not supported yet",
                    &["remove it; it is refused because ignoring it could change what is deployed"],
                );
            } else if !shape.keys.contains(&key.as_str()) {
                let hint = match nearest(key, shape.keys.iter().copied()) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => format!("known keys: {}", shape.keys.join(", ")),
                };
                child.note("unknown key", &[&hint]);
            }
        }
        Some(Fields { node: self.clone(), map, shape })
    }

    pub(super) fn map(&self) -> Option<&'a Map<String, Value>> {
        match self.value {
            Value::Object(map) => Some(map),
            other => self.fail(format!("expected a map, found {}", describe(other)), &[]),
        }
    }

    /// Expects `{}`.
    pub(super) fn empty_map(&self) -> Option<()> {
        match self.value {
            Value::Object(map) if map.is_empty() => Some(()),
            other => self.fail(format!("expected `{{}}`, found {}", describe(other)), &[]),
        }
    }

    pub(super) fn list(&self) -> Option<Vec<Self>> {
        match self.value {
            Value::Array(items) => {
                Some(items.iter().enumerate().map(|(index, item)| self.child(index, item)).collect())
            }
            other => self.fail(format!("expected a list, found {}", describe(other)), &[]),
        }
    }

    /// A list with at least one element; `element` names it.
    pub(super) fn filled_list(&self, element: &str) -> Option<Vec<Self>> {
        let items = self.list()?;
        if items.is_empty() {
            self.fail(format!("expected at least one {element}, found an empty list"), &[])
        } else {
            Some(items)
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match self.value {
            Value::String(text) => Some(text),
            other @ (Value::Bool(_) | Value::Number(_)) => self.fail(
                format!("expected a string, found {}", describe(other)),
                &[&format!("write it in quotes: \"{other}\"")],
            ),
            other => self.fail(format!("expected a string, found {}", describe(other)), &[]),
        }
    }

    pub(super) fn filled_text(&self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() { self.fail("expected a non-empty string", &[]) } else { Some(text) }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self.value {
            Value::Bool(flag) => Some(*flag),
            other => self.fail(format!("expected true or false, found {}", describe(other)), &[]),
        }
    }

    /// Expects one of these words.
    pub(super) fn choice<T: Clone>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(choice.clone());
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let hint = nearest(text, words.iter().copied()).map(|word| format!("did you mean `{word}`?"));
        let hints: Vec<&str> = hint.iter().map(String::as_str).collect();
        self.fail(format!("expected {}, found {}", words.join(" or "), quote(text)), &hints)
    }
}

/// A map whose keys have been checked.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    node: Node<'a>,
    map: &'a Map<String, Value>,
    shape: &'static Shape,
}

impl<'a> Fields<'a> {
    pub(super) fn node(&self) -> &Node<'a> {
        &self.node
    }

    pub(super) fn optional(&self, key: &'static str) -> Option<Node<'a>> {
        debug_assert!(self.shape.keys.contains(&key), "`{key}` is read and not in the shape");
        self.map.get(key).map(|value| self.node.child(key, value))
    }

    pub(super) fn required(&self, key: &'static str) -> Option<Node<'a>> {
        self.optional(key).or_else(|| self.node.fail(format!("missing key `{key}`"), &[]))
    }

    /// A boolean that is false if absent.
    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        self.optional(key).map_or(Some(false), |node| node.flag())
    }

    /// An optional string; the outer `None` means that it is invalid.
    pub(super) fn filled_text(&self, key: &'static str) -> Option<Option<String>> {
        match self.optional(key) {
            None => Some(None),
            Some(node) => node.filled_text().map(|text| Some(text.to_owned())),
        }
    }
}

/// Text in quotes, control characters escaped, truncated if long.
pub(super) fn quote(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// Describes a value for `found …`.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", quote(text)),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}
