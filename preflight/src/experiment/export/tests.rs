//! The export of one experiment of each kind to each tool.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::experiment::suite::SuiteExperiment;
use crate::experiment::{BlastRadius, Check, Experiment, Hypothesis, Injection};

fn entry(name: &str, kind: InjectionType, selector: &str) -> SuiteExperiment {
    let parameters = BTreeMap::from([("labelSelector".to_owned(), selector.to_owned())]);
    let check = Check { kind: "resourceExists".to_owned(), object_kind: "StatefulSet".to_owned(), ..Check::default() };
    SuiteExperiment {
        file: format!("{name}.yaml"),
        experiment: Experiment {
            name: name.to_owned(),
            checks: vec![check],
            injection: Injection { kind, parameters, count: 1, ttl_seconds: 90, ..Injection::default() },
            blast_radius: BlastRadius { allowed_namespaces: vec!["shop".to_owned()], ..BlastRadius::default() },
            hypothesis: Hypothesis { recovery_timeout_seconds: 300, ..Hypothesis::default() },
            ..Experiment::default()
        },
        ..SuiteExperiment::default()
    }
}

fn suite() -> Suite {
    Suite {
        experiments: vec![
            entry("kill", InjectionType::PodKill, "app=web,tier=a"),
            entry("cut", InjectionType::NetworkPartition, "app=web"),
            entry("some", InjectionType::PodKill, "app in (a,b)"),
            entry("drift", InjectionType::ConfigDrift, ""),
        ],
        ..Suite::default()
    }
}

fn exported(tool: Tool) -> BTreeMap<String, Value> {
    let export = export(&suite(), tool);
    let left_out: Vec<(&str, &str)> =
        export.left_out.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
    let nothing_like = format!("{} has nothing like ConfigDrift", tool.as_str());
    assert_eq!(left_out, [("some", "its selector needs more than equal labels"), ("drift", nothing_like.as_str())]);
    export.files.into_iter().collect()
}

#[test]
fn chaos_mesh_kills_one_pod_and_partitions_all() {
    let files = exported(Tool::ChaosMesh);
    let selector = json!({"namespaces": ["shop"], "labelSelectors": {"app": "web", "tier": "a"}});
    let kill = &files["chaos-mesh/kill.yaml"];
    assert_eq!((&kill["kind"], &kill["metadata"]["namespace"]), (&json!("PodChaos"), &json!("shop")));
    assert_eq!(kill["spec"], json!({"action": "pod-kill", "mode": "one", "gracePeriod": 0, "selector": selector}));
    assert_eq!(
        files["chaos-mesh/cut.yaml"]["spec"],
        json!({
            "action": "partition", "mode": "all", "direction": "both", "duration": "90s",
            "selector": {"namespaces": ["shop"], "labelSelectors": {"app": "web"}},
        })
    );
}

#[test]
fn chaos_mesh_kills_as_many_as_are_asked_for() {
    let mut suite = suite();
    suite.experiments[0].experiment.injection.count = 3;
    let (_, kill) = &export(&suite, Tool::ChaosMesh).files[0];
    assert_eq!((&kill["spec"]["mode"], &kill["spec"]["value"]), (&json!("fixed"), &json!("3")));
}

#[test]
fn litmus_gets_an_engine_each() {
    let files = exported(Tool::Litmus);
    let kill = &files["litmus/kill.yaml"]["spec"];
    assert_eq!(kill["appinfo"], json!({"appns": "shop", "applabel": "app=web,tier=a", "appkind": "statefulset"}));
    assert_eq!(kill["experiments"][0]["name"], "pod-delete");
    assert_eq!(
        files["litmus/cut.yaml"]["spec"]["experiments"],
        json!([{
            "name": "pod-network-partition",
            "spec": {"components": {"env": [
                {"name": "TOTAL_CHAOS_DURATION", "value": "90"}, {"name": "POLICY_TYPES", "value": "all"},
            ]}},
        }])
    );
}

#[test]
fn krkn_gets_scenarios_and_the_list_of_them() {
    let files = exported(Tool::Krkn);
    assert_eq!(
        files["krkn/kill.yaml"],
        json!([{"id": "kill-pods", "config": {
            "namespace_pattern": "^shop$", "label_selector": "app=web,tier=a", "kill": 1, "krkn_pod_recovery_time": 300,
            "timeout": 300,
        }}])
    );
    assert_eq!(
        files["krkn/cut.yaml"],
        json!({"application_outage": {
            "duration": 90, "namespace": "shop", "pod_selector": {"app": "web"}, "block": ["Ingress", "Egress"],
        }})
    );
    assert_eq!(
        files["krkn/config.yaml"],
        json!({"kraken": {"chaos_scenarios": [
            {"pod_disruption_scenarios": ["krkn/kill.yaml"]}, {"application_outages_scenarios": ["krkn/cut.yaml"]},
        ]}})
    );
}
