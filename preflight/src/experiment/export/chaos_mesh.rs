//! Chaos Mesh 2.x: `PodChaos` kills pods, `NetworkChaos` partitions them.

use serde_json::{Value, json};

use super::OnPods;

pub(super) fn object(pods: &OnPods<'_>) -> Value {
    let selector = json!({"namespaces": [pods.namespace], "labelSelectors": pods.labels});
    let (kind, spec) = if pods.is_kill() {
        let mut spec = json!({"action": "pod-kill", "mode": "one", "gracePeriod": 0, "selector": selector});
        if pods.count() > 1 {
            spec["mode"] = json!("fixed");
            spec["value"] = json!(pods.count().to_string());
        }
        ("PodChaos", spec)
    } else {
        let duration = format!("{}s", pods.ttl);
        let spec = json!({
            "action": "partition", "mode": "all", "direction": "both", "duration": duration, "selector": selector,
        });
        ("NetworkChaos", spec)
    };
    json!({"apiVersion": "chaos-mesh.org/v1alpha1", "kind": kind, "metadata": pods.metadata(), "spec": spec})
}
