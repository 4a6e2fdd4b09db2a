//! A value of a model with its path: readers record errors and continue, so that one pass finds all of them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::duration;
use super::ModelError;
use crate::object::describe;
use crate::source::{PathSegment, Position, Positions, display_path};
use crate::suggest;

/// Maximum number of errors per document: each costs a search for its position.
const MAX_ERRORS: usize = 100;

/// A document being read.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    positions: &'a Positions,
    errors: RefCell<Vec<ModelError>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(positions: &'a Positions) -> Self {
        Self { positions, errors: RefCell::default() }
    }

    pub(super) fn root(&'a self, value: &'a Value) -> Node<'a> {
        Node { value, path: Vec::new(), reading: self }
    }

    /// The errors, in the order of the text.
    pub(super) fn into_errors(self) -> Vec<ModelError> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| (error.position.line, error.position.column));
        errors
    }
}

/// A value of the document, with its path.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    value: &'a Value,
    path: Vec<PathSegment>,
    reading: &'a Reading<'a>,
}

impl<'a> Node<'a> {
    pub(super) fn position(&self) -> Position {
        self.reading.positions.locate(&self.path)
    }

    /// Records an error at this value.
    pub(super) fn note(&self, message: impl AsRef<str>, hints: &[&str]) {
        if self.reading.errors.borrow().len() < MAX_ERRORS {
            let path = display_path(&self.path);
            let separator = if path.is_empty() { "" } else { ": " };
            self.note_at(&self.position(), format!("{path}{separator}{}", message.as_ref()), hints);
        }
    }

    /// Records an error at another position in the document.
    pub(super) fn note_at(&self, position: &Position, message: String, hints: &[&str]) {
        let mut errors = self.reading.errors.borrow_mut();
        if errors.len() < MAX_ERRORS {
            let hints = hints.iter().map(|&hint| hint.to_owned()).collect();
            errors.push(ModelError { message, position: position.clone(), hints });
        }
    }

    fn expected(&self, what: &str) {
        self.note(format!("expected {what}, found {}", describe(self.value)), &[]);
    }

    fn child(&self, segment: impl Into<PathSegment>, value: &'a Value) -> Self {
        let mut path = self.path.clone();
        path.push(segment.into());
        Self { value, path, reading: self.reading }
    }

    /// A map with no other keys than these. Any other value is an error, and its missing fields are not.
    pub(super) fn fields(&self, keys: &'static [&'static str]) -> Fields<'a, '_> {
        let map = self.map();
        for (key, value) in map.into_iter().flatten() {
            if !keys.contains(&key.as_str()) {
                let hint = match suggest::nearest(key, keys.iter().copied()) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => format!("known keys: {}", keys.join(", ")),
                };
                self.child(key.as_str(), value).note("unknown key", &[&hint]);
            }
        }
        Fields { node: self, map }
    }

    pub(super) fn map(&self) -> Option<&'a Map<String, Value>> {
        let map = self.value.as_object();
        if map.is_none() {
            self.expected("a map");
        }
        map
    }

    fn list(&self) -> Vec<Self> {
        let Some(items) = self.value.as_array() else {
            self.expected("a list");
            return Vec::new();
        };
        items.iter().enumerate().map(|(index, item)| self.child(index, item)).collect()
    }

    pub(super) fn text(&self) -> String {
        match self.value {
            Value::String(text) if text.trim().is_empty() => {
                self.note("expected a non-empty string", &[]);
                String::new()
            }
            Value::String(text) => text.clone(),
            scalar @ (Value::Bool(_) | Value::Number(_)) => {
                let found = format!("expected a string, found {}", describe(scalar));
                // After parsing, `2.10` is indistinguishable from 2.1, and `n` from false.
                let hint = if scalar.is_f64() || scalar.is_boolean() {
                    "write it in quotes".to_owned()
                } else {
                    format!("write it in quotes: \"{scalar}\"")
                };
                self.note(found, &[&hint]);
                String::new()
            }
            _ => {
                self.expected("a string");
                String::new()
            }
        }
    }

    /// One of these words.
    pub(super) fn choice(&self, words: &[&str]) -> String {
        let text = self.text();
        if text.is_empty() || words.contains(&text.as_str()) {
            return text;
        }
        let hint = suggest::nearest(&text, words.iter().copied()).map(|word| format!("did you mean `{word}`?"));
        let hints: Vec<&str> = hint.iter().map(String::as_str).collect();
        self.note(format!("expected {}, found {text:?}", words.join(" or ")), &hints);
        String::new()
    }

    /// A map of strings; values may be empty, like those of labels.
    pub(super) fn text_map(&self) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for (key, value) in self.map().into_iter().flatten() {
            let child = self.child(key.as_str(), value);
            let text = if value.as_str() == Some("") { String::new() } else { child.text() };
            texts.insert(key.clone(), text);
        }
        texts
    }

    /// A duration in Go's format, in seconds, rounded up; at least `least`.
    pub(super) fn duration(&self, least: u64) -> u64 {
        let text = self.text();
        if text.is_empty() {
            return 0;
        }
        match duration::seconds(&text) {
            Some(seconds) if seconds >= least => seconds,
            Some(_) => {
                self.note(format!("expected a duration above 0, found {text:?}"), &["such as 300s or 5m"]);
                0
            }
            None => {
                self.note(
                    format!("{text:?} is no duration"),
                    &["write a number with its unit, such as 300s, 5m or 1h30m"],
                );
                0
            }
        }
    }

    /// An integer above 0.
    pub(super) fn count(&self) -> u64 {
        match self.value.as_u64() {
            Some(count) if count > 0 => count,
            _ => {
                let found =
                    if self.value.is_number() { self.value.to_string() } else { describe(self.value).to_owned() };
                self.note(format!("expected a whole number above 0, found {found}"), &[]);
                0
            }
        }
    }
}

/// A map whose keys are validated.
#[derive(Debug)]
pub(super) struct Fields<'a, 'n> {
    node: &'n Node<'a>,
    map: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a, '_> {
    /// A value that may be absent; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.map?.get(key).filter(|value| !value.is_null())?;
        Some(self.node.child(key, value))
    }

    pub(super) fn required(&self, key: &str) -> Option<Node<'a>> {
        let value = self.get(key);
        if value.is_none() && self.map.is_some() {
            self.node.note(format!("missing key `{key}`"), &[]);
        }
        value
    }

    pub(super) fn text(&self, key: &str) -> String {
        // Templates leave optional values empty.
        self.get(key).filter(|node| node.value.as_str() != Some("")).map(|node| node.text()).unwrap_or_default()
    }

    pub(super) fn required_text(&self, key: &str) -> String {
        self.required(key).map(|node| node.text()).unwrap_or_default()
    }

    pub(super) fn list(&self, key: &str) -> Vec<Node<'a>> {
        self.get(key).map(|node| node.list()).unwrap_or_default()
    }

    /// A list with at least one element.
    pub(super) fn filled_list(&self, key: &str, element: &str) -> Vec<Node<'a>> {
        let Some(node) = self.required(key) else { return Vec::new() };
        let items = node.list();
        if items.is_empty() && node.value.is_array() {
            node.note(format!("expected at least one {element}, found an empty list"), &[]);
        }
        items
    }

    /// A list of unique strings.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for node in self.list(key) {
            let text = node.text();
            if text.is_empty() {
                continue;
            }
            if seen.insert(text.clone()) {
                texts.push(text);
            } else {
                node.note(format!("{text:?} is given a second time"), &["remove one of them"]);
            }
        }
        texts
    }
}
