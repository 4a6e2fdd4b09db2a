//! Objects that are too large for the store behind the API server, which no dry-run tells: the server refuses them when they
//! are written, after others have been.

use std::io::{self, Write};

use pushback_objects::object::is_custom_group;
use pushback_objects::{Finding, Verdict};
use pushback_preflight::Verification;
use serde_json::Value;

use super::Planned;
use super::refusal::RULE;

/// The largest request that etcd takes unless it is told otherwise (`--max-request-bytes`).
const LIMIT: usize = 1_572_864;

/// Findings for objects that etcd would refuse.
pub(super) fn check(objects: &[Planned]) -> Vec<Finding> {
    objects.iter().filter_map(one).collect()
}

fn one(planned: &Planned) -> Option<Finding> {
    // What the server refuses by itself, it has told.
    let is_written = planned.operation().applies() && planned.verification != Verification::Refused;
    let after = planned.result.as_deref().or(planned.desired.as_deref()).filter(|_| is_written)?;
    let is_custom = is_custom_group(&planned.object.group);
    let size = stored(after, is_custom);
    // A store that holds such an object already has another limit.
    let fits = size <= LIMIT || planned.live.as_deref().is_some_and(|live| stored(live, is_custom) > LIMIT);
    (!fits).then(|| {
        let least = if is_custom { "" } else { "at least " };
        let message = format!(
            "it takes {least}{size} bytes, and the store of the API server (etcd) takes {LIMIT} unless it is set up otherwise"
        );
        Finding::new(RULE, "too-large", Verdict::Breaking, planned.object.clone(), message)
            .at(planned.locate(&[]))
            .remedy("split the object, or keep its data elsewhere; where the store takes more, --strict=false lets it decide")
    })
}

/// How many bytes an object takes. Custom resources are stored as JSON; other kinds more densely, so that only their texts
/// are certain.
fn stored(object: &Value, is_custom: bool) -> usize {
    if !is_custom {
        return texts(object);
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, object) {
        Ok(()) => counter.0,
        Err(_) => 0,
    }
}

fn texts(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(texts).sum(),
        Value::Array(items) => items.iter().map(texts).sum(),
        // What a Secret holds is stored without its base64, which makes it a third longer.
        Value::String(text) => text.len() / 4 * 3,
        _ => 0,
    }
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_custom_resource_counts_as_json_and_other_kinds_by_their_texts() {
        let object = json!({"a": "xxxx", "b": [1, true, {"c": "yyyyyyyy"}]});
        assert_eq!(stored(&object, true), object.to_string().len());
        assert_eq!(stored(&object, false), 9);
    }
}
