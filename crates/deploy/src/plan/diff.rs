//! The difference of two objects, field by field: list items are paired by their keys,
//! so that an inserted container is one change and does not shift all that follow.

mod change;
mod flow;
mod lines;
mod lists;
mod mask;
mod text;

use pushback_app::identity::ORIGINAL_ANNOTATIONS;
use pushback_objects::PathSegment;
use serde_json::Value;

pub use self::change::{DiffSegment, FieldChange};
pub use self::lines::field_lines;
pub use self::mask::Masked;
pub use self::text::text;

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Fields to leave out, including everything below them.
    pub ignored: Vec<Vec<PathSegment>>,
}

impl Default for DiffOptions {
    /// Leaves out the fields that only the server sets, and kapp's copies of the manifest.
    fn default() -> Self {
        let metadata = ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];
        let mut ignored: Vec<Vec<PathSegment>> =
            metadata.iter().map(|&field| vec!["metadata".into(), field.into()]).collect();
        let copies = ORIGINAL_ANNOTATIONS.map(|name| vec!["metadata".into(), "annotations".into(), name.into()]);
        ignored.extend(copies);
        ignored.push(vec!["status".into()]);
        Self { ignored }
    }
}

/// All changes from `old` to `new`, in the order of `new`'s fields; removed fields come last in their map.
#[must_use]
pub fn diff(old: &Value, new: &Value, options: &DiffOptions) -> Vec<FieldChange> {
    let mut comparison = Comparison { options, steps: Vec::new(), changes: Vec::new() };
    comparison.values(old, new);
    comparison.changes
}

/// A step into both objects, borrowed: only a few end in a change, which is then copied.
#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    /// An item's index in the old list and in the new one (its own if it has no partner), and its key fields.
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

struct Comparison<'a, 'v> {
    options: &'a DiffOptions,
    steps: Vec<Step<'v>>,
    changes: Vec<FieldChange>,
}

impl<'v> Comparison<'_, 'v> {
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

    /// Descends one step.
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
