//! One change of a field, and its path as it is shown.
//! A path is shown without what names an item, where that is masked.

use pushback_preflight::PathSegment;
use pushback_preflight::source::display_path;
use serde_json::Value;

use super::mask::{Masked, is_masked};

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
