//! The strict reader of YAML trees: every value knows its path and position, a key that is not expected is an error
//! with a suggestion, and errors are collected, so that one pass finds all of them.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::source::{InputError, PathSegment, Position, Positions, display_path};
use crate::{duration, suggest};

/// Maximum number of errors per document: each costs a search for its position.
const MAX_ERRORS: usize = 100;

/// A document being read. What cannot be read is replaced by an empty value: the result counts only without errors.
///
/// ```
/// use pushback_objects::reader::Reader;
/// use pushback_objects::source::Positions;
///
/// let (value, positions) = (serde_json::json!({"hubb": "v1", "replicas": 0}), Positions::of_file("plan.yaml"));
/// let reader = Reader::new(&positions);
/// let fields = reader.root(&value).fields(&["hub", "replicas"]);
/// let hub = fields.text("hub");
/// let replicas = fields.required("replicas").and_then(|node| node.whole_number(1..=u64::MAX));
/// let errors = reader.into_errors();
/// assert_eq!((hub, replicas), (None, None));
/// assert_eq!(errors[0].to_string(), "plan.yaml: hubb: unknown key");
/// assert_eq!(errors[0].hints, ["did you mean `hub`?"]);
/// assert_eq!(errors[1].to_string(), "plan.yaml: replicas: expected a whole number from 1 up, found the number 0");
/// ```
#[derive(Debug)]
pub struct Reader<'a> {
    positions: &'a Positions,
    ignores_blanks: bool,
    errors: RefCell<Vec<InputError>>,
}

impl<'a> Reader<'a> {
    /// A reader of the document with these positions.
    #[must_use]
    pub fn new(positions: &'a Positions) -> Self {
        Self { positions, ignores_blanks: false, errors: RefCell::default() }
    }

    /// Treats null, and an empty string where text is optional, as absent: templates leave values empty.
    #[must_use]
    pub fn ignoring_blanks(self) -> Self {
        Self { ignores_blanks: true, ..self }
    }

    /// The value of the document.
    #[must_use]
    pub fn root(&'a self, value: &'a Value) -> Node<'a> {
        Node { value, path: Vec::new(), reader: self }
    }

    /// The errors, in the order of the text.
    #[must_use]
    pub fn into_errors(self) -> Vec<InputError> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| (error.position.line, error.position.column));
        errors
    }
}

/// A value of the document, with its path.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    value: &'a Value,
    path: Vec<PathSegment>,
    reader: &'a Reader<'a>,
}

impl<'a> Node<'a> {
    /// The value as it is.
    #[must_use]
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Position of the value.
    #[must_use]
    pub fn position(&self) -> Position {
        self.reader.positions.locate(&self.path)
    }

    /// Notes an error at this value; reading continues.
    pub fn note(&self, message: impl AsRef<str>, hints: &[&str]) {
        if self.reader.errors.borrow().len() < MAX_ERRORS {
            let path = display_path(&self.path);
            let separator = if path.is_empty() { "" } else { ": " };
            self.note_at(&self.position(), format!("{path}{separator}{}", message.as_ref()), hints);
        }
    }

    /// Notes an error at another position in the document.
    pub fn note_at(&self, position: &Position, message: String, hints: &[&str]) {
        let mut errors = self.reader.errors.borrow_mut();
        if errors.len() < MAX_ERRORS {
            let hints = hints.iter().map(|&hint| hint.to_owned()).collect();
            errors.push(InputError { message, position: position.clone(), hints });
        }
    }

    /// Notes an error and returns `None`, so that a function can end with it.
    pub fn fail<T>(&self, message: impl AsRef<str>, hints: &[&str]) -> Option<T> {
        self.note(message, hints);
        None
    }

    /// Fails because the value has the wrong type: `expected a list, found the string "a"`.
    pub fn expected<T>(&self, what: &str, hints: &[&str]) -> Option<T> {
        self.fail(format!("expected {what}, found {}", describe(self.value)), hints)
    }

    /// Fails because a string has the wrong form: `expected a duration such as 5m, found "5 minutes"`.
    pub fn malformed<T>(&self, what: &str, hints: &[&str]) -> Option<T> {
        let found = self.value.as_str().map_or_else(|| describe(self.value), quote);
        self.fail(format!("expected {what}, found {found}"), hints)
    }

    fn child(&self, segment: impl Into<PathSegment>, value: &'a Value) -> Self {
        let mut path = self.path.clone();
        path.push(segment.into());
        Self { value, path, reader: self.reader }
    }

    /// A map with no other keys than these.
    #[must_use]
    pub fn fields(&self, keys: &[&str]) -> Fields<'a> {
        let fields = self.any_fields();
        fields.allow(keys, &[]);
        fields
    }

    /// A map whose keys are not checked yet. Any other value is an error, and its missing fields are not.
    #[must_use]
    pub fn any_fields(&self) -> Fields<'a> {
        Fields { node: self.clone(), map: self.map() }
    }

    /// A map with any content.
    #[must_use]
    pub fn map(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object().or_else(|| self.expected("a map", &[]))
    }

    /// The entries of a map with any keys.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'a str, Self)> {
        let map = self.map().into_iter().flatten();
        map.map(|(key, value)| (key.as_str(), self.child(key.as_str(), value))).collect()
    }

    /// A list.
    #[must_use]
    pub fn list(&self) -> Vec<Self> {
        let items = self.value.as_array().or_else(|| self.expected("a list", &[]));
        items.into_iter().flatten().enumerate().map(|(index, item)| self.child(index, item)).collect()
    }

    /// A list with at least one element; `element` names it.
    #[must_use]
    pub fn filled_list(&self, element: &str) -> Vec<Self> {
        let items = self.list();
        if items.is_empty() && self.value.is_array() {
            self.note(format!("expected at least one {element}, found an empty list"), &[]);
        }
        items
    }

    /// A string.
    #[must_use]
    pub fn text(&self) -> Option<&'a str> {
        match self.value {
            Value::String(text) => Some(text),
            // After parsing, `2.10` is indistinguishable from 2.1, and `n` from false.
            Value::Number(number) if !number.is_f64() => {
                self.expected("a string", &[&format!("write it in quotes: \"{number}\"")])
            }
            Value::Bool(_) | Value::Number(_) => self.expected("a string", &["write it in quotes"]),
            _ => self.expected("a string", &[]),
        }
    }

    /// A string that is not blank.
    #[must_use]
    pub fn filled_text(&self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() { self.fail("expected a non-empty string", &[]) } else { Some(text) }
    }

    /// True or false.
    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.expected("true or false", &[]))
    }

    /// One of these words, as what it stands for.
    #[must_use]
    pub fn choice<T: Clone>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.value.as_str().unwrap_or_default();
        choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| choice.clone()).or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let hint = did_you_mean(text, &words).filter(|_| words.len() > 1);
            self.malformed(&or_list(&words), hint.as_deref().as_slice())
        })
    }

    /// A whole number in a range.
    #[must_use]
    pub fn whole_number(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.value.as_u64().filter(|number| range.contains(number)).or_else(|| {
            let (least, most) = range.into_inner();
            let most = if most == u64::MAX { "up".to_owned() } else { format!("to {most}") };
            self.expected(&format!("a whole number from {least} {most}"), &[])
        })
    }

    /// A duration such as `1h30m`.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        duration::parse(self.text()?).or_else(|| self.malformed(duration::EXPECTED, &[]))
    }

    /// A duration that is not 0.
    #[must_use]
    pub fn positive_duration(&self) -> Option<Duration> {
        let duration = self.duration()?;
        if duration.is_zero() { self.malformed("a duration above 0", &[]) } else { Some(duration) }
    }
}

/// A map, read key by key.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    node: Node<'a>,
    map: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    /// The map itself.
    #[must_use]
    pub fn node(&self) -> &Node<'a> {
        &self.node
    }

    /// Reports every key that is neither allowed nor `refused`; what is refused, the caller reports in its own words.
    pub fn allow(&self, keys: &[&str], refused: &[&str]) {
        for (key, node, hint) in self.unknown(keys) {
            if !refused.contains(&key) {
                node.note("unknown key", &[&hint]);
            }
        }
    }

    /// Every key that is not among `keys`, its value, and a hint: the nearest of `keys`, or all of them.
    #[must_use]
    pub fn unknown(&self, keys: &[&str]) -> Vec<(&'a str, Node<'a>, String)> {
        let unknown = self.map.into_iter().flatten().filter(|(key, _)| !keys.contains(&key.as_str()));
        unknown
            .map(|(key, value)| {
                let hint = did_you_mean(key, keys).unwrap_or_else(|| format!("known keys: {}", keys.join(", ")));
                (key.as_str(), self.node.child(key.as_str(), value), hint)
            })
            .collect()
    }

    /// A value that may be absent.
    #[must_use]
    pub fn optional(&self, key: &str) -> Option<Node<'a>> {
        let value = self.map?.get(key)?;
        (!value.is_null() || !self.node.reader.ignores_blanks).then(|| self.node.child(key, value))
    }

    /// A value that must be there.
    #[must_use]
    pub fn required(&self, key: &str) -> Option<Node<'a>> {
        self.required_with(key, "", &[])
    }

    /// A value that must be there; `more` completes the message if it is not.
    #[must_use]
    pub fn required_with(&self, key: &str, more: &str, hints: &[&str]) -> Option<Node<'a>> {
        let value = self.optional(key);
        if value.is_none() && self.map.is_some() {
            self.node.note(format!("missing key `{key}`{more}"), hints);
        }
        value
    }

    /// An optional string that is not blank.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        let node = self.optional(key)?;
        let is_blank = node.value.as_str() == Some("") && node.reader.ignores_blanks;
        if is_blank { None } else { node.filled_text().map(str::to_owned) }
    }

    /// A string that is not blank.
    #[must_use]
    pub fn required_text(&self, key: &str) -> String {
        self.required(key).and_then(|node| node.filled_text()).unwrap_or_default().to_owned()
    }

    /// A boolean that is false if absent.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.optional(key).and_then(|node| node.flag()).unwrap_or_default()
    }

    /// An optional list.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<Node<'a>> {
        self.optional(key).map(|node| node.list()).unwrap_or_default()
    }

    /// A list with at least one element; `element` names it.
    #[must_use]
    pub fn filled_list(&self, key: &str, element: &str) -> Vec<Node<'a>> {
        self.required(key).map(|node| node.filled_list(element)).unwrap_or_default()
    }

    /// Positions of the map, as those of a document of its own.
    #[must_use]
    pub fn own_positions(&self) -> Arc<Positions> {
        Arc::new(self.node.reader.positions.below(&self.node.path))
    }

    /// Positions below a key, as those of a document of its own; that of the map if the key is absent.
    #[must_use]
    pub fn positions(&self, key: &str) -> Arc<Positions> {
        let path = [self.node.path.as_slice(), &[key.into()]].concat();
        Arc::new(self.node.reader.positions.below(&path))
    }
}

fn did_you_mean(word: &str, known: &[&str]) -> Option<String> {
    suggest::nearest(word, known.iter().copied()).map(|known| format!("did you mean `{known}`?"))
}

/// Words that may be written: "`a`, `b` or `c`".
#[must_use]
pub fn or_list(words: &[&str]) -> String {
    let mut words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}

/// Text in quotes, control characters escaped, truncated if long.
#[must_use]
pub fn quote(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// Describes a value for `found …`.
#[must_use]
pub fn describe(value: &Value) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The result of a reading function, and the errors with their hints.
    fn read<T>(value: &Value, read: impl Fn(&Node<'_>) -> T) -> (T, Vec<String>) {
        let positions = Positions::default();
        let reader = Reader::new(&positions);
        let result = read(&reader.root(value));
        let shown = |error: InputError| [vec![error.message], error.hints].concat().join(" | ");
        (result, reader.into_errors().into_iter().map(shown).collect())
    }

    #[test]
    fn a_word_is_one_of_those_that_are_allowed() {
        let level = |value: Value| read(&value, |node| node.choice(&[("low", 1), ("medium", 2), ("high", 3)]));
        let error = |found: &str| (None, vec![format!("expected `low`, `medium` or `high`, found {found}")]);
        assert_eq!(level(json!("medium")), (Some(2), vec![]));
        assert_eq!(level(json!("mediun")), error("\"mediun\" | did you mean `medium`?"));
        assert_eq!(level(json!("")), error("\"\""));
        assert_eq!(level(json!(1)), error("the number 1"));
        let only = read(&json!("v2"), |node| node.choice(&[("v1", ())]));
        assert_eq!(only.1, ["expected `v1`, found \"v2\""]);
    }

    #[test]
    fn numbers_and_durations_have_bounds() {
        let whole = |value: Value| read(&value, |node| node.whole_number(1..=9));
        assert_eq!(whole(json!(9)), (Some(9), vec![]));
        for (value, found) in
            [(json!(10), "the number 10"), (json!(1.5), "the number 1.5"), (json!("1"), "the string \"1\"")]
        {
            assert_eq!(whole(value), (None, vec![format!("expected a whole number from 1 to 9, found {found}")]));
        }
        let time = |value: Value| read(&value, |node| node.positive_duration().map(|duration| duration.as_secs()));
        assert_eq!(time(json!("1m")), (Some(60), vec![]));
        assert_eq!(time(json!("0s")).1, ["expected a duration above 0, found \"0s\""]);
        assert_eq!(time(json!("-1s")).1, ["expected a duration such as 90s, 5m or 1h30m, found \"-1s\""]);
    }

    #[test]
    fn what_is_no_map_lacks_no_key() {
        let (name, errors) = read(&json!(["a"]), |node| node.fields(&["name"]).required_text("name"));
        assert_eq!((name.as_str(), errors), ("", vec!["expected a map, found a list".to_owned()]));
    }

    #[test]
    fn a_blank_is_absent_only_where_it_is_to_be_ignored() {
        let value = json!({"a": "", "b": null});
        let (texts, errors) = read(&value, |node| (node.any_fields().text("a"), node.any_fields().text("b")));
        assert_eq!(texts, (None, None));
        assert_eq!(errors, ["a: expected a non-empty string", "b: expected a string, found nothing"]);
        let positions = Positions::default();
        let reader = Reader::new(&positions).ignoring_blanks();
        let fields = reader.root(&value).any_fields();
        assert_eq!((fields.text("a"), fields.text("b"), fields.required_text("b").as_str()), (None, None, ""));
        let errors: Vec<String> = reader.into_errors().into_iter().map(|error| error.message).collect();
        assert_eq!(errors, ["missing key `b`"]);
    }
}
