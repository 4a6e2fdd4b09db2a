//! Paths into a value and their text form: `spec.versions[0].name`, `data["tls.key"]`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step of a path into a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PathSegment {
    /// A key of a map.
    Key(String),
    /// An element of an array.
    Index(usize),
}

impl From<&str> for PathSegment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PathSegment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The value at a path.
#[must_use]
pub fn value_at<'v>(value: &'v Value, path: &[PathSegment]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        PathSegment::Key(key) => value.get(key),
        PathSegment::Index(index) => value.get(index),
    })
}

/// A key as a step of a JSON pointer (RFC 6901).
#[must_use]
pub fn pointer_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Formats a path as findings show it: `spec.versions[0].name`, `data["tls.key"]`.
#[must_use]
pub fn display_path(segments: &[PathSegment]) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            PathSegment::Index(index) => text.push_str(&format!("[{index}]")),
            PathSegment::Key(key) => {
                let plain =
                    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'));
                if !plain {
                    text.push_str(&format!("[{key:?}]"));
                } else if text.is_empty() {
                    text.push_str(key);
                } else {
                    text.push('.');
                    text.push_str(key);
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_with_brackets_where_a_key_is_not_plain() {
        assert_eq!(display_path(&["spec".into(), "a".into(), 0.into(), "b-c".into()]), "spec.a[0].b-c");
        assert_eq!(display_path(&["data".into(), "tls.key".into()]), "data[\"tls.key\"]");
    }
}
