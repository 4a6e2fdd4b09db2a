//! Experiments around an upgrade: what is injected before it, what it did, and what is judged afterwards.

use serde_json::{Value, json};

use super::{Operator, managers};
use crate::support::proxy::{Fault, FaultProxy, Verb, matching};
use crate::support::pushback::{Pushback, Ran, finish};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: an_upgrade_is_made_after_the_injections_that_belong_before_it,
        Controllers: an_upgrade_that_loses_data_fails,
        Controllers: experiment_whose_value_leaves_the_schema_fails_at_once,
        Controllers: a_kind_that_has_gone_since_it_was_discovered_holds_no_data,
        Controllers: without_an_upgrade_what_needs_one_is_skipped,
        Controllers: what_is_generated_from_two_releases_runs,
        Controllers: several_experiments_into_one_object_meet_an_upgrade_together,
        Controllers: experiments_into_one_object_run_one_after_the_other,
        Controllers: an_operator_that_moves_is_judged_where_it_is_after_the_upgrade,
    ]
}

impl Operator {
    /// An experiment that belongs before the upgrade, and one behind it.
    fn suite(&self) {
        let backup = json!({"apiVersion": format!("{}.example.com/v1alpha1", self.namespace), "kind": "Backup",
            "name": "nightly", "field": "keep", "value": "3"});
        let mut before = self.experiment("before", "CRDMutation", "medium", &backup);
        before["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
        let mut schedule = backup.clone();
        schedule["value"] = json!("4");
        let mut after = self.experiment("behind", "CRDMutation", "medium", &schedule);
        after["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "post-upgrade"});
        self.place.write("suite/a.yaml", after.to_string()).write("suite/b.yaml", before.to_string());
    }

    /// The new release: another image, no Service, and whatever else becomes of the definition.
    pub(super) fn release(&self, definition: impl Fn(String) -> String) {
        for file in ["crd.yaml", "operator.yaml", "backup.yaml", "more.yaml"] {
            let text = self.place.read(&format!("operator/{file}"));
            let text = match file {
                "crd.yaml" => definition(text),
                "more.yaml" => {
                    let documents = text.split("\n---\n").filter(|document| !document.contains("\"kind\":\"Service\""));
                    documents.collect::<Vec<_>>().join("\n---\n")
                }
                _ => text.replace("operator:1.0.0", "operator:1.1.0"),
            };
            self.place.write(&format!("new/{file}"), text);
        }
        let config = "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules: []\n";
        self.place.write("new/config.yaml", config);
    }

    fn upgrade(&self) -> Ran {
        let allowed = ["--allow-namespace", &self.namespace];
        let given = ["upgrade", "run", "suite", "--yes", "--format", "json", "--upgrade", "-a", "backup", "-f", "new"];
        self.place.run(&[&given[..], &allowed].concat())
    }
}

fn checks(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = report["upgrade"]["checks"].as_array().expect("checks").iter();
    checks
        .filter(|check| check["passed"] == false)
        .map(|check| (text(&check["check"]), text(&check["detail"])))
        .collect()
}

fn an_upgrade_is_made_after_the_injections_that_belong_before_it() {
    let operator = Operator::deploy();
    operator.suite();
    operator.release(|text| text);
    let report = operator.upgrade().expect(0).json();
    assert_eq!(checks(&report), [], "{report}");
    assert_eq!(report["upgrade"]["passed"], true);
    let names: Vec<&str> =
        report["experiments"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["before", "behind"]);
    let api = operator.cluster.api();
    let namespace = &operator.namespace;
    let deployment = api.get(&format!("/apis/apps/v1/namespaces/{namespace}/deployments/{namespace}-operator")).ok();
    assert_eq!(
        deployment["spec"]["template"]["spec"]["containers"][0]["image"],
        "registry.example/backup/operator:1.1.0"
    );
    assert_eq!(api.get(&format!("/api/v1/namespaces/{namespace}/services/metrics")).status, 404);
    let nightly = api.get(&format!("/apis/{namespace}.example.com/v1/namespaces/{namespace}/backups/nightly")).ok();
    assert_eq!(nightly["spec"]["keep"], 7, "taken back after the upgrade");
    assert!(!nightly.to_string().contains("pushback.dev/experiment"), "{nightly}");
}

fn a_kind_that_has_gone_since_it_was_discovered_holds_no_data() {
    let operator = Operator::deploy();
    operator.suite();
    operator.release(|text| text);
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    proxy.on(matching(Verb::List, "backups"), Fault::status(404));
    let mut command =
        operator.place.command(&operator.upgrade_arguments().iter().map(String::as_str).collect::<Vec<_>>());
    command.env("KUBECONFIG", proxy.kubeconfig());
    let report = finish(command, b"").expect(0).json();
    assert_eq!(checks(&report), [], "{report}");
    assert_ne!(proxy.count(&matching(Verb::List, "backups")), 0);
}

fn an_upgrade_that_loses_data_fails() {
    let operator = Operator::deploy();
    operator.suite();
    let namespace = &operator.namespace;
    let theirs = json!({"apiVersion": format!("{namespace}.example.com/v1"), "kind": "Backup",
        "metadata": {"namespace": namespace, "name": "theirs"},
        "spec": {"claimName": "data", "schedule": "0 0 * * *", "keep": 5}});
    operator.cluster.api().apply(&theirs).ok();
    // The field gets another name: what was stored in it is pruned.
    operator.release(|text| text.replace("keep:", "retain:"));
    let report = operator.upgrade().expect(20).json();
    assert_eq!(
        checks(&report),
        [
            (format!("data of Backup {namespace}/nightly is kept"), "lost: spec.keep".to_owned()),
            (format!("data of Backup {namespace}/theirs is kept"), "lost: spec.keep".to_owned()),
        ]
    );
    assert_eq!(report["outcome"], "Failed");
    let deviations = report["experiments"][0]["deviations"].as_array().expect("deviations").iter();
    let names: Vec<&str> = deviations.filter_map(|deviation| deviation["name"].as_str()).collect();
    assert_eq!(names, ["lost", "changed_by_another"], "{report}");
    assert_eq!(report["experiments"][0]["lost"], json!([format!("spec.keep of Backup {namespace}/nightly")]));
    assert_eq!(report["experiments"][0]["verdict"], "Failed", "{report}");
    assert_eq!(operator.journals().len(), 1, "it says what was there before");
}

/// The field is absent before, so that everything is as before once the value is lost.
fn experiment_whose_value_leaves_the_schema_fails_at_once() {
    let operator = Operator::deploy();
    let namespace = &operator.namespace;
    let storage = "storage: {type: object, properties: {type: {type: string}, bucket: {type: string}}}";
    let crd = operator.place.read("operator/crd.yaml");
    let line = crd.lines().find(|line| line.trim_start().starts_with("keep:")).expect("the field").to_owned();
    let indent = &line[..line.len() - line.trim_start().len()];
    operator.place.write("operator/crd.yaml", crd.replace(&line, &format!("{indent}{storage}\n{line}")));
    operator.apply("operator").expect(0);
    let backup = json!({"apiVersion": format!("{namespace}.example.com/v1alpha1"), "kind": "Backup", "name": "nightly",
        "field": "storage", "value": "{\"type\": \"s3\", \"bucket\": \"models\"}"});
    let mut experiment = operator.experiment("storage", "CRDMutation", "high", &backup);
    experiment["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
    experiment["spec"]["blastRadius"]["allowDangerous"] = json!(true);
    experiment["spec"]["hypothesis"]["recoveryTimeout"] = json!("30m");
    operator.place.write("suite/a.yaml", experiment.to_string());
    operator.release(|text| text.replace(storage, "other: {type: string}"));
    let given = ["upgrade", "run", "suite", "--yes", "--max-danger", "high", "--upgrade", "-a", "backup", "-f", "new"];
    let more = ["--allow-namespace", namespace, "--report", "json=run.json", "--report", "junit=run.xml"];
    // The wait of half an hour ends with the field.
    let ran = operator.place.run(&[&given[..], &more].concat()).expect(21);
    let report: Value = serde_json::from_str(&operator.place.read("run.json")).expect("a report");
    let outcome = &report["experiments"][0];
    assert_eq!((&report["outcome"], &outcome["verdict"]), (&json!("Failed"), &json!("Failed")), "{report}");
    let lost = ["spec.storage.bucket", "spec.storage.type"].map(|path| format!("{path} of Backup {namespace}/nightly"));
    assert_eq!(outcome["lost"], json!(lost), "{report}");
    assert_eq!(
        checks(&report),
        [(
            format!("data of Backup {namespace}/nightly is kept"),
            "lost: spec.storage.bucket, spec.storage.type".to_owned()
        )]
    );
    assert!(ran.stdout.contains("\n1 failed; the upgrade failed 1 of "), "{}", ran.stdout);
    assert!(ran.stderr.contains("an experiment ended Failed"), "{}", ran.stderr);
    let junit = operator.place.read("run.xml");
    assert!(junit.contains("failures=\"2\""), "{junit}");
    assert!(operator.journals().is_empty(), "everything else is as before");
}

fn without_an_upgrade_what_needs_one_is_skipped() {
    let operator = Operator::deploy();
    operator.suite();
    let report = operator.run("suite").expect(0).json();
    let outcome = &report["experiments"][0];
    assert_eq!((&outcome["name"], &outcome["verdict"]), (&json!("before"), &json!("Skipped")));
    assert!(outcome["reason"].as_str().is_some_and(|reason| reason.starts_with("needs upgrade")), "{outcome}");
    assert_eq!(report["experiments"][1]["verdict"], "Resilient", "{report}");
}

/// A model of the operator, or of what it was before it had this component.
fn model(namespace: &str, version: &str, has_operator: bool) -> String {
    let part = |name: &str, labels: Value| {
        json!({"name": name, "controller": "Backup", "managedResources": [{"apiVersion": "apps/v1", "kind": "Deployment",
            "name": name, "namespace": namespace, "labels": labels}]})
    };
    let name = format!("{namespace}-operator");
    let mut components = vec![part("other", json!({"app": "other"}))];
    if has_operator {
        let mut operator = part(&name, json!({"app.kubernetes.io/name": name}));
        operator["steadyState"] = json!({"timeout": "60s", "checks": [{"type": "conditionTrue", "apiVersion": "apps/v1",
            "kind": "Deployment", "name": name, "namespace": namespace, "conditionType": "Available"}]});
        components.push(operator);
    }
    json!({
        "operator": {"name": "backup", "namespace": namespace, "version": version},
        "components": components,
        "recovery": {"reconcileTimeout": "60s", "maxReconcileCycles": 10},
    })
    .to_string()
}

fn what_is_generated_from_two_releases_runs() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let namespace = operator.namespace.as_str();
    operator
        .place
        .write("old.yaml", model(namespace, "1.0.0", false))
        .write("new.yaml", model(namespace, "2.0.0", true));
    let simulate = ["upgrade", "simulate", "--from", "old.yaml", "--to", "new.yaml", "--execute", "--yes"];
    let more = ["--format", "json", "--allow-namespace", namespace];
    let report = operator.place.run(&[&simulate[..], &more].concat()).expect(0).json();
    let outcomes = report["experiments"].as_array().expect("a list");
    assert_eq!(outcomes.len(), 1, "{report}");
    assert_eq!(
        (&outcomes[0]["injection"], &outcomes[0]["verdict"]),
        (&json!("PodKill"), &json!("Resilient")),
        "{report}"
    );
    operator.assert_as(&before, "simulated");
    let ran = operator.place.run(&["simulate-upgrade", "--recover", "--allow-namespace", namespace]).expect(0);
    assert_eq!(ran.stdout, "Nothing is left to take back.\n");
}

/// Different fields of one object are changed at once, with one journal; the same field only by the first.
fn several_experiments_into_one_object_meet_an_upgrade_together() {
    let operator = Operator::deploy();
    let namespace = &operator.namespace;
    let write = |file: &str, name: &str, field: &str, value: &str| {
        let backup = json!({"apiVersion": format!("{namespace}.example.com/v1alpha1"), "kind": "Backup",
            "name": "nightly", "field": field, "value": value});
        let mut experiment = operator.experiment(name, "CRDMutation", "medium", &backup);
        experiment["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
        operator.place.write(&format!("suite/{file}.yaml"), experiment.to_string());
    };
    write("a", "keep", "keep", "3");
    write("b", "schedule", "schedule", "\"1 2 * * *\"");
    write("c", "keep-again", "keep", "4");
    write("d", "wrong", "schedule", "7");
    let before = operator.cluster.api().get(&operator.backup()).ok();
    operator.release(|text| text);
    let arguments = operator.upgrade_arguments();
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    let mut command = operator.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("KUBECONFIG", proxy.kubeconfig());
    let report = finish(command, b"").expect(0).json();
    assert_eq!(checks(&report), [], "{report}");
    let mut outcomes: Vec<(&str, &str, &str)> = Vec::new();
    for outcome in report["experiments"].as_array().expect("a list") {
        let text = |key: &str| outcome[key].as_str().unwrap_or_default();
        outcomes.push((text("name"), text("verdict"), text("reason")));
    }
    outcomes.sort_unstable();
    let taken = "not exercised: keep changes spec.keep for the same upgrade; run this one with another upgrade";
    assert_eq!(outcomes[0], ("keep", "Resilient", "the steady state held"), "{report}");
    assert_eq!(outcomes[1], ("keep-again", "Inconclusive", taken), "{report}");
    assert_eq!(outcomes[2], ("schedule", "Resilient", "the steady state held"), "{report}");
    assert_eq!((outcomes[3].0, outcomes[3].1), ("wrong", "Inconclusive"), "{report}");
    let journals = matching(Verb::Create, "secrets").that(|request| request.json().to_string().contains("journal"));
    assert_eq!(proxy.count(&journals), 1, "one change, one journal: {:?}", proxy.counts());
    let after = operator.cluster.api().get(&operator.backup()).ok();
    assert_eq!((&after["spec"], managers(&after)), (&before["spec"], managers(&before)), "taken back");
    assert!(!after.to_string().contains("pushback.dev/experiment"), "{after}");
}

fn experiments_into_one_object_run_one_after_the_other() {
    let operator = Operator::deploy();
    let before = operator.contents();
    for (file, value) in [("a", "3"), ("b", "4")] {
        let backup = json!({"apiVersion": format!("{}.example.com/v1alpha1", operator.namespace), "kind": "Backup",
            "name": "nightly", "field": "keep", "value": value});
        let experiment = operator.experiment(file, "CRDMutation", "medium", &backup);
        operator.place.write(&format!("suite/{file}.yaml"), experiment.to_string());
    }
    let report = operator.run("suite").expect(0).json();
    for outcome in report["experiments"].as_array().expect("a list") {
        assert_eq!(outcome["verdict"], "Resilient", "{report}");
    }
    operator.assert_as(&before, "one after the other");
}

/// Before the upgrade it is in its steady state in the old namespace, where its traffic is denied; after it in the new one.
fn an_operator_that_moves_is_judged_where_it_is_after_the_upgrade() {
    let cluster = TestCluster::shared();
    let (old, new) = (cluster.namespace("moved"), cluster.namespace("moved"));
    let place = Pushback::on(cluster);
    for (side, namespace, version) in [("old", &old, "1.0.0"), ("new", &new, "2.0.0")] {
        let name = format!("{old}-operator");
        let labels = json!({"app": name});
        let check = json!({"type": "conditionTrue", "apiVersion": "apps/v1", "kind": "Deployment", "name": name,
            "namespace": namespace, "conditionType": "Available"});
        let model = json!({
            "operator": {"name": "moving", "namespace": namespace, "version": version},
            "components": [{"name": "operator", "controller": "Moving", "managedResources": [{"apiVersion": "apps/v1",
                "kind": "Deployment", "name": name, "namespace": namespace, "labels": labels}],
                "steadyState": {"timeout": "60s", "checks": [check]}}],
            "recovery": {"reconcileTimeout": "60s", "maxReconcileCycles": 10},
        });
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "operator", "image": "registry.example/operator:1"}]}}}});
        place.write(&format!("{side}.yaml"), model.to_string());
        place.write(&format!("{side}/operator.yaml"), deployment.to_string());
    }
    place.run(&["apply", "-a", "moving", "-n", &old, "--yes", "-f", "old"]).expect(0);
    place.run(&["upgrade", "simulate", "--from", "old.yaml", "--to", "new.yaml", "--output", "suite"]).expect(0);
    for entry in std::fs::read_dir(place.directory().join("suite")).expect("a suite").flatten() {
        let file = format!("suite/{}", entry.file_name().to_string_lossy());
        let text = place.read(&file).replace("recoveryTimeout: 60s", "recoveryTimeout: 1s");
        place.write(&file, text);
    }
    let given = ["upgrade", "run", "suite", "--allow-namespace", &old, "--allow-namespace", &new, "--yes"];
    let upgrade = ["--upgrade", "-a", "moving", "-n", &old, "-f", "new", "--fail-on-verdict", "degraded"];
    let report = place.run(&[&given[..], &upgrade, &["--format", "json"]].concat()).expect(0).json();
    assert_eq!(checks(&report), [], "{report}");
    let outcomes = report["experiments"].as_array().expect("a list");
    assert_eq!(outcomes.len(), 2, "{report}");
    let check = |namespace: &str| json!([{"check": format!("Deployment {namespace}/{old}-operator is Available"), "passed": true}]);
    for (outcome, side) in outcomes.iter().zip([&old, &new]) {
        assert_eq!((&outcome["namespace"], &outcome["before"]), (&json!(side), &check(side)), "{report}");
        assert_eq!((&outcome["underFault"], &outcome["after"]), (&check(&new), &check(&new)), "{report}");
        // Nobody enforces the policy on this control plane.
        assert_eq!(outcome["verdict"], "Inconclusive", "{report}");
    }
}
