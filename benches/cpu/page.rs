//! What a page of 2,000 findings, each a cause of its own, takes: to make it, and, where there is a Chromium, until it can be
//! worked with and to filter it.

use std::hint::black_box;
use std::io::Write as _;

use criterion::{BenchmarkId, Criterion};
use pushback_deploy::check::report::CheckReport;
use pushback_objects::{Finding, ObjectRef, Severity, Verdict};
use pushback_preflight::causes;
use pushback_preflight::judge::Outcome;
use pushback_terminal::check::html;
use serde_json::json;

use super::browser::{Browser, is_wanted};

const FINDINGS: usize = 2_000;

fn report() -> CheckReport {
    let finding = |number: usize| {
        let object = ObjectRef {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: String::new(),
            name: format!("foos{}.ex.com", number % 20),
        };
        let message = format!("field{number} is removed");
        let mut finding = Finding::new("CRDUpgradeSafety", "existingFieldRemoval", Verdict::Breaking, object, message)
            .path(format!("spec.field{number}"))
            .values(Some(json!({"type": "string"})), None)
            .remedy("keep the field, or serve a new version with a conversion webhook");
        finding.severity = Severity::Error;
        finding.effect = Some("pruned".to_owned());
        finding.witness = Some(
            json!({
                "apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "witness"},
                "spec": {format!("field{number}"): "a"},
            })
            .into(),
        );
        finding.fingerprint = finding.compute_fingerprint();
        finding
    };
    let findings: Vec<Finding> = (0..FINDINGS).map(finding).collect();
    CheckReport { causes: causes(&findings), findings, ..CheckReport::new("bench", "dir:live", Outcome::Refused) }
}

pub(crate) fn page(criterion: &mut Criterion) {
    let report = report();
    assert_eq!(report.causes.len(), FINDINGS);
    let mut group = criterion.benchmark_group("page");
    group.bench_function(BenchmarkId::new("findings", FINDINGS), |bencher| {
        bencher.iter(|| html::text(black_box(&report)));
    });
    group.finish();
    let mut text = String::new();
    let memory = allocation_counter::measure(|| text = html::text(&report));
    let mut out = std::io::stdout();
    let _ = writeln!(out, "page: {} KiB, made in at most {} KiB of memory", text.len() >> 10, memory.bytes_max >> 10);
    if is_wanted() {
        looked_at(&text);
    }
}

fn looked_at(text: &str) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = place.path().join("page.html");
    std::fs::write(&file, text).expect("a file");
    let mut page = Browser::open(&file, "");
    let number = |page: &mut Browser, expression: &str| page.evaluate(expression).as_f64().expect("a number");
    let interactive = number(&mut page, "performance.getEntriesByType('navigation')[0].domInteractive");
    let loaded = number(&mut page, "performance.getEntriesByType('navigation')[0].loadEventEnd");
    let filter = "new Promise(done => {
        const field = document.getElementById('filter-text');
        const began = performance.now();
        field.value = 'field1234';
        field.dispatchEvent(new Event('input'));
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
    })";
    let first = number(&mut page, filter);
    let again = number(&mut page, &filter.replace("field1234", "field123"));
    let memory = number(&mut page, "performance.memory.usedJSHeapSize");
    let _ = writeln!(
        std::io::stdout(),
        "page: interactive after {interactive:.0} ms, loaded after {loaded:.0} ms; filtered in {first:.0} ms, again in {again:.0} ms; \
         {:.1} MiB of its script's memory",
        memory / f64::from(1 << 20)
    );
}
