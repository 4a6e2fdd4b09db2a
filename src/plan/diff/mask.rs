//! Takes what must not be shown out of values, before anything is rendered from them.
//! Keys stay, as they tell what changed; every scalar below a masked field goes.

use pushback_preflight::PathSegment;
use serde_json::Value;

use super::Masked;

/// Whether a path or anything above it is masked.
pub(super) fn is_masked(path: &[PathSegment], masked: &Masked<'_>) -> bool {
    (0..=path.len()).any(|length| masked(&path[..length]))
}

/// A copy of `value`, which stands at `path`, in which `replace` has taken the place of every masked scalar.
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

/// How many bytes a masked scalar has; base64 in `data` counts as what it stands for.
pub(super) fn size(value: &Value, path: &[PathSegment]) -> usize {
    let Value::String(text) = value else { return value.to_string().len() };
    let is_data = path.first() == Some(&PathSegment::Key("data".to_owned()));
    let is_base64 = text.len().is_multiple_of(4)
        && text.trim_end_matches('=').bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    if is_data && is_base64 {
        let padding = text.len() - text.trim_end_matches('=').len();
        return (text.len() / 4 * 3).saturating_sub(padding);
    }
    text.len()
}
