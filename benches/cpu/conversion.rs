//! Converting an object through a chain of versions, without reading or writing it.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion};
use pushback_conversion::{Converter, NoPrograms, compile, read};
use pushback_objects::Positions;
use pushback_objects::source::Document;

use super::chain;

const VERSIONS: usize = 10;
const BYTES: usize = 1024;

fn converter() -> Converter {
    let plan = chain::plan(VERSIONS);
    let document = Document { value: plan, positions: Arc::new(Positions::of_file("plan.yaml")) };
    let definition = chain::definition(VERSIONS);
    compile(&read(&document).expect("a plan"), &definition).expect("a plan for the definition")
}

pub(crate) fn conversion(criterion: &mut Criterion) {
    let (converter, object) = (converter(), chain::object("a-name"));
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
