//! One change of a field, and its displayed path.
//! Masked key fields are left out of the path.

use pushback_objects::PathSegment;
use pushback_objects::source::display_path;
use serde_json::Value;

use super::mask::{Masked, is_masked};

/// One step of a displayed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffSegment {
    /// A key of a map.
    Key(String),
    /// An element of an array.
    Index(usize),
    /// An element of an array, identified by its key fields.
    Item {
        /// Index in the new array; in the old one if the item is removed.
        index: usize,
        /// Names and values of the key fields.
        names: Vec<(&'static str, String)>,
    },
    /// The order of an array's items, not the items.
    Order,
}

/// One change. A subtree that is added or removed is one change.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Path in the new object; in the old one if the field is removed.
    pub path: Vec<PathSegment>,
    /// Path in the old object; it differs from `path` where list items have moved.
    pub old_path: Vec<PathSegment>,
    /// The path for display.
    pub segments: Vec<DiffSegment>,
    /// Old value; `None` if the field is new.
    pub old: Option<Value>,
    /// New value; `None` if the field is removed.
    pub new: Option<Value>,
}

impl FieldChange {
    /// The path for display, `spec.containers[name=web].image`. Items with masked keys are shown by index.
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
                        is_masked(&path, masked)
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
