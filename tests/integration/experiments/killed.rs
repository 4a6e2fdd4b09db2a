//! Runs of experiments that are killed, interrupted or interfered with, and what is taken back afterwards.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Operator, SECRET};
use crate::kill_points::killed;
use crate::support::proxy::writes;
use crate::support::pushback::Ran;
use crate::support::running::Running;
use crate::support::{TestCase, cases, rounds, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_run_killed_at_any_write_of_any_type_is_taken_back,
        Controllers: a_signal_takes_back_what_is_injected_and_nobody_else_may_before,
        Controllers: what_somebody_has_changed_since_is_left_and_named,
        Controllers: nothing_runs_before_a_killed_run_is_taken_back,
        Controllers: a_forged_journal_changes_nothing,
        Controllers: a_journal_of_secret_values_is_a_secret,
    ]
}

impl Operator {
    fn recover(&self) -> Ran {
        self.place.run(&["upgrade", "recover", "--allow-namespace", &self.namespace, "--yes"])
    }

    fn journals(&self) -> Vec<Value> {
        let list = |kind: &str| {
            let path =
                format!("/api/v1/namespaces/{}/{kind}?labelSelector=pushback.dev/experiment=journal", self.namespace);
            self.cluster.api().list(&path)
        };
        [list("configmaps"), list("secrets")].concat()
    }

    /// Kills a run once its injection has been answered.
    fn kill_after_injection(&self, experiment: &Value) {
        let file = self.write(experiment);
        let journal = killed(self.cluster, &self.place, &self.arguments(&file), writes().nth(3), true);
        assert!(journal.is_some(), "the run has ended");
        assert_eq!(self.journals().len(), 1);
    }
}

/// After the lock, the journal, the injection, the taking back, the end of the journal and of the lock: each time it is
/// killed once the server has done what it asked, whether or not the run has heard of it.
fn a_run_killed_at_any_write_of_any_type_is_taken_back() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let mut points = BTreeMap::new();
    for experiment in operator.experiments() {
        let file = operator.write(&experiment);
        let mut number = 1;
        for answered in [false, true].into_iter().take(rounds(1, 2)) {
            number = 1;
            while let Some(proxy) =
                killed(operator.cluster, &operator.place, &operator.arguments(&file), writes().nth(number), answered)
            {
                drop(proxy);
                let point = format!("{file} killed at write {number}, answered: {answered}");
                operator.recover().expect(0);
                operator.assert_as(&before, &point);
                assert_eq!(operator.recover().expect(0).stdout, "Nothing is left to take back.\n", "{point}");
                // A lock that is all that was left goes with the next run.
                number += 1;
            }
            operator.assert_as(&before, &file);
        }
        assert!(number > 4, "{file} has more than {number} writes");
        points.insert(file, number - 1);
    }
    let _ = writeln!(std::io::stderr(), "experiments killed at each of these many writes: {points:?}");
}

fn a_signal_takes_back_what_is_injected_and_nobody_else_may_before() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let selector = json!({"labelSelector": format!("app.kubernetes.io/name={}-operator", operator.namespace)});
    let mut partition = operator.experiment("partition", "NetworkPartition", "medium", &selector);
    partition["spec"]["hypothesis"]["recoveryTimeout"] = json!("10m");
    let file = operator.write(&partition);
    let arguments = operator.arguments(&file);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = Running::start(operator.place.command(&arguments));
    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", operator.namespace);
    wait_until("it is injected", Duration::from_secs(60), || {
        (!operator.cluster.api().list(&policies).is_empty()).then_some(())
    });
    let impatient = ["--allow-namespace", &operator.namespace, "--yes", "--lock-wait", "0s"];
    operator.place.run(&[&["upgrade", "recover"][..], &impatient].concat()).expect(12);
    operator.place.run(&[&["upgrade", "run", &file][..], &impatient].concat()).expect(12);
    run.signal(Signal::TERM);
    let ran = run.finish();
    assert_eq!(ran.code, 143, "{ran:?}");
    let outcome = &ran.json()["experiments"][0];
    assert_eq!(outcome["reason"], "interrupted; what was injected is taken back");
    operator.assert_as(&before, "interrupted");
}

fn what_somebody_has_changed_since_is_left_and_named() {
    let operator = Operator::deploy();
    let drift = json!({"name": "settings", "key": "mode", "value": "chaos-drift"});
    operator.kill_after_injection(&operator.experiment("drift", "ConfigDrift", "medium", &drift));
    let path = format!("/api/v1/namespaces/{}/configmaps/settings", operator.namespace);
    operator.cluster.api().merge_patch(&path, &json!({"data": {"mode": "theirs", "more": "1"}})).ok();
    let ran = operator.recover().expect(0);
    let line = format!(
        "left as it is: data.mode of ConfigMap {}/settings: changed since by somebody else\n",
        operator.namespace
    );
    assert_eq!(ran.stdout, line);
    let object = operator.cluster.api().get(&path).ok();
    assert_eq!(object["data"], json!({"level": "1", "mode": "theirs", "more": "1"}));
    assert!(!object["metadata"]["annotations"].to_string().contains("pushback.dev/experiment"), "{object}");
    assert_eq!(operator.journals().len(), 0);
}

fn nothing_runs_before_a_killed_run_is_taken_back() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let drift = json!({"name": "settings", "key": "mode", "value": "chaos-drift"});
    let drift = operator.experiment("drift", "ConfigDrift", "medium", &drift);
    operator.kill_after_injection(&drift);
    let ran = operator.run("drift.yaml").expect(1);
    assert!(ran.stderr.contains("pushback upgrade recover"), "{}", ran.stderr);
    operator.recover().expect(0);
    operator.assert_as(&before, "recovered");
    operator.run("drift.yaml").expect(0);
}

/// Who may write ConfigMaps and Secrets of a namespace must gain nothing else by it when somebody recovers.
fn a_forged_journal_changes_nothing() {
    let operator = Operator::deploy();
    let namespace = operator.namespace.clone();
    let api = operator.cluster.api();
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{namespace}-operator");
    let target = api.get(&binding).ok();
    let before = operator.contents();
    let journal = |steps: Value| {
        json!({"schemaVersion": 1, "run": "forged", "experiment": "forged", "injection": "RBACRevoke",
            "started": "2026-01-01T00:00:00Z", "steps": steps})
        .to_string()
    };
    let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}]);
    let fields = journal(json!([{
        "target": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "name": format!("{namespace}-operator"), "uid": target["metadata"]["uid"], "resourceVersion": "1"},
        "change": {"fields": [{"place": [{"key": "subjects"}], "before": subjects, "after": target["subjects"]}]},
    }]));
    let elsewhere = journal(json!([{
        "target": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "kube-system", "name": "forged", "uid": "1"},
        "change": {"deleted": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "kube-system", "name": "forged"}}},
    }]));
    for (name, text) in [("fields", fields), ("elsewhere", elsewhere)] {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("pushback-experiment-{name}"), "labels": {"pushback.dev/experiment": "journal"}},
            "data": {"journal": base64::engine::general_purpose::STANDARD.encode(text)},
        });
        api.post(&format!("/api/v1/namespaces/{namespace}/secrets"), &object).ok();
    }
    let ran = operator.recover().expect(20);
    assert!(ran.stdout.contains("does not carry the experiment's mark"), "{}", ran.stdout);
    assert!(ran.stdout.contains("its journal is in another namespace"), "{}", ran.stdout);
    assert_eq!(api.get(&binding).ok()["subjects"], target["subjects"]);
    assert_eq!(api.get("/api/v1/namespaces/kube-system/configmaps/forged").status, 404);
    api.delete(&format!("/api/v1/namespaces/{namespace}/secrets/pushback-experiment-elsewhere")).ok();
    operator.assert_as(&before, "forged");
}

fn a_journal_of_secret_values_is_a_secret() {
    let operator = Operator::deploy();
    for (name, kind, parameters) in [
        (
            "drift-secret",
            "ConfigDrift",
            json!({"name": "credentials", "key": "password", "value": "y", "resourceType": "Secret"}),
        ),
        ("delete-secret", "SecretDeletion", json!({"name": "credentials", "namespace": operator.namespace})),
    ] {
        operator.kill_after_injection(&operator.experiment(name, kind, "high", &parameters));
        assert_eq!(operator.journals()[0]["data"]["journal"].as_str().map(str::is_empty), Some(false));
        let maps = operator.cluster.api().list(&format!("/api/v1/namespaces/{}/configmaps", operator.namespace));
        let encoded = base64::engine::general_purpose::STANDARD.encode(SECRET);
        assert!(!maps.iter().any(|map| map.to_string().contains(SECRET) || map.to_string().contains(&encoded)));
        let ran = operator.recover().expect(0);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET));
        let secret = format!("/api/v1/namespaces/{}/secrets/credentials", operator.namespace);
        assert_eq!(operator.cluster.api().get(&secret).ok()["data"]["password"], encoded.as_str(), "{name}");
    }
}
