//! Two releases as people write them: reading both, and saying what changed between them.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use pushback_manifest::yaml::{Limits, load};
use pushback_objects::source::Document;
use pushback_releases::Release;
use pushback_releases::compare::{Options, compare};
use pushback_releases::model_file;

use super::models::{COMPONENTS, models};

pub(crate) fn releases(criterion: &mut Criterion) {
    let texts = models();
    let [old, new] = [read(&texts[0]), read(&texts[1])];
    let diff = compare(&old, &new, Options::default());
    assert_eq!(diff.summary.components_renamed, COMPONENTS / 10, "each tenth is to be renamed");
    let mut group = criterion.benchmark_group("releases");
    group.throughput(Throughput::Elements(COMPONENTS as u64));
    group.bench_function(BenchmarkId::new("read", COMPONENTS), |bencher| bencher.iter(|| read(black_box(&texts[0]))));
    group.bench_function(BenchmarkId::new("compare", COMPONENTS), |bencher| {
        bencher.iter(|| compare(black_box(&old), black_box(&new), Options::default()));
    });
    group.finish();
}

fn read(text: &str) -> Release {
    let loaded = load("model.yaml", text.as_bytes(), &Limits::default()).expect("YAML");
    let documents = loaded.documents.into_iter();
    let documents: Vec<Document> =
        documents.map(|document| Document { value: document.value, positions: Arc::new(document.positions) }).collect();
    model_file::release(&documents, Vec::new()).expect("a model")
}
