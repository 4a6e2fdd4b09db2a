//! How differences show the branches of combinators: the number of branches, how many of them changed, and what the new
//! ones demand, in short.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::schema::model::Schema;

/// Most branches that are named, and most characters of one.
const BRANCHES: usize = 3;
const BRANCH: usize = 80;
/// How deep the fields of a branch are looked at.
const DEPTH: usize = 4;

/// The branches of `allOf`, `anyOf` or `oneOf`; the single one of `not`.
pub(crate) fn branches_of<'s>(schema: &'s Schema, keyword: &str) -> &'s [Schema] {
    match keyword {
        "allOf" => &schema.all_of,
        "anyOf" => &schema.any_of,
        "oneOf" => &schema.one_of,
        _ => schema.not.as_deref().map_or(&[], std::slice::from_ref),
    }
}

pub(super) fn digests_of(schema: &Schema, keyword: &str) -> Vec<u128> {
    branches_of(schema, keyword).iter().map(|branch| branch.digest).collect()
}

/// The number of branches; `None` if there are none.
pub(super) fn number_of(schema: &Schema, keyword: &str) -> Option<Value> {
    let count = branches_of(schema, keyword).len();
    (count > 0).then(|| format!("{count} branch{}", if count == 1 { "" } else { "es" }).into())
}

/// The number of branches of the new schema, with what the new ones among them say; if the number is unchanged, also how
/// many of them changed.
pub(super) fn after(old: &Schema, new: &Schema, keyword: &str) -> Option<Value> {
    let shown = number_of(new, keyword)?;
    let (before, after) = (digests_of(old, keyword), digests_of(new, keyword));
    if before == after {
        return Some(shown);
    }
    let said = new_branches(old, new, keyword);
    let changed = match said.len() {
        0 if before.len() == after.len() => ", in another order".to_owned(),
        0 => String::new(),
        count if before.len() == after.len() => format!(", {count} of them changed ({})", said_words(&said)),
        count if before.is_empty() || count == after.len() => format!(" ({})", said_words(&said)),
        count => format!(", {count} of them new ({})", said_words(&said)),
    };
    Some(format!("{}{changed}", shown.as_str().unwrap_or_default()).into())
}

/// What the branches say that only the new schema has: `allOf[1]: required ["a"]`.
pub(crate) fn new_branches(old: &Schema, new: &Schema, keyword: &str) -> Vec<String> {
    let known: BTreeSet<u128> = digests_of(old, keyword).into_iter().collect();
    let branches = branches_of(new, keyword);
    let place = |index: usize| if keyword == "not" { keyword.to_owned() } else { format!("{keyword}[{index}]") };
    let fresh = branches.iter().enumerate().filter(|(_, branch)| !known.contains(&branch.digest));
    fresh.map(|(index, branch)| format!("{}: {}", place(index), cut(&said(branch, 0), BRANCH))).collect()
}

/// The first few of them.
fn said_words(said: &[String]) -> String {
    let shown = said.iter().take(BRANCHES).map(String::as_str).collect::<Vec<_>>().join("; ");
    if said.len() > BRANCHES { format!("{shown}; and {} more", said.len() - BRANCHES) } else { shown }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a schema demands, in the words of its keywords; branches within branches are counted.
fn said(schema: &Schema, depth: usize) -> String {
    let mut parts = Vec::new();
    let mut say = |keyword: &str, value: Option<Value>| {
        parts.extend(value.map(|value| format!("{keyword} {value}")));
    };
    let required: Vec<&String> = schema.required.iter().collect();
    say("type", schema.kind.map(|kind| kind.as_str().into()));
    say("format", schema.format.clone().map(Value::from));
    say("required", (!required.is_empty()).then(|| json!(required)));
    say("enum", schema.enumeration.clone().map(Value::from));
    for (limit, bound, exclusive) in
        [(schema.minimum, "minimum", "exclusive minimum"), (schema.maximum, "maximum", "exclusive maximum")]
    {
        say(
            if limit.is_some_and(|limit| limit.exclusive) { exclusive } else { bound },
            limit.map(|it| number(it.value)),
        );
    }
    say("multipleOf", schema.multiple_of.map(number));
    say("pattern", schema.pattern.clone().map(Value::from));
    for (window, least, most) in [
        (schema.length, "minLength", "maxLength"),
        (schema.item_count, "minItems", "maxItems"),
        (schema.property_count, "minProperties", "maxProperties"),
    ] {
        say(least, window.least.map(Value::from));
        say(most, window.most.map(Value::from));
    }
    if schema.unique_items {
        parts.push("uniqueItems".to_owned());
    }
    for keyword in ["allOf", "anyOf", "oneOf", "not"] {
        parts.extend(
            number_of(schema, keyword).map(|count| format!("{keyword} of {}", count.as_str().unwrap_or_default())),
        );
    }
    if depth < DEPTH {
        let fields = schema.properties.iter().map(|(name, field)| (name.to_string(), field));
        let items = schema.items.iter().map(|items| ("items".to_owned(), &**items));
        let free = schema.additional_schema().map(|free| ("additionalProperties".to_owned(), free));
        for (name, below) in fields.chain(items).chain(free) {
            match said(below, depth + 1) {
                // A field without a demand is there for the structure.
                nothing if nothing.is_empty() => {}
                demand => parts.push(format!("{name}: {demand}")),
            }
        }
    }
    parts.join(", ")
}

/// A number as people write it.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: Value, new: Value, keyword: &str) -> String {
        let [old, new] = [old, new].map(|schema| Schema::of(&schema));
        after(&old, &new, keyword).map(|value| value.as_str().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    #[test]
    fn new_branches_say_what_they_demand() {
        let required = |name: &str| json!({"required": [name]});
        let one = json!({"allOf": [required("a")]});
        assert_eq!(shown(json!({}), one.clone(), "allOf"), r#"1 branch (allOf[0]: required ["a"])"#);
        let bound = json!({"properties": {"n": {"minimum": 3}, "free": {}}});
        assert_eq!(
            shown(one.clone(), json!({"allOf": [required("a"), required("b"), bound]}), "allOf"),
            r#"3 branches, 2 of them new (allOf[1]: required ["b"]; allOf[2]: n: minimum 3)"#
        );
        assert_eq!(
            shown(one, json!({"allOf": [{"type": "string", "pattern": "^a", "maxLength": 3}]}), "allOf"),
            r#"1 branch, 1 of them changed (allOf[0]: type "string", pattern "^a", maxLength 3)"#
        );
        let two = json!({"oneOf": [required("a"), required("b")]});
        let turned = json!({"oneOf": [required("b"), required("a")]});
        assert_eq!(shown(two.clone(), turned, "oneOf"), "2 branches, in another order");
        assert_eq!(shown(two.clone(), json!({"oneOf": [required("a")]}), "oneOf"), "1 branch");
        let exclusive = json!({"not": {"maximum": 1.5, "exclusiveMaximum": true, "anyOf": [{}, {}]}});
        assert_eq!(shown(json!({}), exclusive, "not"), "1 branch (not: exclusive maximum 1.5, anyOf of 2 branches)");
        let many: Vec<Value> = (0..9).map(|index| json!({"minimum": index})).collect();
        let text = shown(json!({}), json!({"anyOf": many}), "anyOf");
        assert!(text.ends_with("anyOf[2]: minimum 2; and 6 more)"), "{text}");
        let long = json!({"anyOf": [{"enum": ["é".repeat(500)]}]});
        assert!(shown(json!({}), long, "anyOf").chars().count() < 140);
    }
}
