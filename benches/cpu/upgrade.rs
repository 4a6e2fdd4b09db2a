//! What CRDUpgradeSafety computes on real definitions: reading YAML, reading schemas, comparing them with witnesses and their
//! confirmation. `PUSHBACK_CRDS=OLD:NEW` names two files with definitions; else it is a pair from the test data.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use pushback::manifest::yaml::{Limits, load};
use pushback_preflight::schema::Schema;
use pushback_preflight::schema::contain::compare;
use pushback_preflight::schema::pipeline::{Resource, Server};
use serde_json::Value;

const DATA: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/crds/karpenter-1.0.9-nodeclaims.json"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/crds/karpenter-1.10.1-nodeclaims.json"),
];

/// The schemas of a file, each under the name of its definition and its version.
fn schemas(text: &[u8]) -> BTreeMap<(String, String), Schema> {
    let documents = load("crds.yaml", text, &Limits::default()).expect("YAML");
    let definitions = documents.documents.iter().map(|document| &document.value);
    let versions = definitions.flat_map(|definition| {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        versions.map(move |version| (name, version))
    });
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    versions
        .map(|(name, version)| {
            ((name.to_owned(), text_of(&version["name"])), Schema::of(&version["schema"]["openAPIV3Schema"]))
        })
        .collect()
}

pub(crate) fn upgrade(criterion: &mut Criterion) {
    let given = std::env::var("PUSHBACK_CRDS").ok();
    let paths = given.as_deref().and_then(|given| given.split_once(':')).unwrap_or((DATA[0], DATA[1]));
    let text = |path: &str| std::fs::read(path).expect("definitions");
    let texts = (text(paths.0), text(paths.1));
    let (old, new) = (schemas(&texts.0), schemas(&texts.1));
    let nodes: usize = old.values().chain(new.values()).map(Schema::size).sum();
    let mut group = criterion.benchmark_group("upgrade");
    group.bench_function(BenchmarkId::new("yaml", nodes), |bencher| {
        bencher.iter(|| {
            for text in [&texts.0, &texts.1] {
                load("crds.yaml", black_box(text), &Limits::default()).expect("YAML");
            }
        });
    });
    group.bench_function(BenchmarkId::new("yaml and schemas", nodes), |bencher| {
        bencher.iter(|| (schemas(black_box(&texts.0)), schemas(black_box(&texts.1))));
    });
    group.bench_function(BenchmarkId::new("compare", nodes), |bencher| {
        bencher.iter(|| {
            let both = old.iter().filter_map(|(key, old)| Some((&key.1, old, new.get(key)?)));
            for (version, old, new) in both {
                let resource = |schema| Resource {
                    schema,
                    group: "example.com",
                    version,
                    kind: "Example",
                    preserve_unknown_fields: false,
                };
                black_box(compare(&resource(old), &resource(new), Server::default()));
            }
        });
    });
    group.finish();
}
