//! Converting an object through a chain of versions, without reading or writing it. Every step renames a field, adds one,
//! takes one away and changes a nested object.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion};
use pushback_preflight::Positions;
use pushback_preflight::conversion::{Converter, NoPrograms, compile, read};
use pushback_preflight::source::Document;
use serde_json::{Map, Value, json};

const VERSIONS: usize = 10;
const BYTES: usize = 1024;

/// The fields of a version.
fn spec(version: usize) -> Value {
    let string = || json!({"type": "string"});
    let mut fields: BTreeMap<String, Value> = (0..12).map(|index| (format!("kept{index}"), string())).collect();
    fields.insert(format!("key{version}"), string());
    fields.insert(format!("only{version}"), string());
    for added in 2..=version {
        fields.insert(format!("added{added}"), string());
    }
    let nested = json!({"street": string(), "city": string(), format!("part{version}"): string()});
    fields.insert("address".to_owned(), json!({"type": "object", "properties": nested}));
    let item = json!({"name": string(), "port": {"type": "integer"}, format!("old{version}"): string()});
    fields.insert("items".to_owned(), json!({"type": "array", "items": {"type": "object", "properties": item}}));
    json!({"type": "object", "properties": fields})
}

fn converter() -> Converter {
    let version = |index: usize| {
        let schema = json!({"type": "object", "properties": {"spec": spec(index)}});
        json!({"name": format!("v{index}"), "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "metadata": {"name": "tests.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Test", "plural": "tests"},
                 "versions": (1..=VERSIONS).map(version).collect::<Vec<_>>()},
    });
    let step = |from: usize| {
        let to = from + 1;
        json!({"from": format!("v{from}"), "to": format!("v{to}"), "renames": {
            format!("spec.key{from}"): format!("spec.key{to}"),
            format!("spec.items[*].old{from}"): format!("spec.items[*].old{to}"),
        }})
    };
    let plan = json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "tests.example.com"},
        "policy": {"unassessed": "stash"}, "steps": (1..VERSIONS).map(step).collect::<Vec<_>>(),
    });
    let document = Document { value: plan, positions: Arc::new(Positions::of_file("plan.yaml")) };
    compile(&read(&document).expect("a plan"), &definition).expect("a plan for the definition")
}

/// An object of about so many bytes.
fn object() -> Value {
    let mut spec: Map<String, Value> = (0..12).map(|index| (format!("kept{index}"), "some text".into())).collect();
    spec.insert("key1".to_owned(), "key".into());
    spec.insert("only1".to_owned(), "only here".into());
    spec.insert("address".to_owned(), json!({"street": "12 St James's Square", "city": "London", "part1": "SW1"}));
    let item = |index: usize| json!({"name": format!("item-{index}"), "port": 8000 + index, "old1": "value"});
    spec.insert("items".to_owned(), (0..9).map(item).collect());
    let metadata = json!({
        "name": "a-name", "namespace": "a-namespace", "uid": "7e1d6c4e-0d4c-4d6e-9c55-6fd4a1f2b8c0",
        "labels": {"app.kubernetes.io/name": "test"},
    });
    json!({"apiVersion": "example.com/v1", "kind": "Test", "metadata": metadata, "spec": spec})
}

pub(crate) fn conversion(criterion: &mut Criterion) {
    let (converter, object) = (converter(), object());
    let bytes = object.to_string().len();
    assert!(bytes.abs_diff(BYTES) < BYTES / 8, "the object has {bytes} bytes");
    let stored = converter.to_storage(object.clone(), &NoPrograms).expect("a conversion").object;
    let back = converter.from_storage(stored.clone(), "v1", &NoPrograms).expect("a conversion").object;
    assert_eq!(back, object, "every version comes back");
    let mut group = criterion.benchmark_group("conversion");
    group.bench_function(BenchmarkId::new("to the hub", format!("{VERSIONS} versions, {bytes} bytes")), |bencher| {
        bencher.iter_batched(
            || object.clone(),
            |object| converter.to_storage(black_box(object), &NoPrograms),
            BatchSize::SmallInput,
        );
    });
    group.bench_function(BenchmarkId::new("from the hub", format!("{VERSIONS} versions, {bytes} bytes")), |bencher| {
        bencher.iter_batched(
            || stored.clone(),
            |stored| converter.from_storage(black_box(stored), "v1", &NoPrograms),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}
