//! A check of many objects in a folder, without and with rules of a policy's own: the same run of the program.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use criterion::{BenchmarkId, Criterion, Throughput};
use serde_json::{Value, json};

/// Rules as teams write them; each is judged on every object.
const RULES: [&str; 20] = [
    "object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))",
    "object.spec.template.spec.containers.all(c, c.image.matches('^[a-z.]+/[a-z]+:[0-9.]+$'))",
    "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example/'))",
    "object.spec.template.spec.containers.all(c, has(c.resources) && has(c.resources.limits))",
    "object.spec.template.spec.containers.all(c, quantity(c.resources.limits.memory).isLessThan(quantity('1Gi')))",
    "object.spec.template.spec.containers.all(c, c.?securityContext.?privileged.orValue(false) == false)",
    "object.spec.template.spec.containers.all(c, c.env.all(e, e.name == e.name.upperAscii()))",
    "object.spec.template.spec.containers.exists_one(c, c.name == 'main')",
    "object.spec.replicas <= params.most",
    "object.spec.replicas >= 1",
    "object.metadata.labels.all(k, k.size() < 64)",
    "'app' in object.metadata.labels && object.metadata.labels.app == object.metadata.name",
    "object.spec.selector.matchLabels.all(k, object.spec.template.metadata.labels[k] == object.spec.selector.matchLabels[k])",
    "!has(object.spec.template.spec.hostNetwork) || !object.spec.template.spec.hostNetwork",
    "object.metadata.name.size() <= 52 && !object.metadata.name.contains('--')",
    "object.spec.template.spec.containers.map(c, c.ports.size()).sum() < 10",
    "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1024))",
    "oldObject == null || object.spec.selector == oldObject.spec.selector",
    "request.operation != 'UPDATE' || object.spec.replicas > 0",
    "object.spec.template.spec.?volumes.orValue([]).all(v, !has(v.hostPath))",
];

fn deployments(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let labels = format!("{{app: web-{number}, team: shop}}");
        let container = "{name: main, image: 'registry.example/web:1.2.3', ports: [{containerPort: 8080}], env: [{name: A, value: b}], \
             resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}}";
        let _ = write!(
            text,
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{number}, namespace: shop, labels: {labels}}}\nspec:\n  \
             replicas: 3\n  selector: {{matchLabels: {labels}}}\n  template:\n    metadata: {{labels: {labels}}}\n    spec: \
             {{containers: [{container}]}}\n"
        );
        text
    })
}

fn policy() -> Value {
    let rule = |(number, cel): (usize, &&str)| json!({"name": format!("R{number}"), "cel": cel, "params": {"most": 5}});
    let rules: Vec<Value> = RULES.iter().enumerate().map(rule).collect();
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules})
}

fn check(folder: &Path, policy: &str) {
    let status = Command::new(env!("CARGO_BIN_EXE_pushback"))
        .args(["check", "--cluster", "dir:live", "-f", "app.yaml", "--config", policy])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("the program starts").success());
}

pub(crate) fn custom_rules(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    for count in [1_000, 4_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("a file");
        std::fs::create_dir(folder.path().join("live")).expect("a folder");
        write("app.yaml", deployments(count));
        write("none.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\n".to_owned());
        write("rules.yaml", policy().to_string());
        group.throughput(Throughput::Elements(count as u64));
        for (name, policy) in [("without-own-rules", "none.yaml"), ("20-cel-rules", "rules.yaml")] {
            group
                .bench_function(BenchmarkId::new(name, count), |bencher| bencher.iter(|| check(folder.path(), policy)));
        }
    }
    group.finish();
}
