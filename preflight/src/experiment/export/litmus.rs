//! Litmus: a `ChaosEngine`. The faults `pod-delete` and `pod-network-partition` and the ServiceAccount must already be
//! installed in the namespace.

use serde_json::{Value, json};

use super::OnPods;

/// The ServiceAccount that the Litmus documentation creates.
const SERVICE_ACCOUNT: &str = "litmus-admin";

pub(super) fn object(pods: &OnPods<'_>) -> Value {
    let workload = pods.entry.experiment.checks.iter().map(|check| check.object_kind.to_lowercase());
    let mut workload = workload.filter(|kind| matches!(kind.as_str(), "deployment" | "statefulset" | "daemonset"));
    let variable = |name: &str, value: String| json!({"name": name, "value": value});
    let (fault, environment) = if pods.is_kill() {
        let ttl = pods.entry.experiment.recovery_seconds();
        let environment = vec![
            variable("TOTAL_CHAOS_DURATION", ttl.to_string()),
            // The interval equals the duration, so there is one round.
            variable("CHAOS_INTERVAL", ttl.to_string()),
            variable("FORCE", "true".to_owned()),
            variable("PODS_AFFECTED_PERC", "0".to_owned()),
        ];
        ("pod-delete", environment)
    } else {
        let environment =
            vec![variable("TOTAL_CHAOS_DURATION", pods.ttl.to_string()), variable("POLICY_TYPES", "all".to_owned())];
        ("pod-network-partition", environment)
    };
    json!({
        "apiVersion": "litmuschaos.io/v1alpha1",
        "kind": "ChaosEngine",
        "metadata": pods.metadata(),
        "spec": {
            "engineState": "active",
            "appinfo": {
                "appns": pods.namespace,
                "applabel": pods.selector(),
                "appkind": workload.next().unwrap_or_else(|| "deployment".to_owned()),
            },
            "chaosServiceAccount": SERVICE_ACCOUNT,
            "experiments": [{"name": fault, "spec": {"components": {"env": environment}}}],
        },
    })
}
