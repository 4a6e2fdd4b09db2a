//! Values of one field to try: those at the edge of what its schema allows, and those next to the constants of the plan.

use pushback_crd::schema::pattern::{Budget, Language, Pattern};
use pushback_crd::schema::pipeline::{Server, format_is_valid};
use pushback_crd::schema::{Schema, Type};
use serde_json::{Map, Value, json};

use super::constants::{Constants, neighbours};

/// Maximum number of values of one field.
const MOST: usize = 40;
/// Length of a long string.
const LONG: usize = 300;
/// Steps for strings that match a pattern.
const STEPS: u64 = 50_000;
/// Deepest value that is made.
const DEPTH: usize = 24;

/// Strings that conversions treat in different ways, among them one for each common format.
const TEXTS: [&str; 27] = [
    "a",
    "",
    "7",
    "b",
    "A",
    " a ",
    "-1",
    "007",
    "1.5",
    "true",
    "null",
    "1Gi",
    "500m",
    "a,b",
    "a:b",
    "a/b",
    "a b",
    "a-b",
    "ä 😀",
    "{\"a\":1}",
    "10s",
    "2024-02-29T10:00:00Z",
    "2024-02-29",
    "127.0.0.1",
    "10.0.0.0/8",
    "https://example.com/a",
    "a@example.com",
];

/// Further strings for fields with a format.
const FORMATTED: [&str; 5] =
    ["::1", "aGVsbG8=", "123e4567-e89b-42d3-a456-426614174000", "00:00:5e:00:53:01", "507f1f77bcf86cd799439011"];

/// Values of a node, the most telling first; `related` are the nodes of other versions that it corresponds to.
pub(super) fn values(schema: &Schema, related: &[&Schema], constants: &Constants) -> Vec<Value> {
    let mut found = Found { schema, values: Vec::new() };
    let nodes = || std::iter::once(schema).chain(related.iter().copied());
    if schema.nullable {
        found.values.push(Value::Null);
    }
    for node in nodes() {
        node.default.iter().chain(node.enumeration.iter().flatten()).for_each(|value| found.add(value.clone()));
    }
    let is = |kind| schema.kind == Some(kind) || (schema.kind.is_none() && schema.int_or_string);
    if is(Type::Integer) || schema.kind == Some(Type::Number) {
        constants.numbers.iter().for_each(|number| found.add(number.clone()));
        nodes().for_each(|node| bounds(node).into_iter().for_each(|number| found.add(number)));
        [0, 1, -1, 7, 65_536, i64::from(i32::MAX), 9_007_199_254_740_993, i64::MAX, i64::MIN]
            .into_iter()
            .for_each(|number| found.add(number.into()));
    }
    if schema.kind == Some(Type::Number) {
        [0.5, -1.5, 1e-9, 1e300].into_iter().for_each(|number| found.add(json!(number)));
    }
    if is(Type::String) {
        constants.texts.iter().for_each(|text| found.add(text.as_str().into()));
        nodes().for_each(|node| of_pattern(node).into_iter().for_each(|text| found.add(text.into())));
        let sizes = nodes().flat_map(sizes).chain(constants.sizes.iter().copied());
        for size in sizes.chain([LONG]).filter(|size| *size <= LONG).collect::<Vec<_>>() {
            found.add("x".repeat(size).into());
        }
        TEXTS.into_iter().for_each(|text| found.add(text.into()));
        if schema.format.is_some() {
            FORMATTED.into_iter().for_each(|text| found.add(text.into()));
        }
    }
    match schema.kind {
        Some(Type::Boolean) => [true, false].into_iter().for_each(|flag| found.add(flag.into())),
        Some(Type::Array) => lists(schema, constants).into_iter().for_each(|list| found.values.push(list)),
        Some(Type::Object) => objects(schema).into_iter().for_each(|object| found.values.push(object)),
        None if !schema.int_or_string => found.values.extend([json!({"any": [1, "a"]}), json!("a"), json!(1)]),
        _ => {}
    }
    found.values
}

/// The values so far.
struct Found<'s> {
    schema: &'s Schema,
    values: Vec<Value>,
}

impl Found<'_> {
    fn add(&mut self, value: Value) {
        if self.values.len() < MOST && !self.values.contains(&value) && fits(self.schema, &value) {
            self.values.push(value);
        }
    }
}

/// Whether a single value has the type and the bounds of its node. Rules and combinations are left to the pipeline.
fn fits(schema: &Schema, value: &Value) -> bool {
    let is_of_type = match (schema.kind, value) {
        (Some(Type::Integer), Value::Number(number)) => {
            !number.is_f64() && (schema.format.as_deref() != Some("int32") || is_int32(value))
        }
        (Some(Type::Number), Value::Number(_))
        | (Some(Type::String), Value::String(_))
        | (Some(Type::Boolean), Value::Bool(_))
        | (Some(Type::Array), Value::Array(_))
        | (Some(Type::Object), Value::Object(_)) => true,
        (None, Value::Number(number)) if schema.int_or_string => !number.is_f64(),
        (None, Value::String(_)) => schema.int_or_string,
        _ => false,
    };
    let listed = schema.enumeration.as_ref().is_none_or(|values| values.contains(value));
    let is_bounded = match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| {
            let above = schema.minimum.is_none_or(|it| number > it.value || (number >= it.value && !it.exclusive));
            let below = schema.maximum.is_none_or(|it| number < it.value || (number <= it.value && !it.exclusive));
            above && below
        }),
        Value::String(text) => is_text_of(schema, text),
        _ => true,
    };
    is_of_type && listed && is_bounded
}

fn is_int32(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

fn is_text_of(schema: &Schema, text: &str) -> bool {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let has_length =
        schema.length.least.is_none_or(|least| length >= least) && schema.length.most.is_none_or(|most| length <= most);
    let has_format =
        schema.format.as_ref().is_none_or(|format| format_is_valid(format, text, Server::default()) != Some(false));
    let pattern = schema.pattern.as_ref().and_then(|pattern| Pattern::shared(pattern).ok());
    has_length && has_format && pattern.is_none_or(|pattern| pattern.is_match(text))
}

fn bounds(schema: &Schema) -> Vec<Value> {
    let limits = [schema.minimum, schema.maximum].into_iter().flatten();
    let values = limits.map(|limit| {
        #[expect(clippy::cast_possible_truncation, reason = "a bound that is whole, far from the edge of the type")]
        let whole = (limit.value.fract() == 0.0 && limit.value.abs() < 1e15).then_some(limit.value as i64);
        whole.map_or_else(|| json!(limit.value), Value::from)
    });
    values.flat_map(|value| neighbours(&value)).collect()
}

fn sizes(schema: &Schema) -> Vec<usize> {
    let window = [schema.length.least, schema.length.most].into_iter().flatten();
    let known = window.filter_map(|size| usize::try_from(size).ok());
    known.flat_map(|size| [size, size.saturating_add(1), size.saturating_sub(1)]).collect()
}

fn of_pattern(schema: &Schema) -> Vec<String> {
    let Some(pattern) = schema.pattern.as_ref().and_then(|pattern| Pattern::shared(pattern).ok()) else {
        return Vec::new();
    };
    let least = schema.length.least.and_then(|least| u64::try_from(least).ok()).unwrap_or_default();
    let most = schema.length.most.and_then(|most| u64::try_from(most).ok());
    let language = Language { matching: vec![&pattern], least, most, ..Language::default() };
    language.examples(6, &mut Budget::new(STEPS))
}

fn lists(schema: &Schema, constants: &Constants) -> Vec<Value> {
    let Some(items) = schema.items.as_deref() else { return vec![json!([])] };
    let (least, one) = (minimal(items, 0), full(items, 0));
    let several = values(items, &[], constants).into_iter().filter(|value| !value.is_null()).take(3);
    let mut lists = vec![json!([]), json!([one]), json!([least]), several.collect()];
    let counts = [schema.item_count.least, schema.item_count.most].into_iter().flatten();
    let counts = counts.filter_map(|count| usize::try_from(count).ok()).filter(|count| *count <= 16);
    lists.extend(counts.map(|count| Value::Array(vec![minimal(items, 0); count])));
    lists
}

fn objects(schema: &Schema) -> Vec<Value> {
    let mut objects = vec![json!({}), minimal(schema, 0), full(schema, 0)];
    if let Some(values) = schema.additional_schema() {
        let value = full(values, 0);
        objects.push(json!({"a": value, "b.example.com/c": value}));
    }
    if schema.preserve_unknown {
        objects.push(json!({"unknown": {"a": [1, "a"]}}));
    }
    objects
}

/// The first value of a single field, which is valid if its schema can be met easily.
fn first(schema: &Schema) -> Value {
    let found = values(schema, &[], &Constants::default());
    found.iter().find(|value| !value.is_null()).or(found.first()).cloned().unwrap_or(Value::Null)
}

/// An object with the required fields alone.
pub(super) fn minimal(schema: &Schema, depth: usize) -> Value {
    match schema.kind {
        _ if depth > DEPTH => Value::Null,
        Some(Type::Object) => {
            let required = schema.required.iter().filter_map(|name| Some((name, schema.properties.get(name)?)));
            Value::Object(required.map(|(name, field)| (name.clone(), minimal(field, depth + 1))).collect())
        }
        Some(Type::Array) => {
            let count = schema.item_count.least.and_then(|least| usize::try_from(least).ok()).unwrap_or_default();
            let item = schema.items.as_deref().map(|items| minimal(items, depth + 1));
            Value::Array(item.into_iter().flat_map(|item| vec![item; count.min(16)]).collect())
        }
        _ => first(schema),
    }
}

/// An object with a value in every field.
pub(super) fn full(schema: &Schema, depth: usize) -> Value {
    match schema.kind {
        _ if depth > DEPTH => Value::Null,
        Some(Type::Object) => {
            let mut map: Map<String, Value> =
                schema.properties.iter().map(|(name, field)| (name.clone(), full(field, depth + 1))).collect();
            if let Some(values) = schema.additional_schema() {
                map.insert("key".to_owned(), full(values, depth + 1));
            }
            Value::Object(map)
        }
        Some(Type::Array) => schema.items.iter().map(|items| full(items, depth + 1)).collect(),
        _ => first(schema),
    }
}
