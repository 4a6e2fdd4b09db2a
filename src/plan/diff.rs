//! The difference of two objects, field by field: list items are matched by what names them,
//! so that an inserted container is one change and not a shift of all that follow.

mod lines;
mod lists;
mod mask;
mod text;

use pushback_preflight::PathSegment;
use pushback_preflight::source::display_path;
use serde_json::Value;

pub use lines::field_lines;
pub use text::text;

/// Tells which fields must not be shown. A field is hidden with all that is in it.
pub type Masked<'a> = dyn Fn(&[PathSegment]) -> bool + 'a;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Fields that are left out, with all that is in them.
    pub ignored: Vec<Vec<PathSegment>>,
}

impl Default for DiffOptions {
    /// Leaves out what only the server writes.
    fn default() -> Self {
        let metadata = ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];
        let mut ignored: Vec<Vec<PathSegment>> =
            metadata.iter().map(|&field| vec!["metadata".into(), field.into()]).collect();
        ignored.push(vec!["status".into()]);
        Self { ignored }
    }
}

/// One step of a change's path, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffSegment {
    /// A key of a map.
    Key(String),
    /// An element of an array.
    Index(usize),
    /// An element of an array, found by what names it.
    Item {
        /// Where it is in the new array, or in the old one where it goes.
        index: usize,
        /// Field and value that name it.
        names: Vec<(&'static str, String)>,
    },
    /// The order of an array's items, not the items.
    Order,
}

/// One change. A subtree that comes or goes is one change.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Path in the new object; in the old one where the field goes.
    pub path: Vec<PathSegment>,
    /// Path in the old object; it differs from `path` where list items have moved.
    pub old_path: Vec<PathSegment>,
    /// The path as it is shown.
    pub segments: Vec<DiffSegment>,
    /// Before; `None` where the field is new.
    pub old: Option<Value>,
    /// After; `None` where the field goes.
    pub new: Option<Value>,
}

impl FieldChange {
    /// The path as it is shown, `spec.containers[name=web].image`. What names an item is shown by its index where
    /// it is masked.
    #[must_use]
    pub fn display(&self, masked: &Masked<'_>) -> String {
        let mut text = String::new();
        let mut plain: Vec<PathSegment> = Vec::new();
        let flush = |plain: &mut Vec<PathSegment>, text: &mut String| {
            let part = display_path(plain);
            if !text.is_empty() && !part.is_empty() && !part.starts_with('[') {
                text.push('.');
            }
            text.push_str(&part);
            plain.clear();
        };
        for (depth, segment) in self.segments.iter().enumerate() {
            match segment {
                DiffSegment::Key(key) => plain.push(PathSegment::Key(key.clone())),
                DiffSegment::Index(index) => plain.push(PathSegment::Index(*index)),
                DiffSegment::Item { index, names } => {
                    let hidden = |path: &[PathSegment], field: &str| {
                        let mut path = path[..path.len().min(depth + 1)].to_vec();
                        path.push(field.into());
                        mask::is_masked(&path, masked)
                    };
                    if names.iter().any(|(field, _)| hidden(&self.path, field) || hidden(&self.old_path, field)) {
                        plain.push(PathSegment::Index(*index));
                        continue;
                    }
                    flush(&mut plain, &mut text);
                    let names: Vec<String> = names.iter().map(|(field, value)| format!("{field}={value}")).collect();
                    text.push_str(&format!("[{}]", names.join(",")));
                }
                DiffSegment::Order => {
                    flush(&mut plain, &mut text);
                    text.push_str(" (order)");
                }
            }
        }
        flush(&mut plain, &mut text);
        text
    }
}

/// All changes from `old` to `new`, in the order of `new`'s fields, removed fields after the others of their map.
#[must_use]
pub fn diff(old: &Value, new: &Value, options: &DiffOptions) -> Vec<FieldChange> {
    let mut walk = Walk { options, old_path: Vec::new(), path: Vec::new(), segments: Vec::new(), changes: Vec::new() };
    walk.values(old, new);
    walk.changes
}

struct Walk<'a> {
    options: &'a DiffOptions,
    old_path: Vec<PathSegment>,
    path: Vec<PathSegment>,
    segments: Vec<DiffSegment>,
    changes: Vec<FieldChange>,
}

impl Walk<'_> {
    fn change(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.changes.push(FieldChange {
            path: self.path.clone(),
            old_path: self.old_path.clone(),
            segments: self.segments.clone(),
            old: old.cloned(),
            new: new.cloned(),
        });
    }

    fn is_ignored(&self) -> bool {
        self.options.ignored.contains(&self.path)
    }

    /// Does something one step further down.
    fn step(&mut self, old: PathSegment, new: PathSegment, segment: DiffSegment, visit: impl FnOnce(&mut Self)) {
        self.old_path.push(old);
        self.path.push(new);
        self.segments.push(segment);
        if !self.is_ignored() {
            visit(self);
        }
        self.old_path.pop();
        self.path.pop();
        self.segments.pop();
    }

    fn values(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Object(old_map), Value::Object(new_map)) => {
                let step_key = |walk: &mut Self, key: &String, old: Option<&Value>, new: Option<&Value>| {
                    let segment = PathSegment::Key(key.clone());
                    walk.step(segment.clone(), segment, DiffSegment::Key(key.clone()), |walk| match (old, new) {
                        (Some(old), Some(new)) => walk.values(old, new),
                        _ => walk.change(old, new),
                    });
                };
                for (key, value) in new_map {
                    step_key(self, key, old_map.get(key), Some(value));
                }
                for (key, value) in old_map.iter().filter(|(key, _)| !new_map.contains_key(*key)) {
                    step_key(self, key, Some(value), None);
                }
            }
            (Value::Array(old_items), Value::Array(new_items)) => self.lists(old_items, new_items),
            _ if old == new => {}
            _ => self.change(Some(old), Some(new)),
        }
    }

    fn lists(&mut self, old: &[Value], new: &[Value]) {
        let field = self.path.iter().rev().find_map(|segment| match segment {
            PathSegment::Key(key) => Some(key.as_str()),
            PathSegment::Index(_) => None,
        });
        let pairing = lists::pair(field.unwrap_or_default(), old, new);
        for pair in &pairing.pairs {
            let (old_index, new_index) = (pair.old, pair.new);
            let Some(index) = new_index.or(old_index) else { continue };
            let segment = match &pairing.keys {
                Some(keys) => {
                    let item = new_index.map_or_else(|| &old[index], |new_index| &new[new_index]);
                    DiffSegment::Item { index, names: lists::names(keys, item) }
                }
                None => DiffSegment::Index(index),
            };
            let old_segment = PathSegment::Index(old_index.unwrap_or(index));
            self.step(old_segment, PathSegment::Index(index), segment, |walk| {
                match (old_index.map(|index| &old[index]), new_index.map(|index| &new[index])) {
                    (Some(old), Some(new)) => walk.values(old, new),
                    (old, new) => walk.change(old, new),
                }
            });
        }
        if pairing.is_reordered
            && let Some(keys) = &pairing.keys
        {
            self.segments.push(DiffSegment::Order);
            self.change(Some(&lists::only_keys(keys, old)), Some(&lists::only_keys(keys, new)));
            self.segments.pop();
        }
    }
}

#[cfg(test)]
mod tests;
