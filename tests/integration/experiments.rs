//! Experiments that really run: an operator is deployed, each type of injection is made and taken back, and whatever
//! was there before is there again. Killed at any write, they are taken back by the next run.

mod foreign;
mod foreseen;
mod killed;
mod killed_upgrades;
mod origins;
mod refused_upgrades;
mod unexercised;
mod upgraded;
mod webhooks;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::proxy::{FaultProxy, writes};
use crate::support::pushback::{Pushback, Ran, finish};
use crate::support::webhook::{Verdict, Webhook};
use crate::support::{TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    [
        cases![
            Controllers: every_type_is_made_taken_back_and_judged_and_the_next_deploy_is_quiet,
            Controllers: a_dry_run_writes_nothing,
            Controllers: what_may_not_be_injected_is_skipped_and_says_why,
        ],
        foreign::tests(),
        foreseen::tests(),
        killed::tests(),
        killed_upgrades::tests(),
        origins::tests(),
        refused_upgrades::tests(),
        unexercised::tests(),
        upgraded::tests(),
        webhooks::tests(),
    ]
    .concat()
}

/// The operator of the examples, with a webhook and what an operator owns, in a namespace of its own.
struct Operator {
    cluster: &'static TestCluster,
    namespace: String,
    place: Pushback,
    webhook: Webhook,
}

impl Operator {
    fn deploy() -> Self {
        let cluster = TestCluster::shared();
        let namespace = cluster.namespace("exp");
        let place = Pushback::on(cluster);
        for file in ["crd.yaml", "operator.yaml", "backup.yaml"] {
            let path = format!("{}/examples/operator/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            place.write(&format!("operator/{file}"), Self::renamed(&text, &namespace));
        }
        let webhook = Webhook::start(&[], |_| Verdict::Allow);
        place.write("operator/more.yaml", more(&namespace, &webhook));
        let operator = Self { cluster, namespace, place, webhook };
        std::thread::scope(|scope| {
            scope.spawn(|| operator.write_first_status());
            operator.apply("operator").expect(0);
        });
        operator.write_status(&Value::Null);
        for object in theirs(&operator.namespace) {
            operator.cluster.api().apply(&object).ok();
        }
        let finalizer = json!({"metadata": {"finalizers": ["example.com/theirs"]}});
        operator.cluster.api().merge_patch(&operator.backup(), &finalizer).ok();
        wait_until("the operator is ready", Duration::from_secs(60), || operator.is_ready().then_some(()));
        operator
    }

    /// Writes a status as the operator's controller would, since the deploy waits for the first one.
    fn write_first_status(&self) {
        let is_there = || (self.cluster.api().get(&self.backup()).status == 200).then_some(());
        wait_until("the custom resource is there", Duration::from_secs(60), is_there);
        self.write_status(&json!({"copies": 0}));
    }

    fn write_status(&self, status: &Value) {
        self.cluster.api().merge_patch(&format!("{}/status", self.backup()), &json!({"status": status})).ok();
    }

    fn deployment(folder: &str, namespace: &str) -> [String; 8] {
        ["apply", "-a", "backup", "-n", namespace, "--yes", "-f", folder].map(str::to_owned)
    }

    fn apply(&self, folder: &str) -> Ran {
        let arguments = Self::deployment(folder, &self.namespace);
        self.place.run(&arguments.each_ref().map(String::as_str))
    }

    /// Path of the custom resource.
    fn backup(&self) -> String {
        let namespace = &self.namespace;
        format!("/apis/{namespace}.example.com/v1alpha1/namespaces/{namespace}/backups/nightly")
    }

    /// The next deploy of the same finds nothing to do, takes nothing over, and writes nothing.
    fn assert_quiet(&self, folder: &str, point: &str) {
        let proxy = FaultProxy::start(self.cluster.kubeconfig_path());
        let arguments = Self::deployment(folder, &self.namespace);
        let arguments = [&arguments.each_ref().map(String::as_str)[..], &["--output", "json"]].concat();
        let mut command = self.place.command(&arguments);
        command.env("KUBECONFIG", proxy.kubeconfig());
        let ran = finish(command, b"").expect(0);
        assert_eq!(ran.end()["outcome"], "unchanged", "{point}: {}", ran.stdout);
        assert_eq!(proxy.count(&writes()), 0, "{point}: {:?}", proxy.counts());
    }

    /// Cluster-wide names are this test's own.
    fn renamed(text: &str, namespace: &str) -> String {
        text.replace("backup-operator", &format!("{namespace}-operator"))
            .replace("backup-system", namespace)
            .replace("backup.example.com", &format!("{namespace}.example.com"))
    }

    /// Everything in the namespace and what the operator has beside it, as far as an experiment could change it: what
    /// the server counts, and what controllers say and make, is left out.
    fn contents(&self) -> BTreeMap<String, Value> {
        let namespace = &self.namespace;
        let group = format!("/apis/{namespace}.example.com/v1alpha1/namespaces/{namespace}/backups");
        let collections =
            ["configmaps", "secrets", "services", "serviceaccounts", "resourcequotas", "persistentvolumeclaims"]
                .map(|plural| format!("/api/v1/namespaces/{namespace}/{plural}"));
        let others = [
            "/apis/apps/v1/NS/deployments",
            "/apis/rbac.authorization.k8s.io/v1/NS/roles",
            "/apis/rbac.authorization.k8s.io/v1/NS/rolebindings",
            "/apis/networking.k8s.io/v1/NS/networkpolicies",
            "/apis/coordination.k8s.io/v1/NS/leases",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        ]
        .map(|path| path.replace("NS", &format!("namespaces/{namespace}")));
        let mut found = BTreeMap::new();
        for path in collections.into_iter().chain(others).chain([group]) {
            for mut object in self.cluster.api().list(&path) {
                let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
                if !path.contains("/namespaces/") && !name.contains(namespace.as_str()) {
                    continue;
                }
                object.as_object_mut().expect("an object").remove("status");
                let managers = managers(&object);
                let metadata = object["metadata"].as_object_mut().expect("metadata");
                metadata.insert("managedFields".to_owned(), managers);
                // Nobody writes what is somebody else's, not even to leave it as it is.
                if name != "theirs" || path.ends_with("resourcequotas") {
                    for field in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
                        metadata.remove(field);
                    }
                }
                found.insert(format!("{path}/{name}"), object);
            }
        }
        found
    }

    /// As many ready Pods as the operator has.
    fn is_ready(&self) -> bool {
        let path = format!("/apis/apps/v1/namespaces/{0}/deployments/{0}-operator", self.namespace);
        let deployment = self.cluster.api().get(&path).ok();
        deployment["status"]["readyReplicas"] == 1
            && deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    }

    fn assert_as(&self, before: &BTreeMap<String, Value>, point: &str) {
        wait_until("the operator is ready again", Duration::from_secs(60), || self.is_ready().then_some(()));
        let after = self.contents();
        for (path, object) in before {
            assert_eq!(after.get(path), Some(object), "{point}: {path}");
        }
        let new: Vec<&String> = after.keys().filter(|path| !before.contains_key(*path)).collect();
        assert!(new.is_empty(), "{point}: left behind: {new:?}");
    }

    fn write(&self, experiment: &Value) -> String {
        let file = format!("{}.yaml", experiment["metadata"]["name"].as_str().expect("a name"));
        self.place.write(&file, experiment.to_string());
        file
    }

    /// The arguments that run an experiment, however bad it ends.
    fn arguments(&self, file: &str) -> Vec<String> {
        let given = ["upgrade", "run", file, "--allow-namespace", &self.namespace, "--max-danger", "high", "--yes"];
        let webhook = self.consent();
        let shown = ["--allow-cluster-scoped", &webhook, "--fail-on-verdict", "never", "--format", "json"];
        given.iter().chain(&shown).map(|argument| (*argument).to_owned()).collect()
    }

    /// The webhook configuration, as experiments must be allowed to change it.
    fn consent(&self) -> String {
        format!("ValidatingWebhookConfiguration/{}", self.namespace)
    }

    fn run(&self, file: &str) -> Ran {
        let arguments = self.arguments(file);
        self.place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// An experiment whose steady state is that the operator is available.
    fn experiment(&self, name: &str, kind: &str, danger: &str, parameters: &Value) -> Value {
        let namespace = &self.namespace;
        let is_high = danger == "high";
        let mut experiment = json!({
            "apiVersion": "chaos.operatorchaos.io/v1alpha1", "kind": "ChaosExperiment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "target": {"operator": "backup", "component": "operator"},
                "steadyState": {"timeout": "60s", "checks": [{
                    "type": "conditionTrue", "apiVersion": "apps/v1", "kind": "Deployment",
                    "name": format!("{namespace}-operator"), "namespace": namespace, "conditionType": "Available",
                }]},
                "injection": {"type": kind, "dangerLevel": danger, "parameters": parameters},
                "hypothesis": {"description": "the operator stays available", "recoveryTimeout": "1s"},
                "blastRadius": {"maxPodsAffected": 1, "allowedNamespaces": [namespace]},
            },
        });
        if is_high {
            experiment["spec"]["blastRadius"]["allowDangerous"] = json!(true);
        }
        if kind == "WebhookDisrupt" {
            experiment["spec"]["blastRadius"].as_object_mut().expect("a map").remove("allowedNamespaces");
        }
        experiment
    }

    /// At least one of every type that is executed.
    fn experiments(&self) -> [Value; 15] {
        let namespace = &self.namespace;
        let group = format!("{namespace}.example.com/v1alpha1");
        let selector = format!("app.kubernetes.io/name={namespace}-operator");
        let backup = json!({"apiVersion": group, "kind": "Backup", "name": "nightly"});
        let with = |more: Value| {
            let mut all = backup.clone();
            all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            all
        };
        let label = json!({"apiVersion": "v1", "kind": "Service", "name": "metrics", "labelKey": "team"});
        let stomp = |more: Value| {
            let mut all = label.clone();
            all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            all
        };
        let drift = |name: &str, key: &str| json!({"name": name, "key": key, "value": "chaos-drift"});
        let mut secret = drift("credentials", "password");
        secret["resourceType"] = json!("Secret");
        [
            ("pod-kill", "PodKill", "low", json!({"labelSelector": selector})),
            ("partition", "NetworkPartition", "medium", json!({"labelSelector": selector})),
            ("drift", "ConfigDrift", "medium", drift("settings", "mode")),
            ("drift-new-key", "ConfigDrift", "medium", drift("empty", "mode")),
            ("drift-secret", "ConfigDrift", "high", secret),
            ("mutate", "CRDMutation", "medium", with(json!({"field": "keep", "value": "3"}))),
            (
                "finalizer",
                "FinalizerBlock",
                "high",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}),
            ),
            ("stomp", "LabelStomping", "medium", stomp(json!({"action": "overwrite", "newValue": "chaos"}))),
            ("stomp-away", "LabelStomping", "medium", stomp(json!({"action": "delete"}))),
            (
                "webhook",
                "WebhookDisrupt",
                "high",
                json!({"webhookName": namespace, "webhookType": "validating",
                "action": "setFailurePolicy", "value": "Ignore"}),
            ),
            (
                "revoke",
                "RBACRevoke",
                "high",
                json!({"bindingType": "RoleBinding",
                "bindingName": format!("{namespace}-operator-leader")}),
            ),
            (
                "delete",
                "ResourceDeletion",
                "high",
                json!({"apiVersion": "v1", "kind": "Service", "name": "metrics",
                "namespace": namespace}),
            ),
            ("delete-secret", "SecretDeletion", "high", json!({"name": "credentials", "namespace": namespace})),
            ("scale", "DeploymentScaleZero", "high", json!({"name": format!("{namespace}-operator")})),
            ("quota", "QuotaExhaustion", "high", json!({"quotaName": "full", "pods": "0"})),
        ]
        .map(|(name, kind, danger, parameters)| self.experiment(name, kind, danger, &parameters))
    }

    /// One of them, by its name.
    fn experiment_named(&self, name: &str) -> Value {
        let found = self.experiments().into_iter().find(|experiment| experiment["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no experiment {name}"))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Neither is the namespace's, and a definition more makes every discovery longer.
        let namespace = &self.namespace;
        let unblocked = json!({"metadata": {"finalizers": null}});
        let merge = Some("application/merge-patch+json");
        drop(self.cluster.api().request("PATCH", &self.backup(), merge, Some(&unblocked)));
        for path in [
            format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}"),
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/backups.{namespace}.example.com"),
        ] {
            drop(self.cluster.api().request("DELETE", &path, None, None));
        }
        self.webhook.stop();
    }
}

/// What the example does not have: configuration, a Secret, a Service, a webhook.
fn more(namespace: &str, webhook: &Webhook) -> String {
    let objects = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": "fast", "level": "1"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "empty"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}, "stringData": {"password": SECRET}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics", "labels": {"team": "backup"}},
            "spec": {"clusterIP": "None", "ports": [{"name": "metrics", "port": 8080}],
                "selector": {"app.kubernetes.io/name": format!("{namespace}-operator")}}}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace}, "webhooks": [{
            "name": "backups.example.com", "clientConfig": webhook.by_url(), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "rules": [{"apiGroups": [format!("{namespace}.example.com")], "apiVersions": ["*"],
                "resources": ["backups"], "operations": ["CREATE", "UPDATE"]}],
        }]}),
    ];
    objects.map(|object| object.to_string()).join("\n---\n")
}

/// What other people have in the namespace.
fn theirs(namespace: &str) -> [Value; 4] {
    let metadata = json!({"namespace": namespace, "name": "theirs",
        "labels": {"app.kubernetes.io/managed-by": "somebody", "kapp.k14s.io/app": "another"}});
    let rbac = "rbac.authorization.k8s.io";
    [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mode": "theirs"}}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"configmaps": "500"}}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata,
            "spec": {"podSelector": {"matchLabels": {"app": "theirs"}}, "policyTypes": ["Ingress"]}}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": format!("{namespace}-operator-leader")},
            "subjects": [{"kind": "User", "apiGroup": rbac, "name": "somebody"}]}),
    ]
}

/// Whose the fields of an object are; status is its controllers'.
fn managers(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut entries: Vec<Value> = entries.filter(|entry| entry["subresource"].is_null()).cloned().collect();
    for entry in &mut entries {
        entry.as_object_mut().expect("an entry").remove("time");
    }
    entries.sort_by_key(|entry| format!("{} {} {}", entry["manager"], entry["operation"], entry["apiVersion"]));
    entries.into()
}

/// What no journal that is not a Secret, no output and no report may show.
const SECRET: &str = "sesame-open-4711";

fn every_type_is_made_taken_back_and_judged_and_the_next_deploy_is_quiet() {
    let operator = Operator::deploy();
    let before = operator.contents();
    operator.assert_quiet("operator", "deployed");
    let mut verdicts = BTreeMap::new();
    for experiment in operator.experiments() {
        let file = operator.write(&experiment);
        let ran = operator.run(&file).expect(0);
        let report = ran.json();
        let outcome = &report["experiments"][0];
        let name = outcome["name"].as_str().expect("a name").to_owned();
        assert!(outcome["changes"].as_array().is_some_and(|changes| !changes.is_empty()), "{outcome}");
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{name}");
        operator.assert_as(&before, &name);
        operator.assert_quiet("operator", &name);
        verdicts.insert(name, outcome["verdict"].as_str().expect("a verdict").to_owned());
    }
    let expected = [
        // Nobody here puts these back.
        ("delete", "Degraded"),
        ("delete-secret", "Degraded"),
        ("drift", "Degraded"),
        ("drift-new-key", "Degraded"),
        ("drift-secret", "Degraded"),
        ("finalizer", "Resilient"),
        ("mutate", "Resilient"),
        // Nobody here enforces it.
        ("partition", "Inconclusive"),
        ("quota", "Resilient"),
        ("revoke", "Degraded"),
        ("scale", "Degraded"),
        ("stomp", "Degraded"),
        ("stomp-away", "Degraded"),
        ("webhook", "Resilient"),
    ];
    let pod_kill = verdicts.remove("pod-kill").expect("a verdict");
    // Whether one second is enough for a new Pod is the machine's to say.
    assert!(["Resilient", "Degraded"].contains(&pod_kill.as_str()), "{pod_kill}");
    let verdicts: Vec<(&str, &str)> =
        verdicts.iter().map(|(name, verdict)| (name.as_str(), verdict.as_str())).collect();
    assert_eq!(verdicts, expected);
}

fn a_dry_run_writes_nothing() {
    let operator = Operator::deploy();
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    for experiment in operator.experiments() {
        let file = operator.write(&experiment);
        let mut arguments = operator.arguments(&file);
        arguments.push("--dry-run".to_owned());
        let mut command = operator.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("KUBECONFIG", proxy.kubeconfig());
        let ran = finish(command, b"").expect(0);
        let reason = ran.json()["experiments"][0]["reason"].as_str().expect("a reason").to_owned();
        assert_eq!(reason, "dry run: it would be made", "{file}");
    }
    assert_eq!(proxy.count(&writes()), 0, "{:?}", proxy.counts());
}

fn what_may_not_be_injected_is_skipped_and_says_why() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let namespace = &operator.namespace;
    let reason = |experiment: &Value, more: &[&str]| {
        let file = operator.write(experiment);
        let arguments = [&["upgrade", "run", &file, "--yes", "--format", "json"], more].concat();
        let report = operator.place.run(&arguments).expect(0).json();
        assert_eq!(report["experiments"][0]["verdict"], "Skipped", "{report}");
        report["experiments"][0]["reason"].as_str().expect("a reason").to_owned()
    };
    let drift = json!({"name": "settings", "key": "mode", "value": "x"});
    let allowed = ["--allow-namespace", namespace.as_str()];
    let medium = operator.experiment("drift", "ConfigDrift", "medium", &drift);
    assert_eq!(
        reason(&medium, &["--allow-namespace", "elsewhere"]),
        format!("namespace {namespace} is not allowed; allow it with --allow-namespace {namespace}")
    );
    assert_eq!(
        reason(&medium, &[&allowed[..], &["--max-danger", "low"]].concat()),
        "it is of danger level medium; --max-danger low stops here"
    );
    let orphan = json!({"apiVersion": "v1", "kind": "Service", "name": "metrics"});
    let orphan = operator.experiment("orphan", "OwnerRefOrphan", "medium", &orphan);
    assert_eq!(reason(&orphan, &allowed), "OwnerRefOrphan is generated for the original runner and not executed here");
    let mut forbidden = medium.clone();
    forbidden["spec"]["blastRadius"]["forbiddenResources"] = json!(["ConfigMap/settings"]);
    assert_eq!(
        reason(&forbidden, &allowed),
        format!("ConfigMap {namespace}/settings is in forbiddenResources as ConfigMap/settings")
    );
    let record = json!({"name": "backup", "key": "spec", "value": "x"});
    let record = operator.experiment("record", "ConfigDrift", "medium", &record);
    assert_eq!(reason(&record, &allowed), format!("ConfigMap {namespace}/backup is the record of an app"));
    let webhook = operator.experiment_named("webhook");
    let consent = operator.consent();
    assert_eq!(
        reason(&webhook, &[&allowed[..], &["--max-danger", "high"]].concat()),
        format!(
            "ValidatingWebhookConfiguration {namespace} is cluster-scoped; allow it with --allow-cluster-scoped {consent}"
        )
    );
    // The administrator of this cluster has its permissions from this role.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "cluster-admin",
        "path": "rules", "value": "[]"});
    let mut role = operator.experiment("role", "CRDMutation", "high", &role);
    role["spec"]["blastRadius"].as_object_mut().expect("a map").remove("allowedNamespaces");
    let consented = ["--max-danger", "high", "--allow-cluster-scoped", "ClusterRole/cluster-admin"];
    let role = reason(&role, &[&allowed[..], &consented].concat());
    assert_eq!(role, "ClusterRole cluster-admin belongs to the cluster itself: it is never changed");
    let lock = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "pushback-experiments",
        "labelKey": "team", "action": "overwrite", "newValue": "x"});
    let lock = operator.experiment("lock", "LabelStomping", "medium", &lock);
    let expected = format!("Lease {namespace}/pushback-experiments is the lock of a run of experiments");
    assert_eq!(reason(&lock, &allowed), expected);
    operator.assert_as(&before, "skipped");
}
