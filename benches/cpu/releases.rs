//! Two releases as people write them, with so many components of which each tenth is renamed: reading both, and saying
//! what changed between them.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use pushback::manifest::yaml::{Limits, load};
use pushback_preflight::operator::Release;
use pushback_preflight::operator::compare::{Options, compare};
use pushback_preflight::operator::written::{self, Document};

/// Components of a model.
const COMPONENTS: usize = 200;

pub(crate) fn releases(criterion: &mut Criterion) {
    let texts = [model("2.20.0", "v1", ""), model("2.21.0", "v2", "-manager")];
    if let Ok(folder) = std::env::var("PUSHBACK_WRITE_MODELS") {
        // For measuring the whole process.
        for (name, text) in ["old.yaml", "new.yaml"].iter().zip(&texts) {
            std::fs::write(std::path::Path::new(&folder).join(name), text).expect("a file");
        }
    }
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
    written::release(&documents, Vec::new()).expect("a model")
}

/// A model of components with five resources, two webhooks and a finalizer each.
fn model(version: &str, tier: &str, renamed: &str) -> String {
    let mut text = format!(
        "operator: {{name: bench, namespace: bench, version: {version:?}, platform: p, olmChannel: c}}\n\
         recovery: {{reconcileTimeout: 300s, maxReconcileCycles: 10}}\ncomponents:\n"
    );
    for number in 0..COMPONENTS {
        let end = if number % 10 == 0 { renamed } else { "" };
        let name = format!("component-{number}{end}");
        let _ = write!(
            text,
            "- name: {name}\n  controller: Bench\n  managedResources:\n  - apiVersion: apps/v1\n    kind: Deployment\n    \
             name: {name}\n    namespace: bench\n    labels: {{app: {name}, tier: {tier}, number: \"{number}\"}}\n    \
             expectedSpec: {{replicas: 1}}\n"
        );
        for (api_version, kind) in
            [("v1", "Service"), ("v1", "ServiceAccount"), ("v1", "Secret"), ("coordination.k8s.io/v1", "Lease")]
        {
            let _ = writeln!(
                text,
                "  - {{apiVersion: {api_version}, kind: {kind}, name: {name}-{kind}, namespace: bench}}"
            );
        }
        let _ = write!(
            text,
            "  webhooks:\n  - {{name: v{number}.example.com, type: validating, path: /validate}}\n  \
             - {{name: m{number}.example.com, type: mutating, path: /mutate}}\n  finalizers: [example.com/f{number}]\n"
        );
    }
    text
}
