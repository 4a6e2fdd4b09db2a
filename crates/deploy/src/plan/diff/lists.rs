//! Pairs the items of two lists: by key fields if every item has them and they are unique, otherwise by the longest
//! common subsequence of equal items.

use std::collections::HashMap;

use pushback_cluster::managed_fields::canonical;
use serde_json::{Map, Value};
use similar::DiffOp;

use super::flow::plain_or_quoted;
use crate::edits::{Anchors, ranges};

/// Key fields of list items in Kubernetes objects, the most specific first.
const KEYS: &[&[&str]] = &[
    &["mountPath"],
    &["devicePath"],
    &["name"],
    &["key"],
    &["topologyKey", "whenUnsatisfiable"],
    &["type"],
    &["ip"],
    &["id"],
];

/// Ports may have names, but their numbers identify them.
const PORT_KEYS: &[&[&str]] = &[&["containerPort", "protocol"], &["port", "protocol"], &["name"]];

/// An item of each list; `None` if one has no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) old: Option<usize>,
    pub(super) new: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Pairing {
    /// The key fields of the items; `None` if they have none.
    pub(super) keys: Option<&'static [&'static str]>,
    /// In the order of the new list, removed items last.
    pub(super) pairs: Vec<Pair>,
    /// Whether items that both lists have are in a different order.
    pub(super) is_reordered: bool,
}

pub(super) fn pair(field: &str, old: &[Value], new: &[Value]) -> Pairing {
    let candidates = if field == "ports" { PORT_KEYS } else { KEYS };
    let named = candidates.iter().find_map(|keys| Some((*keys, index_by(keys, old)?, index_by(keys, new)?)));
    let Some((keys, old_index, new_index)) = named else { return pair_by_content(old, new) };
    let mut pairs = Vec::with_capacity(new.len());
    let mut last = None;
    let mut is_reordered = false;
    for (index, item) in new.iter().enumerate() {
        let partner = key(keys, item).and_then(|key| old_index.get(&key).copied());
        if partner.is_some() {
            is_reordered |= partner < last;
            last = partner;
        }
        pairs.push(Pair { old: partner, new: Some(index) });
    }
    for (index, item) in old.iter().enumerate() {
        if key(keys, item).is_none_or(|key| !new_index.contains_key(&key)) {
            pairs.push(Pair { old: Some(index), new: None });
        }
    }
    Pairing { keys: Some(keys), pairs, is_reordered }
}

/// The key fields of an item, with their values.
pub(super) fn names(keys: &'static [&'static str], item: &Value) -> Vec<(&'static str, String)> {
    keys.iter()
        .filter_map(|&field| Some((field, item.get(field)?)))
        .map(|(field, value)| (field, plain(value)))
        .collect()
}

/// The list reduced to the key fields of its items.
pub(super) fn only_keys(keys: &[&str], items: &[Value]) -> Value {
    let only = |item: &Value| -> Value {
        let fields: Map<String, Value> =
            keys.iter().filter_map(|&field| Some((field.to_owned(), item.get(field)?.clone()))).collect();
        Value::Object(fields)
    };
    Value::Array(items.iter().map(only).collect())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => plain_or_quoted(text),
        other => other.to_string(),
    }
}

/// The values of an item's key fields. The first field is required; the others (`protocol`) have defaults.
fn key(keys: &[&str], item: &Value) -> Option<Vec<String>> {
    let mut values = Vec::with_capacity(keys.len());
    for (position, field) in keys.iter().enumerate() {
        match item.as_object()?.get(*field) {
            None if position > 0 => values.push(String::new()),
            Some(value @ (Value::String(_) | Value::Number(_))) => values.push(value.to_string()),
            _ => return None,
        }
    }
    Some(values)
}

fn index_by(keys: &[&str], items: &[Value]) -> Option<HashMap<Vec<String>, usize>> {
    let mut index = HashMap::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        if index.insert(key(keys, item)?, position).is_some() {
            return None;
        }
    }
    Some(index)
}

fn pair_by_content(old: &[Value], new: &[Value]) -> Pairing {
    let old_texts: Vec<String> = old.iter().map(canonical).collect();
    let new_texts: Vec<String> = new.iter().map(canonical).collect();
    let mut pairs = Vec::new();
    let mut removed = Vec::new();
    let [old_texts, new_texts] =
        [&old_texts, &new_texts].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
    for operation in ranges(&old_texts, &new_texts, Anchors::None) {
        let (old_range, new_range) = (operation.old_range(), operation.new_range());
        let common = match operation {
            DiffOp::Equal { .. } => continue,
            DiffOp::Replace { .. } => old_range.len().min(new_range.len()),
            _ => 0,
        };
        let partners = old_range.clone().zip(new_range.clone()).take(common);
        pairs.extend(partners.map(|(old, new)| Pair { old: Some(old), new: Some(new) }));
        pairs.extend(new_range.skip(common).map(|new| Pair { old: None, new: Some(new) }));
        removed.extend(old_range.skip(common).map(|old| Pair { old: Some(old), new: None }));
    }
    pairs.extend(removed);
    Pairing { keys: None, pairs, is_reordered: false }
}
