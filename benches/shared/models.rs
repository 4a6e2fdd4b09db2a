//! Operator models of the benchmarks: two releases as people write them, with so many components of which each tenth is
//! renamed.

use std::fmt::Write as _;

/// Components of a model.
pub(crate) const COMPONENTS: usize = 200;

/// Both releases.
pub(crate) fn models() -> [String; 2] {
    [model("2.20.0", "v1", ""), model("2.21.0", "v2", "-manager")]
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
