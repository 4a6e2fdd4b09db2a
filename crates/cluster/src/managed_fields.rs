//! The fields that a manager owns: the sets that the API server keeps in `metadata.managedFields[].fieldsV1`.
//! Parsed into a tree, combined as sets, and serialised in one canonical form.

mod foreign;
mod owners;
mod resolve;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

pub use foreign::{ForeignField, foreign_fields, is_of_control_plane};
pub use owners::{ManagerEntry, Owner, managers, owners_of};
pub use resolve::element_matches;
pub use resolve::{project, project_without_keys, resolve, selects};

/// The subresource under which controllers write.
pub const STATUS: &str = "status";

/// Maximum nesting of a set. Kubernetes objects stay far below it; deeper ones would only exhaust the stack.
const MAX_DEPTH: usize = 200;

/// One step of a path in a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// `f:name`: a field of a map.
    Field(String),
    /// `k:{"name":"web"}`: the item of a list that has these fields. Sorted by name, values as canonical JSON.
    Key(Vec<(String, String)>),
    /// `v:"text"`: the item of a list of scalars that equals this. Canonical JSON.
    Value(String),
    /// `i:0`: the item of a list at an index.
    Index(usize),
}

impl Element {
    /// The element for a field.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// Returns the name of a field; `None` for a list item.
    #[must_use]
    pub fn name(&self) -> Option<&String> {
        match self {
            Self::Field(name) => Some(name),
            Self::Key(_) | Self::Value(_) | Self::Index(_) => None,
        }
    }

    /// The element for the list item with these key fields.
    #[must_use]
    pub fn key(fields: &Map<String, Value>) -> Self {
        let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), canonical(value))).collect();
        fields.sort_unstable();
        Self::Key(fields)
    }

    /// The element for the list item that equals this value.
    #[must_use]
    pub fn value(value: &Value) -> Self {
        Self::Value(canonical(value))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let Some((prefix, rest)) = text.split_once(':') else {
            return Err(format!("expected a step such as 'f:name', found {text:?}"));
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| format!("step {text:?}: {error}"));
        match prefix {
            "f" => Ok(Self::field(rest)),
            "k" => match json()? {
                Value::Object(fields) => Ok(Self::key(&fields)),
                _ => Err(format!("step {text:?}: expected a map of key fields")),
            },
            "v" => Ok(Self::value(&json()?)),
            "i" => rest.parse().map(Self::Index).map_err(|_| format!("step {text:?}: expected an index")),
            _ => Err(format!("step {text:?}: unknown prefix {prefix:?}, expected one of f, k, v, i")),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, "f:{name}"),
            Self::Key(fields) => {
                f.write_str("k:{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{}:{value}", Value::String(name.clone()))?;
                }
                f.write_str("}")
            }
            Self::Value(value) => write!(f, "v:{value}"),
            Self::Index(index) => write!(f, "i:{index}"),
        }
    }
}

/// A set of field paths. Equal sets are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSet {
    /// Whether the path to this node is itself in the set.
    member: bool,
    children: BTreeMap<Element, FieldSet>,
}

/// An invalid set: the place and the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct FieldsError {
    /// Path, such as `metadata.managedFields[2].fieldsV1`.
    pub place: String,
    /// Message, a lower-case fragment.
    pub message: String,
}

impl FieldSet {
    /// Parses the value of `fieldsV1`.
    ///
    /// # Errors
    /// The first invalid step, with the path to it.
    pub fn parse(value: &Value) -> Result<Self, FieldsError> {
        let mut path = Vec::new();
        let mut set = Self::parse_node(value, &mut path)?;
        // The object as a whole has no owner; the server also ignores a dot at the top.
        set.member = false;
        Ok(set)
    }

    fn parse_node<'a>(value: &'a Value, path: &mut Vec<&'a str>) -> Result<Self, FieldsError> {
        let error = |path: &[&str], message: String| {
            let place = if path.is_empty() { "fieldsV1".to_owned() } else { format!("fieldsV1 at {}", path.join(" ")) };
            FieldsError { place, message }
        };
        let Value::Object(map) = value else { return Err(error(path, "expected a map".to_owned())) };
        if path.len() > MAX_DEPTH {
            return Err(error(&[], format!("nested deeper than {MAX_DEPTH} steps")));
        }
        let mut set = Self { member: map.is_empty(), children: BTreeMap::new() };
        for (step, child) in map {
            if step == "." {
                set.member = true;
                continue;
            }
            let element = Element::parse(step).map_err(|message| error(path, message))?;
            path.push(step);
            let child = Self::parse_node(child, path)?;
            path.pop();
            // Two spellings of one key are equal.
            let merged = match set.children.remove(&element) {
                Some(known) => known.union(&child),
                None => child,
            };
            if !merged.is_empty() {
                set.children.insert(element, merged);
            }
        }
        Ok(set)
    }

    /// Serialises the set in the format of `fieldsV1`, steps sorted.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.children.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            map.insert(element.to_string(), child.to_value());
        }
        Value::Object(map)
    }

    /// Whether the set contains no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Adds a path.
    pub fn insert(&mut self, path: &[Element]) {
        let mut node = self;
        for element in path {
            node = node.children.entry(element.clone()).or_default();
        }
        node.member = true;
    }

    /// Whether exactly this path is in the set.
    #[must_use]
    pub fn contains(&self, path: &[Element]) -> bool {
        path.iter().try_fold(self, |node, element| node.children.get(element)).is_some_and(|node| node.member)
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut children = self.children.clone();
        for (element, theirs) in &other.children {
            let merged = match children.get(element) {
                Some(own) => own.union(theirs),
                None => theirs.clone(),
            };
            children.insert(element.clone(), merged);
        }
        Self { member: self.member || other.member, children }
    }

    /// The paths of this set that the other lacks.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, own)| {
            let left = match other.children.get(element) {
                Some(theirs) => own.difference(theirs),
                None => own.clone(),
            };
            (!left.is_empty()).then(|| (element.clone(), left))
        });
        Self { member: self.member && !other.member, children: children.collect() }
    }

    /// The intersection of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, own)| {
            let common = own.intersection(other.children.get(element)?);
            (!common.is_empty()).then(|| (element.clone(), common))
        });
        Self { member: self.member && other.member, children: children.collect() }
    }

    /// The set without a path and everything below it.
    #[must_use]
    pub fn without(&self, path: &[Element]) -> Self {
        let Some((first, rest)) = path.split_first() else { return Self::default() };
        let mut set = self.clone();
        if let Some(child) = set.children.remove(first) {
            let left = child.without(rest);
            if !left.is_empty() {
                set.children.insert(first.clone(), left);
            }
        }
        set
    }

    /// The part of the set at a path and below it.
    #[must_use]
    pub fn only(&self, path: &[Element]) -> Self {
        let Some((first, rest)) = path.split_first() else { return self.clone() };
        let mut set = Self::default();
        if let Some(child) = self.children.get(first) {
            let part = child.only(rest);
            if !part.is_empty() {
                set.children.insert(first.clone(), part);
            }
        }
        set
    }

    /// Whether the path to this node is itself in the set.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.member
    }

    /// Whether the path to this node is in the set, and no path below it.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        self.member && self.children.is_empty()
    }

    /// The next steps after this node, sorted, each with its subtree.
    pub fn children(&self) -> impl Iterator<Item = (&Element, &Self)> {
        self.children.iter()
    }

    /// The subtree below a path, as a set of its own.
    #[must_use]
    pub fn below(&self, path: &[Element]) -> Option<&Self> {
        path.iter().try_fold(self, |node, element| node.children.get(element))
    }

    /// All paths of the set, sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<Element>> {
        self.collect_paths(false)
    }

    /// The paths that have no other path of the set below them, sorted.
    #[must_use]
    pub fn leaves(&self) -> Vec<Vec<Element>> {
        self.collect_paths(true)
    }

    /// The topmost paths that an object loses when the owner of this set only keeps `kept`: what the API server prunes
    /// after an apply. A list item is removed with everything in it unless `kept` has the item itself; a map field
    /// stays as long as `kept` has anything below it.
    #[must_use]
    pub fn lost(&self, kept: &Self) -> Vec<Vec<Element>> {
        fn walk(own: &FieldSet, kept: &FieldSet, path: &mut Vec<Element>, lost: &mut Vec<Vec<Element>>) {
            let nothing = FieldSet::default();
            for (element, child) in &own.children {
                path.push(element.clone());
                let kept = kept.children.get(element);
                let goes = match element {
                    Element::Field(_) => kept.is_none(),
                    // If only part of an item is owned, the owner cannot remove the item.
                    Element::Key(_) | Element::Value(_) | Element::Index(_) => {
                        child.member && !kept.is_some_and(|kept| kept.member)
                    }
                };
                if goes {
                    lost.push(path.clone());
                } else {
                    walk(child, kept.unwrap_or(&nothing), path, lost);
                }
                path.pop();
            }
        }
        let mut lost = Vec::new();
        walk(self, kept, &mut Vec::new(), &mut lost);
        lost
    }

    fn collect_paths(&self, only_leaves: bool) -> Vec<Vec<Element>> {
        fn walk(node: &FieldSet, only_leaves: bool, path: &mut Vec<Element>, found: &mut Vec<Vec<Element>>) {
            if node.member && (!only_leaves || node.children.is_empty()) {
                found.push(path.clone());
            }
            for (element, child) in &node.children {
                path.push(element.clone());
                walk(child, only_leaves, path, found);
                path.pop();
            }
        }
        let mut found = Vec::new();
        walk(self, only_leaves, &mut Vec::new(), &mut found);
        found
    }
}

/// Compact JSON with sorted keys: equal values have equal text.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests;
