//! What CRDUpgradeSafety computes on real definitions: reading YAML, reading schemas, comparing them with witnesses and their
//! confirmation. `PUSHBACK_CRDS=OLD:NEW` names two files or folders with definitions; else it is a pair from the test data.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::compare;
use pushback_crd::schema::pipeline::Server;

use super::definitions::{documents, pairs, schemas, texts};

const DATA: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/crds/karpenter-1.0.9-nodeclaims.json"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/crds/karpenter-1.10.1-nodeclaims.json"),
];

pub(crate) fn upgrade(criterion: &mut Criterion) {
    let given = std::env::var("PUSHBACK_CRDS").ok();
    let paths = given.as_deref().and_then(|given| given.split_once(':')).unwrap_or((DATA[0], DATA[1]));
    let texts = [texts(paths.0), texts(paths.1)];
    let [old, new] = [&texts[0], &texts[1]].map(|texts| schemas(&documents(texts)));
    let nodes: usize = old.values().chain(new.values()).map(Schema::size).sum();
    let mut group = criterion.benchmark_group("upgrade");
    group.bench_function(BenchmarkId::new("yaml", nodes), |bencher| {
        bencher.iter(|| texts.each_ref().map(|texts| documents(black_box(texts))));
    });
    group.bench_function(BenchmarkId::new("yaml and schemas", nodes), |bencher| {
        bencher.iter(|| texts.each_ref().map(|texts| schemas(&documents(black_box(texts)))));
    });
    group.bench_function(BenchmarkId::new("compare", nodes), |bencher| {
        bencher.iter(|| {
            for [old, new] in pairs(&old, &new) {
                black_box(compare(&old, &new, Server::default()));
            }
        });
    });
    group.finish();
}
