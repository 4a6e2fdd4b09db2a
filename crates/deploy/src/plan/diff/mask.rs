//! Removes masked values before anything is rendered.
//! Keys stay, because they show what changed; every scalar below a masked field is removed.

use pushback_objects::PathSegment;
use serde_json::Value;

/// Decides which fields are masked. A field is masked with everything below it.
pub type Masked<'a> = dyn Fn(&[PathSegment]) -> bool + 'a;

/// Whether a path or anything above it is masked.
pub(super) fn is_masked(path: &[PathSegment], masked: &Masked<'_>) -> bool {
    (0..=path.len()).any(|length| masked(&path[..length]))
}

/// A copy of `value`, located at `path`, with every masked scalar replaced by `replace`.
pub(super) fn mask(
    value: &Value,
    path: &[PathSegment],
    masked: &Masked<'_>,
    replace: &mut dyn FnMut(&Value) -> Value,
) -> Value {
    let hidden = is_masked(path, masked);
    mask_below(value, &mut path.to_vec(), hidden, masked, replace)
}

fn mask_below(
    value: &Value,
    path: &mut Vec<PathSegment>,
    hidden: bool,
    masked: &Masked<'_>,
    replace: &mut dyn FnMut(&Value) -> Value,
) -> Value {
    let mut below = |segment: PathSegment, child: &Value| {
        path.push(segment);
        let hidden = hidden || masked(path);
        let child = mask_below(child, path, hidden, masked, replace);
        path.pop();
        child
    };
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, child)| (key.clone(), below(PathSegment::Key(key.clone()), child))).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, child)| below(PathSegment::Index(index), child)).collect()
        }
        Value::Null => Value::Null,
        scalar if hidden => replace(scalar),
        scalar => scalar.clone(),
    }
}
