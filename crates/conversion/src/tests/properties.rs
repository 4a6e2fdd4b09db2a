//! Generated objects: every version becomes every other one, and comes back from storage as it was.
//! `PUSHBACK_ROUNDS=full` takes 10,000 objects a pair; a number takes that many. `PUSHBACK_SEED` sets the first one.

use pushback_crd::schema::Schema;
use pushback_crd::schema::testing::Generator;
use pushback_crd::schema::testing::edit::number;
use serde_json::{Map, Value, json};

use super::person::people;
use super::{converter, definition, load, plan, without_bag};
use crate::converter::Ways;
use crate::{Converter, NoPrograms};

fn rounds(otherwise: u64) -> u64 {
    match std::env::var("PUSHBACK_ROUNDS") {
        Ok(full) if full == "full" => 10_000,
        _ => number("PUSHBACK_ROUNDS", otherwise),
    }
}

/// A value that is valid for the node: any text, any of the listed values, nulls where they are allowed.
fn value(generator: &mut Generator, schema: &Schema) -> Value {
    const TEXTS: [&str; 8] = ["", "a", "null", "7", "{\"a\":1}", "ä 😀", "\"", "king"];
    const NUMBERS: [i64; 5] = [0, 1, -7, 9_007_199_254_740_993, i64::MAX];
    if schema.nullable && generator.chance(20) {
        return Value::Null;
    }
    if schema.int_or_string {
        return if generator.chance(50) { json!(7) } else { json!(TEXTS[generator.below(TEXTS.len())]) };
    }
    match schema.kind.map(|kind| kind.as_str()) {
        Some("string") => TEXTS[generator.below(TEXTS.len())].into(),
        Some("integer") => NUMBERS[generator.below(NUMBERS.len())].into(),
        Some("number") => {
            if generator.chance(50) {
                json!(1.5)
            } else {
                json!(3)
            }
        }
        Some("boolean") => generator.chance(50).into(),
        Some("array") => {
            let Some(items) = schema.items.as_deref() else { return json!([]) };
            (0..generator.below(3)).map(|_| value(generator, items)).collect()
        }
        Some("object") => {
            let mut map = Map::new();
            for (name, field) in &schema.properties {
                if generator.chance(60) {
                    map.insert(name.clone(), value(generator, field));
                }
            }
            if let Some(values) = schema.additional_schema() {
                for key in ["x", "y"].into_iter().take(generator.below(3)) {
                    map.insert(key.to_owned(), value(generator, values));
                }
            }
            if schema.preserve_unknown && generator.chance(50) {
                map.insert("unknown".to_owned(), json!({"a": [null, 1]}));
            }
            Value::Object(map)
        }
        _ => json!({"any": [1, "a", null]}),
    }
}

fn generated(generator: &mut Generator, converter: &Converter, version: &str) -> Value {
    let schema = Schema::of(converter.storage_schema(version).expect("a version"));
    let mut object = without_bag(&value(generator, &schema), converter.bag());
    object["apiVersion"] = format!("{}/{version}", converter.group()).into();
    object["kind"] = converter.kind().into();
    object["metadata"] = json!({"name": "a"});
    object
}

/// The same conversions with every step as it was derived, so that nothing is done in another one than its own.
fn step_by_step(converter: &Converter) -> Converter {
    let edge = |from: usize, to: usize| converter.edges.get(&(from, to)).cloned().expect("a step");
    let ways = |version: usize| {
        let way = converter.way(version);
        Ways {
            up: way.windows(2).map(|pair| edge(pair[0], pair[1])).collect(),
            down: way.windows(2).rev().map(|pair| edge(pair[1], pair[0])).collect(),
        }
    };
    Converter { ways: (0..converter.lineage().versions.len()).map(ways).collect(), ..converter.clone() }
}

/// Converts generated objects of every version to every other one, and to storage and back.
fn hold(converter: &Converter, seed: u64, rounds: u64) {
    let step_by_step = step_by_step(converter);
    for from in &converter.lineage().versions {
        for to in &converter.lineage().versions {
            let mut generator = Generator::new(seed);
            for round in 0..rounds {
                let object = generated(&mut generator, converter, from);
                let place = format!("{from} to {to}, seed {seed}, round {round}: {object}");
                let converted = converter
                    .convert(object.clone(), to, &NoPrograms)
                    .unwrap_or_else(|error| panic!("{error}: {place}"));
                assert_eq!(converted.object["apiVersion"], format!("{}/{to}", converter.group()), "{place}");
                assert_eq!(step_by_step.convert(object.clone(), to, &NoPrograms), Ok(converted), "{place}");
                if from != to {
                    continue;
                }
                let stored = converter
                    .to_storage(object.clone(), &NoPrograms)
                    .unwrap_or_else(|error| panic!("{error}: {place}"));
                let back = converter
                    .from_storage(stored.object.clone(), from, &NoPrograms)
                    .unwrap_or_else(|error| panic!("{error}: {place}"));
                assert_eq!(back.object, object, "{place}, stored as {}", stored.object);
            }
        }
    }
}

#[test]
fn generated_people_come_back_from_storage() {
    hold(&people(), number("PUSHBACK_SEED", 1), rounds(20));
}

/// Names that change with every version, in objects and in lists.
#[test]
fn a_list_is_walked_once_on_the_way_through_many_versions() {
    let string = || json!({"type": "string"});
    let spec = |version: usize| {
        let port = json!({"type": "object", "properties": {format!("number{version}"): {"type": "integer"}}});
        let item = json!({"type": "object", "properties": {
            "name": string(), format!("old{version}"): string(), format!("port{version}"): port,
        }});
        // The name of an earlier version comes again, with another meaning.
        let swapped = if version.is_multiple_of(2) { ["one", "other"] } else { ["other", "one"] };
        json!({
            format!("key{version}"): string(), format!("only{version}"): string(),
            "items": {"type": "array", "items": item}, swapped[0]: string(), swapped[1]: {"type": "integer"},
            "parts": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                format!("part{version}"): string(), "kept": string(),
            }}},
        })
    };
    let step = |from: usize| {
        let to = from + 1;
        let renamed = |path: &str| (format!("spec.{path}{from}"), json!(format!("spec.{path}{to}")));
        let inner =
            (format!("spec.items[*].port{from}.number{from}"), json!(format!("spec.items[*].port{to}.number{to}")));
        let mut renames: Map<String, Value> =
            ["key", "items[*].old", "items[*].port", "parts[*].part"].map(renamed).into_iter().collect();
        renames.extend([inner]);
        renames.extend([("spec.one", "spec.other"), ("spec.other", "spec.one")].map(|(a, b)| (a.to_owned(), json!(b))));
        json!({"from": format!("v{from}"), "to": format!("v{to}"), "renames": renames})
    };
    let names: Vec<String> = (1..=5).map(|version| format!("v{version}")).collect();
    let versions: Vec<(&str, Value)> = (1..=5).map(|version| (names[version - 1].as_str(), spec(version))).collect();
    let more = json!({"policy": {"unassessed": "stash"}, "steps": (1..5).map(step).collect::<Vec<_>>()});
    let converter = converter(&versions, more);
    for way in [&converter.ways[0].up, &converter.ways[0].down] {
        let walks: Vec<bool> = way.iter().map(|step| format!("{:?}", step.convert).contains("Each(")).collect();
        assert_eq!(walks, [true, false, false, false]);
    }
    hold(&converter, number("PUSHBACK_SEED", 1), rounds(20));
}

/// Definitions of real releases whose versions differ, and that `PUSHBACK_CRDS` names: one or more files.
#[test]
fn objects_of_published_kinds_come_back_from_storage() {
    let mut texts: Vec<String> = vec![
        include_str!("../../../../tests/data/crds/karpenter-0.37.7-nodeclaims.json").to_owned(),
        include_str!("../../../../tests/data/crds/karpenter-1.0.9-nodeclaims.json").to_owned(),
        include_str!("../../../../tests/data/crds/gateway-api-1.1.1-experimental-referencegrants.json").to_owned(),
    ];
    let more = std::env::var("PUSHBACK_CRDS").unwrap_or_default();
    texts.extend(
        more.split(':').filter(|path| !path.is_empty()).map(|path| std::fs::read_to_string(path).expect("a file")),
    );
    for text in texts {
        let definition: Value = serde_yaml::from_str(&text).expect("YAML");
        let mut derived = plan(json!({"policy": {"unassessed": "stash"}}));
        derived["metadata"]["name"] = definition["metadata"]["name"].clone();
        let converter =
            load(&derived, &definition).unwrap_or_else(|errors| panic!("{}: {errors:#?}", derived["metadata"]["name"]));
        assert!(converter.lineage().versions.len() > 1 || !more.is_empty());
        hold(&converter, number("PUSHBACK_SEED", 1), rounds(20).min(200));
    }
}

/// Random kinds whose versions differ by random edits, without a plan.
#[test]
fn generated_kinds_come_back_from_storage() {
    let start = number("PUSHBACK_SEED", 1);
    let (kinds, objects) = (rounds(60).min(2_000), rounds(60).min(20));
    for seed in start..start + kinds {
        let mut generator = Generator::new(seed);
        let mut spec = spec(&mut generator, 3);
        let mut versions = vec![("v1".to_owned(), spec.clone())];
        for version in 2..=4 {
            edit(&mut generator, &mut spec);
            versions.push((format!("v{version}"), spec.clone()));
        }
        let versions: Vec<(&str, Value)> = versions.iter().map(|(name, spec)| (name.as_str(), spec.clone())).collect();
        // What would be taken for something else is refused; that is decided by the plan, not by chance.
        match load(&plan(json!({"policy": {"unassessed": "stash"}})), &definition(&versions)) {
            Ok(converter) => hold(&converter, seed, objects),
            Err(errors) => {
                for error in errors {
                    let known = ["with another shape", "another field of this name", "differ only in case"];
                    assert!(known.iter().any(|known| error.message.contains(known)), "seed {seed}: {error}");
                }
            }
        }
    }
}

const NAMES: [&str; 6] = ["a", "b", "A", "name", "c", "d"];

/// The fields of an object.
fn spec(generator: &mut Generator, depth: usize) -> Value {
    let mut fields = Map::new();
    for _ in 0..=generator.below(4) {
        fields.insert(NAMES[generator.below(NAMES.len())].to_owned(), node(generator, depth));
    }
    Value::Object(fields)
}

fn node(generator: &mut Generator, depth: usize) -> Value {
    let mut node = match generator.below(if depth == 0 { 5 } else { 9 }) {
        0 | 1 => json!({"type": "string"}),
        2 => json!({"type": "integer"}),
        3 => json!({"type": "number"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => json!({"type": "array", "items": node(generator, depth - 1)}),
        6 => json!({"type": "object", "additionalProperties": node(generator, depth - 1)}),
        _ => json!({"type": "object", "properties": spec(generator, depth - 1)}),
    };
    if generator.chance(10) {
        node["nullable"] = json!(true);
    }
    if node["type"] == "object" && node.get("additionalProperties").is_none() && generator.chance(10) {
        node["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    node
}

/// Adds, removes or changes fields, here or below.
fn edit(generator: &mut Generator, fields: &mut Value) {
    let Some(map) = fields.as_object_mut() else { return };
    let keys: Vec<String> = map.keys().cloned().collect();
    for key in keys {
        match generator.below(8) {
            0 => {
                map.shift_remove(&key);
            }
            1 => {
                map.insert(key, node(generator, 2));
            }
            _ => {
                if let Some(inner) = map.get_mut(&key).and_then(|node| node.get_mut("properties")) {
                    edit(generator, inner);
                }
            }
        }
    }
    if generator.chance(50) {
        map.insert(NAMES[generator.below(NAMES.len())].to_owned(), node(generator, 2));
    }
}
