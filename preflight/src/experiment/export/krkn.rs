//! Krkn: a scenario file per experiment, and the part of its configuration that lists them by kind.

use serde_json::{Map, Value, json};

use super::OnPods;
use crate::experiment::InjectionType;

pub(super) fn scenario(pods: &OnPods<'_>) -> Value {
    if pods.is_kill() {
        let recovery = pods.entry.experiment.recovery_seconds();
        let config = json!({
            "namespace_pattern": format!("^{}$", pods.namespace),
            "label_selector": pods.selector(),
            "kill": pods.count(),
            "krkn_pod_recovery_time": recovery,
            "timeout": recovery,
        });
        return json!([{"id": "kill-pods", "config": config}]);
    }
    json!({"application_outage": {
        "duration": pods.ttl,
        "namespace": pods.namespace,
        "pod_selector": pods.labels,
        "block": ["Ingress", "Egress"],
    }})
}

/// Scenario files by kind.
#[derive(Debug, Default)]
pub(super) struct Scenarios {
    disruptions: Vec<String>,
    outages: Vec<String>,
}

impl Scenarios {
    pub(super) fn add(&mut self, kind: InjectionType, file: &str) {
        let files = if kind == InjectionType::PodKill { &mut self.disruptions } else { &mut self.outages };
        files.push(file.to_owned());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.disruptions.is_empty() && self.outages.is_empty()
    }

    /// The list of scenarios; paths are relative to the suite's folder.
    pub(super) fn config(&self) -> Value {
        let kinds = [("pod_disruption_scenarios", &self.disruptions), ("application_outages_scenarios", &self.outages)];
        let listed = kinds.into_iter().filter(|(_, files)| !files.is_empty());
        let listed: Vec<Map<String, Value>> =
            listed.map(|(kind, files)| Map::from_iter([(kind.to_owned(), json!(files))])).collect();
        json!({"kraken": {"chaos_scenarios": listed}})
    }
}
