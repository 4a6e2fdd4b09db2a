//! Random pairs of schemas and random objects: what is called safe must let every accepted object through unharmed.
//! `PUSHBACK_ROUNDS` sets the number of pairs, `PUSHBACK_SEED` where they start.

use serde_json::{Map, Value, json};

use super::{Proof, compare, suffering};
use crate::schema::invalid::problems;
use crate::schema::model::Schema;
use crate::schema::pipeline::{Server, create};
use crate::schema::testing::{Generator, resource};

/// Objects that are tried on each pair.
const OBJECTS: usize = 24;

pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The keywords that a small edit picks from.
const TAKEN: [&str; 24] = [
    "nullable",
    "default",
    "enum",
    "minimum",
    "maximum",
    "multipleOf",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "exclusiveMinimum",
    "x-kubernetes-validations",
];

/// Changes one place of a schema a little, or exchanges it.
pub(crate) fn edit(generator: &mut Generator, schema: &mut Value, depth: usize) {
    let Some(map) = schema.as_object_mut() else { return };
    // Mostly go down, so that edits spread over the tree.
    if depth < 4 && generator.chance(60) {
        let mut inner: Vec<&mut Value> = Vec::new();
        for (keyword, value) in map.iter_mut() {
            match keyword.as_str() {
                "properties" => inner.extend(value.as_object_mut().into_iter().flat_map(Map::values_mut)),
                "items" | "additionalProperties" if value.is_object() => inner.push(value),
                _ => {}
            }
        }
        if !inner.is_empty() {
            let index = generator.below(inner.len());
            return edit(generator, inner.swap_remove(index), depth + 1);
        }
    }
    let other = generator.node(2);
    match generator.below(8) {
        0 => *schema = other,
        1 | 2 => {
            let present: Vec<String> = map.keys().filter(|key| TAKEN.contains(&key.as_str())).cloned().collect();
            if !present.is_empty() {
                map.shift_remove(&present[generator.below(present.len())]);
            }
        }
        3 | 4 => {
            // A keyword of another node of the same type.
            for _ in 0..6 {
                let donor = generator.node(2);
                if donor.get("type") == map.get("type") {
                    let offered: Vec<(String, Value)> = donor
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter(|(key, _)| TAKEN.contains(&key.as_str()))
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    if !offered.is_empty() {
                        let (key, value) = offered[generator.below(offered.len())].clone();
                        map.insert(key, value);
                        break;
                    }
                }
            }
        }
        5 => {
            if let Some(fields) = map.get_mut("properties").and_then(Value::as_object_mut) {
                if generator.chance(50) && !fields.is_empty() {
                    let names: Vec<String> = fields.keys().cloned().collect();
                    fields.shift_remove(&names[generator.below(names.len())]);
                } else {
                    fields.insert("added".to_owned(), other);
                }
            }
        }
        6 => {
            // The same demand in another place.
            for key in ["enum", "pattern", "maximum", "minimum", "required", "minProperties", "maxLength"] {
                if let Some(value) = map.shift_remove(key) {
                    map.insert("allOf".to_owned(), json!([{key: value}]));
                    break;
                }
            }
        }
        _ => {
            for (_, value) in map.iter_mut().filter(|(key, value)| TAKEN.contains(&key.as_str()) && value.is_i64()) {
                let step = if generator.chance(50) { 1 } else { -1 };
                *value = json!(value.as_i64().unwrap_or(0) + step);
            }
        }
    }
}

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Test", "plural": "tests"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Quirks of the server that no schema means, and that verdicts leave out: a list where text of a known format is
/// expected, and a fraction that is within one part in a thousand million of a whole number.
fn is_quirk(object: &Value, schema: &Schema) -> bool {
    match object {
        Value::Number(number) => {
            number.as_f64().is_some_and(|float| float.fract() != 0.0 && (float - float.round()).abs() < 1e-6)
        }
        Value::Array(items) => {
            schema.format.is_some()
                || items.iter().any(|item| is_quirk(item, schema.items.as_deref().unwrap_or(schema)))
        }
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let field = schema.properties.get(name).or_else(|| schema.additional_schema());
            is_quirk(value, field.unwrap_or(schema))
        }),
        _ => false,
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures of a run by hand; the harness keeps them back otherwise")]
fn what_is_called_safe_lets_every_object_through() {
    let (rounds, seed) = (number("PUSHBACK_ROUNDS", 250), number("PUSHBACK_SEED", 1));
    let (mut valid, mut safe, mut breaking, mut unknown, mut tried) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    let mut reasons = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..rounds {
        let mut generator = Generator::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let old_value = generator.schema();
        let mut new_value = old_value.clone();
        for _ in 0..=generator.below(3) {
            edit(&mut generator, &mut new_value["properties"]["spec"], 0);
        }
        // What the server would refuse as a definition is nothing that objects meet.
        if [&old_value, &new_value].into_iter().any(|schema| !problems(&definition(schema)).is_empty()) {
            continue;
        }
        valid += 1;
        let (old_schema, new_schema) = (Schema::of(&old_value), Schema::of(&new_value));
        let (old, new) = (resource(&old_schema), resource(&new_schema));
        let differences = compare(&old, &new, Server::default());
        if differences.iter().any(|it| matches!(it.proof, Proof::Breaking { .. })) {
            breaking += 1;
            continue;
        }
        if let Some(blocked) = differences.iter().find(|it| matches!(it.proof, Proof::Unknown { .. })) {
            unknown += 1;
            if let Proof::Unknown { keyword, reason } = &blocked.proof {
                let text = format!("{} {keyword} {}", blocked.keyword, reason.as_deref().unwrap_or_default());
                if std::env::var_os("PUSHBACK_SHOW").is_some() {
                    eprintln!("round {round}: {text}\n  {old_value}\n  => {new_value}");
                }
                *reasons.entry(text).or_default() += 1;
            }
            continue;
        }
        safe += 1;
        for number in 0..OBJECTS {
            let object = generator.object_of(if number % 3 == 2 { &new_value } else { &old_value });
            let before = create(&old, Server::default(), &object);
            if before.accepted() != Some(true) || before.loses() || is_quirk(&object, &old_schema) {
                continue;
            }
            tried += 1;
            let places = suffering(&old, &new, Server::default(), &object).at;
            if !places.is_empty() {
                wrong.push(format!("round {round}: {places:?}\n  {object}\n  {old_value}\n  => {new_value}"));
                break;
            }
        }
    }
    eprintln!(
        "{valid} valid of {rounds} pairs: {safe} safe ({tried} objects tried), {breaking} breaking, {unknown} unknown, {} wrong",
        wrong.len()
    );
    for (reason, count) in reasons.iter().filter(|(_, count)| **count > 1).take(40) {
        eprintln!("  {count:4} {reason}");
    }
    assert!(wrong.is_empty(), "{} called safe and harmed:\n{}", wrong.len(), wrong[..wrong.len().min(4)].join("\n"));
    assert!(safe > 0 && tried > 0, "nothing was tried");
}
