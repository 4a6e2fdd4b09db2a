//! What the processor does: reading YAML, drawing the change graph, comparing, planning, judging definitions, comparing releases,
//! converting objects, making pages, judging by rules of a policy.
//! `cargo bench --bench cpu`; what a control plane has a part in is measured by `--bench cluster`.

#[path = "../../tests/integration/support/browser.rs"]
#[expect(dead_code, reason = "the tests do more with it")]
mod browser;
#[path = "../shared/chain.rs"]
mod chain;
mod conversion;
mod custom_rules;
#[path = "../shared/definitions.rs"]
mod definitions;
#[path = "../shared/models.rs"]
mod models;
#[path = "../shared/objects.rs"]
mod objects;
mod page;
mod releases;
mod unchanged;
mod upgrade;
#[path = "../shared/work.rs"]
mod work;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pushback_manifest::yaml::{Limits, load};

use self::unchanged::Unchanged;

/// Some MiB of YAML.
const CRDS: usize = 50;

fn yaml(criterion: &mut Criterion) {
    let bundle = work::crd_bundle(CRDS);
    let mut group = criterion.benchmark_group("yaml");
    group.throughput(Throughput::Bytes(bundle.len() as u64));
    group.bench_function(BenchmarkId::new("crd-bundle", format!("{} KiB", bundle.len() / 1024)), |bencher| {
        bencher.iter(|| load("bundle.yaml", black_box(bundle.as_bytes()), &Limits::default()).expect("YAML"));
    });
    group.finish();
}

fn graph(criterion: &mut Criterion) {
    let config = work::config();
    let mut group = criterion.benchmark_group("graph");
    for count in [1_000, 4_000, 16_000] {
        let objects = work::creates(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_with_input(BenchmarkId::new("mixed", count), &objects, |bencher, objects| {
            bencher.iter(|| work::draw(black_box(objects), &config));
        });
    }
    group.finish();
}

fn diff(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("diff");
    for lines in [1_000, 4_000, 16_000] {
        let (old, new) = work::long_texts(lines);
        group.throughput(Throughput::Elements(lines as u64));
        group.bench_function(BenchmarkId::new("every-second-line", lines), |bencher| {
            bencher.iter(|| work::diff(black_box(&old), black_box(&new)));
        });
    }
    group.finish();
}

fn plan(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut group = criterion.benchmark_group("plan");
    for count in [1_000, 5_000] {
        let app = Unchanged::of(count);
        assert!(!runtime.block_on(app.plan(app.desired())).has_changes(), "the app is to be unchanged");
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("unchanged", count), |bencher| {
            bencher.iter_batched(
                || app.desired(),
                |desired| runtime.block_on(app.plan(desired)),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1));
    targets = yaml, graph, diff, plan, upgrade::upgrade, releases::releases, conversion::conversion, page::page,
        custom_rules::custom_rules
}
criterion_main!(benches);
