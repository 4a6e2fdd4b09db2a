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
    let mut walk = Walk { options, steps: Vec::new(), changes: Vec::new() };
    walk.values(old, new);
    walk.changes
}

/// A step into both objects, borrowed from them: few of them end in a change, which is written out.
#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    /// An item's place in the old list and in the new one, its own where it has no partner; with the fields that name
    /// it.
    Item {
        old: usize,
        new: usize,
        named: Option<(&'static [&'static str], &'v Value)>,
    },
}

impl Step<'_> {
    fn segment(self) -> PathSegment {
        match self {
            Self::Key(key) => key.into(),
            Self::Item { new, .. } => new.into(),
        }
    }

    fn old_segment(self) -> PathSegment {
        match self {
            Self::Key(key) => key.into(),
            Self::Item { old, .. } => old.into(),
        }
    }

    fn shown(self) -> DiffSegment {
        match self {
            Self::Key(key) => DiffSegment::Key(key.to_owned()),
            Self::Item { new, named: None, .. } => DiffSegment::Index(new),
            Self::Item { new, named: Some((keys, item)), .. } => {
                DiffSegment::Item { index: new, names: lists::names(keys, item) }
            }
        }
    }

    fn is(self, segment: &PathSegment) -> bool {
        match (self, segment) {
            (Self::Key(key), PathSegment::Key(other)) => key == other,
            (Self::Item { new, .. }, PathSegment::Index(other)) => new == *other,
            _ => false,
        }
    }
}

struct Walk<'a, 'v> {
    options: &'a DiffOptions,
    steps: Vec<Step<'v>>,
    changes: Vec<FieldChange>,
}

impl<'v> Walk<'_, 'v> {
    fn change(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.changes.push(FieldChange {
            path: self.steps.iter().map(|step| step.segment()).collect(),
            old_path: self.steps.iter().map(|step| step.old_segment()).collect(),
            segments: self.steps.iter().map(|step| step.shown()).collect(),
            old: old.cloned(),
            new: new.cloned(),
        });
    }

    fn is_ignored(&self) -> bool {
        let is_here = |path: &Vec<PathSegment>| {
            path.len() == self.steps.len() && self.steps.iter().zip(path).all(|(step, segment)| step.is(segment))
        };
        self.options.ignored.iter().any(is_here)
    }

    /// One step further down.
    fn step(&mut self, step: Step<'v>, old: Option<&'v Value>, new: Option<&'v Value>) {
        self.steps.push(step);
        if !self.is_ignored() {
            match (old, new) {
                (Some(old), Some(new)) => self.values(old, new),
                (old, new) => self.change(old, new),
            }
        }
        self.steps.pop();
    }

    fn values(&mut self, old: &'v Value, new: &'v Value) {
        match (old, new) {
            (Value::Object(old_map), Value::Object(new_map)) => {
                for (key, value) in new_map {
                    self.step(Step::Key(key), old_map.get(key), Some(value));
                }
                for (key, value) in old_map.iter().filter(|(key, _)| !new_map.contains_key(*key)) {
                    self.step(Step::Key(key), Some(value), None);
                }
            }
            _ if old == new => {}
            (Value::Array(old_items), Value::Array(new_items)) => self.lists(old_items, new_items),
            _ => self.change(Some(old), Some(new)),
        }
    }

    fn lists(&mut self, old: &'v [Value], new: &'v [Value]) {
        let field = self.steps.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(*key),
            Step::Item { .. } => None,
        });
        let pairing = lists::pair(field.unwrap_or_default(), old, new);
        for pair in &pairing.pairs {
            let Some(index) = pair.new.or(pair.old) else { continue };
            let (before, after) = (pair.old.map(|index| &old[index]), pair.new.map(|index| &new[index]));
            let named = pairing.keys.and_then(|keys| Some((keys, after.or(before)?)));
            self.step(Step::Item { old: pair.old.unwrap_or(index), new: index, named }, before, after);
        }
        if pairing.is_reordered
            && let Some(keys) = &pairing.keys
        {
            self.change(Some(&lists::only_keys(keys, old)), Some(&lists::only_keys(keys, new)));
            if let Some(order) = self.changes.last_mut() {
                order.segments.push(DiffSegment::Order);
            }
        }
    }
}

#[cfg(test)]
mod tests;
