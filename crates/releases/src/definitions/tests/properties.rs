//! Properties of any two definitions: random pairs of schemas with a few differences, and hostile ones.
//! `PUSHBACK_ROUNDS` sets the number of pairs, `PUSHBACK_SEED` the seed.

use std::collections::BTreeSet;

use pushback_crd::definition;
use pushback_crd::schema::Schema;
use pushback_crd::schema::testing::Generator;
use pushback_crd::schema::testing::edit::{edit, number};
use serde_json::Map;

use super::*;

/// A definition with a random schema in `v1` and another in `v1beta1`.
fn random(generator: &mut Generator) -> Value {
    let mut value = with_spec(&generator.node(3));
    let mut second = value["spec"]["versions"][0].clone();
    second["name"] = json!("v1beta1");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"] = generator.schema();
    value["spec"]["versions"].as_array_mut().expect("versions").push(second);
    value
}

fn edited(generator: &mut Generator, value: &Value) -> Value {
    let mut value = value.clone();
    for _ in 0..=generator.below(3) {
        let index = generator.below(2);
        let schema = &mut value["spec"]["versions"][index]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        edit(generator, schema, 0);
    }
    value
}

/// The same definition with the order of all keys and unordered lists reversed.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let turned = map.iter().rev().map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("required" | "enum", Value::Array(items)) => items.iter().rev().cloned().collect(),
                    _ => reversed(value),
                };
                (key.clone(), value)
            });
            Value::Object(turned.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

/// The type that the reverse comparison reports.
fn mirrored(change: &DefinitionChange) -> ChangeType {
    use ChangeType::*;
    let (was, is) = (!change.old_schema.is_null(), !change.new_schema.is_null());
    match change.change_type {
        FieldRemoved => FieldAdded,
        FieldAdded => FieldRemoved,
        // A new required field is reported once.
        RequiredAdded if !was && is => FieldRemoved,
        RequiredAdded => RequiredRemoved,
        RequiredRemoved => RequiredAdded,
        EnumValueRemoved => EnumValueAdded,
        EnumValueAdded => EnumValueRemoved,
        EnumRestrictionAdded => EnumRestrictionRemoved,
        EnumRestrictionRemoved => EnumRestrictionAdded,
        other => other,
    }
}

/// Type, version, path and keyword of each change; a rename has a different path in reverse.
fn kinds(changes: &[DefinitionChange], name: impl Fn(&DefinitionChange) -> ChangeType) -> Vec<String> {
    let mut kinds: Vec<String> = changes
        .iter()
        .map(|change| {
            let path = if change.change_type == ChangeType::FieldRenamed { "" } else { &change.path };
            format!("{} {} {path} {}", name(change).name(), change.version, change.keyword)
        })
        .collect();
    kinds.sort();
    kinds
}

/// Like [`kinds`], with a new required field as a new field: the reverse comparison cannot tell them apart.
fn plain(change: &DefinitionChange) -> ChangeType {
    let comes = change.old_schema.is_null() && !change.new_schema.is_null();
    match change.change_type {
        ChangeType::RequiredAdded if comes => ChangeType::FieldAdded,
        other => other,
    }
}

#[test]
fn random_pairs_keep_what_holds_for_all() {
    let start = number("PUSHBACK_SEED", 1);
    for seed in start..start + number("PUSHBACK_ROUNDS", 120) {
        let mut generator = Generator::new(seed);
        let old = random(&mut generator);
        let new = edited(&mut generator, &old);
        let (there, back) = (changes(&old, &new), changes(&new, &old));

        assert_eq!(changes(&old, &old), [], "seed {seed}: equal definitions differ");
        assert_eq!(changes(&old, &reversed(&old)), [], "seed {seed}: order makes a difference");
        let turned = changes(&reversed(&old), &reversed(&new));
        let told = |changes: &[DefinitionChange]| -> Vec<(String, String)> {
            changes.iter().map(|change| (line(change), change.id.clone())).collect()
        };
        assert_eq!(told(&there), told(&turned), "seed {seed}: order makes a difference");
        assert_eq!(kinds(&there, mirrored), kinds(&back, plain), "seed {seed}: the way back is no mirror");

        let ids: BTreeSet<&str> = there.iter().map(|change| change.id.as_str()).collect();
        assert_eq!(ids.len(), there.len(), "seed {seed}: two changes of one id");
        let json = serde_json::to_string(&there).expect("JSON");
        let read: Vec<DefinitionChange> = serde_json::from_str(&json).expect("reads");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), json, "seed {seed}");
        nothing_is_lost(seed, &old, &new, &there);
    }
}

/// Every difference of schemas is reported, and so is every proved break.
fn nothing_is_lost(seed: u64, old: &Value, new: &Value, told: &[DefinitionChange]) {
    for version in [0, 1] {
        let schema = |value: &Value| {
            let version = &value["spec"]["versions"][version];
            (version["name"].clone(), Schema::of(&version["schema"]["openAPIV3Schema"]).digest)
        };
        let (name, digest) = schema(old);
        if digest != schema(new).1 {
            assert!(told.iter().any(|change| name == change.version.as_str()), "seed {seed}: {name} {old} {new}");
        }
    }
    for proved in definition::compare(&Upgrade::of(old, new, Server::default())) {
        let is_told = told.iter().any(|change| change.verdict == CrdVerdict::Breaking);
        let is_breaking = matches!(proved.proof, definition::Proof::Breaking { .. }) && !proved.is_moot;
        assert!(!is_breaking || is_told, "seed {seed}: {proved:?}");
    }
}

fn wide(count: usize, field: impl Fn(usize) -> Value) -> Value {
    let fields: Map<String, Value> = (0..count).map(|index| (format!("field{index:05}"), field(index))).collect();
    with_spec(&json!({"type": "object", "properties": fields}))
}

#[test]
fn thousands_of_fields_that_change_are_told_one_by_one() {
    let (old, new) = (wide(2_000, |_| json!({"type": "string"})), wide(2_000, |_| json!({"type": "integer"})));
    assert_eq!(changes(&old, &new).len(), 2_000);
    let renamed = {
        let mut value = with_spec(&json!({"type": "object"}));
        let fields: Map<String, Value> =
            (0..2_000).map(|index| (format!("other{index:05}"), json!({"type": "string"}))).collect();
        value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = fields.into();
        value
    };
    // Every field is a candidate for every other, so no name is suggested.
    let told = changes(&old, &renamed);
    assert_eq!(told.len(), 4_000);
    assert!(told.iter().all(|change| change.change_type != ChangeType::FieldRenamed));
}

#[test]
fn a_long_enum_makes_a_report_no_longer_than_its_values() {
    let field = |from: usize| {
        let values: Vec<String> = (from..from + 2_000).map(|index| format!("v{index}")).collect();
        with_field(&json!({"type": "string", "enum": values}))
    };
    let told = changes(&field(0), &field(2_000));
    assert_eq!(told.len(), 4_000);
    let length = serde_json::to_string(&told).expect("JSON").len();
    assert!(length < 4_000 * 500, "{length}");
}

#[test]
fn nesting_without_end_is_no_trouble() {
    let deep = |leaf: &str, depth: usize| {
        let mut field = json!({"type": leaf});
        for _ in 0..depth {
            field = Value::Object(Map::from_iter([("type".to_owned(), "array".into()), ("items".to_owned(), field)]));
        }
        with_field(&field)
    };
    let told = lines(&deep("string", 20), &deep("integer", 20));
    assert_eq!(told, [format!("breaking TypeChanged spec.f{} breaking", "[*]".repeat(20))]);
    for depth in [100, 120, 121, 122, 123, 124, 125, 126, 127, 450] {
        let told = changes(&deep("string", depth), &deep("integer", depth));
        assert_eq!(told.len(), 1, "{depth}");
        assert_ne!(told[0].verdict, CrdVerdict::Safe, "{depth}");
        assert_eq!(changes(&deep("string", depth), &deep("string", depth)), [], "{depth}");
    }
}

#[test]
fn what_is_no_definition_is_no_trouble() {
    let nonsense = [json!(null), json!([]), json!({"spec": 1}), json!({"spec": {"versions": [1, {"name": 2}, {}]}})];
    for one in &nonsense {
        for other in nonsense.iter().chain([&with_field(&json!({"type": "string"}))]) {
            let side = |value: &Value| [Definition { name: "x".to_owned(), ..definition(value.clone()) }];
            drop(compare(&side(one), &side(other), Options::default()));
        }
    }
    let no_schema = {
        let mut value = with_spec(&json!({}));
        value["spec"]["versions"][0].as_object_mut().expect("a version").remove("schema");
        value
    };
    let told = lines(&no_schema, &with_field(&json!({"type": "string"})));
    assert!(told.contains(&"breaking x-kubernetes-preserve-unknown-fields . breaking".to_owned()), "{told:?}");
}
