//! What a verdict rests on: a deletion that is held and goes on, an operator that is at work, a value that met the upgrade.
//! Where there is nothing to rest on, it is inconclusive.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::Operator;
use crate::support::proxy::{FaultProxy, Verb, matching};
use crate::support::pushback::finish;
use crate::support::running::Running;
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_deletion_is_held_goes_on_and_is_taken_back,
        Controllers: a_deletion_that_could_not_be_taken_back_is_not_tried,
        Controllers: a_signal_lets_a_held_deletion_go_and_makes_the_object_again,
        Controllers: nothing_is_degraded_where_no_operator_is_at_work,
        Controllers: a_value_that_did_not_meet_the_upgrade_proves_nothing,
    ]
}

impl Operator {
    fn outcome(&self, experiment: &Value) -> Value {
        let file = self.write(experiment);
        self.run(&file).expect(0).json()["experiments"][0].clone()
    }

    fn held(&self, parameters: &Value) -> Value {
        self.experiment("held", "FinalizerBlock", "high", parameters)
    }

    fn settings(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps/settings", self.namespace)
    }
}

fn a_deletion_is_held_goes_on_and_is_taken_back() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let api = operator.cluster.api();
    let old = api.get(&operator.settings()).ok()["metadata"]["uid"].clone();
    let outcome = operator.outcome(&operator.experiment_named("finalizer"));
    assert_eq!(outcome["deletion"], json!({"held": true, "wentOn": true, "recreated": false}), "{outcome}");
    assert_eq!(outcome["verdict"], "Resilient", "{outcome}");
    assert_ne!(api.get(&operator.settings()).ok()["metadata"]["uid"], old, "it was deleted, and made again");
    operator.assert_as(&before, "held");
    operator.assert_quiet("operator", "held");
    // Its owner makes a ReplicaSet again, and the run leaves that as it is.
    let path = format!("/apis/apps/v1/namespaces/{}/replicasets", operator.namespace);
    let sets = api.list(&path);
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": sets[0]["metadata"]["name"]});
    let outcome = operator.outcome(&operator.held(&set));
    assert_eq!(outcome["deletion"], json!({"held": true, "wentOn": true, "recreated": true}), "{outcome}");
    let reason = outcome["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("its owner made the object again"), "{outcome}");
    assert!(!api.list(&path)[0].to_string().contains("pushback.dev/experiment"));
    operator.assert_as(&before, "made again by its owner");
}

fn a_deletion_that_could_not_be_taken_back_is_not_tried() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let namespace = &operator.namespace;
    let not_tried = |experiment: &Value| {
        let outcome = operator.outcome(experiment);
        assert_eq!((&outcome["verdict"], &outcome["changes"]), (&json!("Inconclusive"), &Value::Null), "{outcome}");
        let reason = outcome["reason"].as_str().unwrap_or_default().to_owned();
        reason.strip_prefix("the deletion was not tried: ").unwrap_or_else(|| panic!("{reason}")).to_owned()
    };
    let backup =
        json!({"apiVersion": format!("{namespace}.example.com/v1alpha1"), "kind": "Backup", "name": "nightly"});
    let name = format!("Backup {namespace}/nightly");
    let finalizer = "has finalizer example.com/theirs";
    let medium = operator.experiment("held", "FinalizerBlock", "medium", &backup);
    assert!(not_tried(&medium).ends_with("whose operator would clean up; dangerLevel high allows that"));
    let expected = format!("{name} {finalizer}, and nothing shows an operator that would remove it");
    assert!(not_tried(&operator.held(&backup)).ends_with(expected.split_once(' ').expect("words").1), "{expected}");
    let mut early = operator.experiment_named("finalizer");
    early["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
    operator.write(&early);
    operator.release(|text| text);
    let given = ["upgrade", "run", "finalizer.yaml", "--yes", "--format", "json", "--max-danger", "high"];
    let upgrade = ["--allow-namespace", namespace, "--upgrade", "-a", "backup", "-f", "operator"];
    let report = operator.place.run(&[&given[..], &upgrade].concat()).expect(21).json();
    let reason = report["experiments"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("an upgrade would wait for an object in deletion"), "{report}");
    operator.assert_as(&before, "not tried");
}

fn a_signal_lets_a_held_deletion_go_and_makes_the_object_again() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let mut held = operator.experiment_named("finalizer");
    held["spec"]["hypothesis"]["recoveryTimeout"] = json!("10m");
    let file = operator.write(&held);
    let arguments = operator.arguments(&file);
    let run = Running::start(operator.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    wait_until("its deletion is held", Duration::from_secs(60), || {
        let live = operator.cluster.api().get(&operator.settings()).ok();
        live["metadata"]["deletionTimestamp"].is_string().then_some(())
    });
    run.signal(Signal::TERM);
    let ran = run.finish();
    assert_eq!(ran.code, 143, "{ran:?}");
    operator.assert_as(&before, "interrupted");
    operator.assert_nothing_left("interrupted");
}

fn nothing_is_degraded_where_no_operator_is_at_work() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let mut drift = operator.experiment_named("drift");
    let settings = json!([{"type": "resourceExists", "apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    drift["spec"]["steadyState"]["checks"] = settings;
    let outcome = operator.outcome(&drift);
    assert_eq!(outcome["verdict"], "Inconclusive", "{outcome}");
    assert_eq!(
        outcome["reason"],
        "nobody undid it in time; the steady state held; nothing shows that an operator is at work there"
    );
    // Somebody writes the object while it is changed, as an operator does, and does not undo it.
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    let (api, path) = (operator.cluster.api().clone(), operator.settings());
    proxy.after(matching(Verb::Patch, "configmaps").named("settings").first(1), move |request| {
        if !request.dry_run {
            api.apply_with(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings",
                "namespace": path.split('/').nth(4).expect("a namespace"), "labels": {"seen": "1"}}}),
                "fieldManager=backup-operator",
            )
            .ok();
        }
    });
    operator.write(&drift);
    let arguments = operator.arguments("drift.yaml");
    let mut command = operator.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("KUBECONFIG", proxy.kubeconfig());
    let outcome = finish(command, b"").expect(0).json()["experiments"][0].clone();
    assert_eq!(outcome["verdict"], "Degraded", "{outcome}");
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings",
        "namespace": operator.namespace}});
    operator.cluster.api().apply_with(&nobody, "fieldManager=backup-operator").ok();
    operator.assert_as(&before, "drifted");
}

/// Somebody undoes the injection before the new release is applied.
fn a_value_that_did_not_meet_the_upgrade_proves_nothing() {
    let operator = Operator::deploy();
    let mut drift = operator.experiment_named("drift");
    drift["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
    operator.place.write("suite/drift.yaml", drift.to_string());
    operator.release(|text| text);
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    let (api, path) = (operator.cluster.api().clone(), operator.settings());
    proxy.after(matching(Verb::Patch, "configmaps").named("settings"), move |request| {
        let is_injected = request.json().to_string().contains("chaos-drift");
        if !request.dry_run && is_injected {
            api.merge_patch(&path, &json!({"data": {"mode": "fast"}})).ok();
        }
    });
    let arguments = operator.upgrade_arguments();
    let mut command = operator.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("KUBECONFIG", proxy.kubeconfig());
    let report = finish(command, b"").expect(0).json();
    let outcome = &report["experiments"][0];
    assert_eq!(outcome["verdict"], "Inconclusive", "{outcome}");
    let reason = outcome["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("not exercised: somebody changed data.mode of ConfigMap"), "{outcome}");
}
