//! Reads `status.conditions` and describes them. Server messages become one line here; they are shortened and escaped where
//! they are printed.

use pushback_objects::ObjectExt;
use serde_json::Value;

/// One condition; missing fields are empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) observed_generation: Option<i64>,
}

impl<'a> Condition<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        Self {
            kind: value.text("/type"),
            status: value.text("/status"),
            reason: value.text("/reason"),
            message: value.text("/message"),
            observed_generation: value.get("observedGeneration").and_then(Value::as_i64),
        }
    }

    pub(super) fn is(&self, status: &str) -> bool {
        self.status == status
    }
}

pub(super) fn all(object: &Value) -> impl Iterator<Item = Condition<'_>> {
    list(object, "/status/conditions").iter().map(Condition::of)
}

pub(super) fn find<'a>(object: &'a Value, kind: &str) -> Option<Condition<'a>> {
    all(object).find(|condition| condition.kind == kind)
}

pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition.is("True"))
}

/// The list at a pointer; empty for anything else.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `Ready is False (ImagePullBackOff: cannot pull)`.
pub(super) fn describe(condition: &Condition<'_>) -> String {
    let detail = detail(condition);
    let detail = if detail.is_empty() { detail } else { format!(" ({detail})") };
    format!("{} is {}{detail}", condition.kind, condition.status)
}

/// `ImagePullBackOff: cannot pull`; either part may be missing.
pub(super) fn detail(condition: &Condition<'_>) -> String {
    let parts = [condition.reason.to_owned(), one_line(condition.message)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// One line without the user part of any URL: servers repeat what they were given.
pub(super) fn one_line(message: &str) -> String {
    message.split_whitespace().map(without_credentials).collect::<Vec<_>>().join(" ")
}

fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let authority_end = rest.find(['/', '?', '#', '"']).unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => word.to_owned(),
    }
}
