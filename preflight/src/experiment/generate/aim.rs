//! Builds a schema with a single change, so that a generated value tests this change and no other: lists and maps are
//! patched as a whole, and may contain many other changes.

use pushback_releases::difference::ChangeType;
use serde_json::{Map, Value, json};

/// Keywords that make fields depend on each other, so that none may be removed.
const ENTANGLING: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "default",
    "minProperties",
    "x-kubernetes-validations",
    "x-kubernetes-embedded-resource",
];

/// A step from a schema to a nested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Property(String),
    Items,
    Additional,
}

/// The steps of a path in a change: `spec.disks[*].size`, `spec.labels{*}`, `data["tls.key"]`. `None` if it is not such
/// a path.
pub(super) fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[*]") {
            steps.push(Step::Items);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{*}") {
            steps.push(Step::Additional);
            rest = after;
        } else if let Some(quoted) = rest.strip_prefix('[') {
            let mut names = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            steps.push(Step::Property(names.next()?.ok()?));
            rest = quoted.get(names.byte_offset()..)?.strip_prefix(']')?;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[', '{']).unwrap_or(name.len());
            steps.push(Step::Property(name.get(..end).filter(|name| !name.is_empty())?.to_owned()));
            rest = &name[end..];
        }
    }
    Some(steps)
}

/// Both schemas of a node, with only the change at the end of the steps in the new one, and without unrelated fields.
/// `None` if a side has no such node.
pub(super) fn one_change(
    before: &Value,
    now: &Value,
    steps: &[Step],
    change_type: ChangeType,
) -> Option<(Value, Value)> {
    changed(before, now, steps, change_type, true)
}

fn changed(
    before: &Value,
    now: &Value,
    steps: &[Step],
    change_type: ChangeType,
    is_plain: bool,
) -> Option<(Value, Value)> {
    let Some((step, rest)) = steps.split_first() else { return Some((before.clone(), now.clone())) };
    let is_plain = is_plain && ENTANGLING.iter().all(|keyword| before.get(keyword).is_none());
    let mut old = before.clone();
    if let Step::Property(name) = step
        && is_plain
    {
        leave_out(&mut old, name);
    }
    let mut new = old.clone();
    match step {
        Step::Property(name) if rest.is_empty() => {
            let after = now.get("properties").and_then(|properties| properties.get(name));
            let properties = map(&mut new, "properties")?;
            match after.filter(|_| change_type != ChangeType::FieldRemoved) {
                Some(schema) => properties.insert(name.clone(), schema.clone()),
                None => properties.shift_remove(name),
            };
            let is_required = change_type == ChangeType::RequiredAdded;
            require(&mut new, name, is_required || (after.is_some() && requires(before, name)));
        }
        Step::Property(name) => {
            let inside = |schema: &Value| schema.get("properties")?.get(name).cloned();
            let (one, other) = changed(&inside(before)?, &inside(now)?, rest, change_type, is_plain)?;
            map(&mut old, "properties")?.insert(name.clone(), one);
            map(&mut new, "properties")?.insert(name.clone(), other);
        }
        Step::Items | Step::Additional => {
            let key = if *step == Step::Items { "items" } else { "additionalProperties" };
            // The keys of a list are fields of its items.
            let is_plain = is_plain && before.get("x-kubernetes-list-map-keys").is_none();
            let (one, other) = changed(before.get(key)?, now.get(key)?, rest, change_type, is_plain)?;
            old.as_object_mut()?.insert(key.to_owned(), one);
            new.as_object_mut()?.insert(key.to_owned(), other);
        }
    }
    Some((old, new))
}

/// Removes optional fields except `but`: a value without them is still valid.
fn leave_out(schema: &mut Value, but: &str) {
    let required: Vec<Value> = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| name == but || required.iter().any(|other| other == name));
    }
}

fn map<'v>(schema: &'v mut Value, key: &str) -> Option<&'v mut Map<String, Value>> {
    schema.as_object_mut()?.entry(key).or_insert_with(|| json!({})).as_object_mut()
}

fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|other| other == name))
}

fn require(schema: &mut Value, name: &str, is_required: bool) {
    let Some(schema) = schema.as_object_mut() else { return };
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(names) = required.as_array_mut() {
        names.retain(|other| other != name);
        if is_required {
            names.push(json!(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(name: &str) -> Step {
        Step::Property(name.to_owned())
    }

    #[test]
    fn paths_are_read_as_they_are_written() {
        for (path, expected) in [
            ("", vec![]),
            ("spec.size", vec![property("spec"), property("size")]),
            ("spec.disks[*].size", vec![property("spec"), property("disks"), Step::Items, property("size")]),
            ("a[*][*]{*}", vec![property("a"), Step::Items, Step::Items, Step::Additional]),
            (r#"data["tls.key"]"#, vec![property("data"), property("tls.key")]),
            (r#"data["a\"]b"].c"#, vec![property("data"), property("a\"]b"), property("c")]),
        ] {
            assert_eq!(steps(path), Some(expected), "{path}");
        }
        for wrong in ["a..b", "a[", "a[1]", "a[\"b", "a.", "{", "a[\"b\""] {
            assert_eq!(steps(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_one_change_is_made_and_what_has_no_part_in_it_is_left_out() {
        let text = json!({"type": "string"});
        let list = |item: Value| json!({"type": "array", "items": item});
        let before = list(json!({"type": "object", "required": ["key"],
            "properties": {"key": text, "gone": text, "size": {"type": "integer"}}}));
        let now = list(json!({"type": "object", "required": ["key", "new"],
            "properties": {"key": text, "size": text, "new": text}}));
        let change = |name: &str, change_type| {
            let steps = [Step::Items, property(name)];
            one_change(&before, &now, &steps, change_type).map(|(old, new)| [old, new].map(|it| it["items"].clone()))
        };
        let item = |required: Value, properties: Value| json!({"type": "object", "required": required, "properties": properties});
        let key = json!(["key"]);
        assert_eq!(
            change("gone", ChangeType::FieldRemoved),
            Some([item(key.clone(), json!({"key": text, "gone": text})), item(key.clone(), json!({"key": text}))])
        );
        let size = |schema: Value| item(key.clone(), json!({"key": text, "size": schema}));
        assert_eq!(
            change("size", ChangeType::TypeChanged),
            Some([size(json!({"type": "integer"})), size(text.clone())])
        );
        let both = json!({"key": text, "new": text});
        assert_eq!(
            change("new", ChangeType::RequiredAdded),
            Some([item(key.clone(), json!({"key": text})), item(json!(["key", "new"]), both)])
        );
        assert_eq!(one_change(&text, &now, &[Step::Items, property("x")], ChangeType::TypeChanged), None);
    }

    #[test]
    fn where_a_rule_can_name_a_field_none_is_left_out() {
        let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "has(self.a)"}],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        let found = one_change(&schema, &schema, &[property("b")], ChangeType::FieldRemoved);
        let (old, new) = found.unwrap();
        assert_eq!(old, schema);
        assert_eq!(new["properties"], json!({"a": {"type": "string"}}));
    }
}
