//! Objects that others have made, each in their own way, and what is left of them once an experiment is taken back: every
//! value as it was, whoever wrote it and however.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::managers;
use crate::support::api::ApiClient;
use crate::support::case::show;
use crate::support::pushback::Ran;
use crate::support::webhook::{Form, Registration, Verdict, Webhook};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

mod dependents;
mod recovered;

pub(crate) fn tests() -> Vec<TestCase> {
    let own = cases![
        ApiServer: a_map_of_client_side_apply_is_whole_again,
        ApiServer: whoever_made_an_object_has_every_value_of_it_back,
        ApiServer: what_a_webhook_changes_along_with_an_injection_comes_back_too,
        ApiServer: what_a_webhook_does_not_let_come_back_is_named,
    ];
    [own, dependents::tests(), recovered::tests()].concat()
}

/// How an object came to be as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    ClientSideApply,
    Create,
    ServerSideApply,
    Replace,
    Edit,
    Controller,
}

const ORIGINS: [Origin; 6] = [
    Origin::ClientSideApply,
    Origin::Create,
    Origin::ServerSideApply,
    Origin::Replace,
    Origin::Edit,
    Origin::Controller,
];

impl Origin {
    fn word(self) -> &'static str {
        match self {
            Self::ClientSideApply => "client-side apply",
            Self::Create => "create",
            Self::ServerSideApply => "server-side apply",
            Self::Replace => "replace",
            Self::Edit => "edit",
            Self::Controller => "a controller's Update",
        }
    }

    /// Makes an object this way; of what is not created at once, the field at `pointer` comes second.
    fn make(self, api: &ApiClient, object: &Value, pointer: &str) {
        let path = api.path_of(object);
        let collection = path.rsplit_once('/').expect("a path").0;
        let post = |manager: &str, body: &Value| {
            api.post(&format!("{collection}?fieldManager={manager}"), body).ok();
        };
        let poorer = without(object, pointer);
        match self {
            Self::ClientSideApply => {
                let mut sent = object.clone();
                let copy = "kubectl.kubernetes.io/last-applied-configuration";
                sent["metadata"]["annotations"][copy] = object.to_string().into();
                post("kubectl-client-side-apply", &sent);
            }
            Self::Create => post("kubectl-create", object),
            Self::ServerSideApply => drop(api.apply_with(object, "fieldManager=kubectl").ok()),
            Self::Edit => {
                post("kubectl-create", &poorer);
                api.merge_patch(&format!("{path}?fieldManager=kubectl-edit"), &only(object, pointer)).ok();
            }
            Self::Replace | Self::Controller => {
                post("kubectl-create", &poorer);
                let manager = if self == Self::Replace { "kubectl-replace" } else { "inference-controller" };
                // A controller may have written its status meanwhile.
                wait_until("the object is replaced", Duration::from_secs(60), || {
                    let mut live = api.get(&path).ok();
                    put(&mut live, object, pointer);
                    let answer = api.put(&format!("{path}?fieldManager={manager}"), &live);
                    (answer.status != 409).then(|| answer.ok())
                });
            }
        }
    }
}

fn steps(pointer: &str) -> Vec<&str> {
    pointer.split('/').skip(1).collect()
}

/// The object without a field.
fn without(object: &Value, pointer: &str) -> Value {
    let mut object = object.clone();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    object.pointer_mut(parent).and_then(Value::as_object_mut).expect("a map").remove(key);
    object
}

/// A merge patch that sets a field as the object has it.
fn only(object: &Value, pointer: &str) -> Value {
    let value = object.pointer(pointer).expect("a field").clone();
    steps(pointer).iter().rev().fold(value, |inner, key| Value::Object(Map::from_iter([((*key).to_owned(), inner)])))
}

/// Sets a field as the object has it.
fn put(live: &mut Value, object: &Value, pointer: &str) {
    let value = object.pointer(pointer).expect("a field").clone();
    *steps(pointer).iter().fold(live, |inner, key| &mut inner[*key]) = value;
}

/// A definition whose objects have what experiments change: maps, lists, values.
fn definition(group: &str) -> Value {
    let text = json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("inferenceservices.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "InferenceService", "plural": "inferenceservices", "singular": "inferenceservice"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "storage": {"type": "object", "properties": {"type": text, "bucket": text, "endpoint": text}},
                        "selector": {"type": "object", "x-kubernetes-map-type": "atomic",
                            "properties": {"zone": text, "tier": text}},
                        "arguments": {"type": "array", "items": text},
                        "replicas": {"type": "integer", "default": 1},
                        "runtime": text,
                    }},
                    "status": {"type": "object", "properties": {"url": text}},
                },
            }}}],
        },
    })
}

/// A namespace with the definition served.
struct Place {
    cluster: &'static TestCluster,
    namespace: String,
    group: String,
    pushback: Pushback,
}

impl Place {
    fn new() -> Self {
        let cluster = TestCluster::shared();
        let namespace = cluster.namespace("origin");
        let group = format!("{namespace}.example.com");
        cluster.api().apply(&definition(&group)).ok();
        let served = json!({"apiVersion": format!("{group}/v1"), "kind": "InferenceService",
            "metadata": {"namespace": namespace, "name": "any"}});
        wait_until("the definition is served", Duration::from_secs(60), || {
            (cluster.api().serves(&served) && cluster.api().get(&cluster.api().path_of(&served)).status == 404)
                .then_some(())
        });
        Self { cluster, namespace, group, pushback: Pushback::on(cluster) }
    }

    fn service(&self, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": "InferenceService",
            "metadata": {"namespace": self.namespace, "name": name, "labels": {"team": "models"}},
            "spec": {"storage": {"type": "s3", "bucket": "models"}, "selector": {"zone": "a", "tier": "gold"},
                "arguments": ["--fast", "--quiet"], "runtime": "triton"},
        })
    }

    fn experiment(&self, name: &str, kind: &str, parameters: &Value) -> Value {
        let namespace = &self.namespace;
        let radius = if kind == "WebhookDisrupt" {
            json!({"maxPodsAffected": 1, "allowDangerous": true})
        } else {
            json!({"maxPodsAffected": 1, "allowDangerous": true, "allowedNamespaces": [namespace]})
        };
        json!({
            "apiVersion": "chaos.operatorchaos.io/v1alpha1", "kind": "ChaosExperiment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "target": {"operator": "models", "component": "controller"},
                "steadyState": {"timeout": "1s", "checks": [{"type": "resourceExists", "apiVersion": "v1",
                    "kind": "ConfigMap", "name": "always", "namespace": namespace}]},
                "injection": {"type": kind, "dangerLevel": "high", "parameters": parameters},
                "hypothesis": {"description": "nothing is lost", "recoveryTimeout": "1s"},
                "blastRadius": radius,
            },
        })
    }

    /// The steady state of every experiment.
    fn make_steady(&self) {
        let always = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": self.namespace, "name": "always"}});
        self.cluster.api().apply(&always).ok();
    }

    /// Runs what is in the folder of experiments.
    fn run(&self) -> Ran {
        self.make_steady();
        let given = ["upgrade", "run", "experiments", "--allow-namespace", &self.namespace, "--max-danger", "high"];
        let consent = format!("ValidatingWebhookConfiguration/{}", self.namespace);
        let shown = ["--yes", "--allow-cluster-scoped", &consent, "--fail-on-verdict", "never", "--format", "json"];
        self.pushback.run(&[&given[..], &shown].concat())
    }
}

impl Place {
    fn recover(&self, more: &[&str]) -> Ran {
        let given = ["upgrade", "recover", "--allow-namespace", &self.namespace, "--yes"];
        self.pushback.run(&[&given[..], more].concat())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (namespace, group) = (&self.namespace, &self.group);
        for path in [
            format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}"),
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/inferenceservices.{group}"),
        ] {
            drop(self.cluster.api().request("DELETE", &path, None, None));
        }
    }
}

/// What of an object has to be as before: everything but what the server counts. An object that was deleted is another
/// one afterwards.
fn kept(mut object: Value, was_deleted: bool) -> Value {
    if object["kind"] != "InferenceService" {
        // It is its controller's.
        object.as_object_mut().expect("an object").remove("status");
    }
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("managedFields");
    metadata.remove("resourceVersion");
    metadata.remove("generation");
    if was_deleted {
        metadata.remove("uid");
        metadata.remove("creationTimestamp");
    }
    object
}

/// What the API server answers to the removal of `f:type` and the change of `f:bucket` leaves `f:storage: {}` to their
/// manager, which says nothing of who wrote the values.
fn a_map_of_client_side_apply_is_whole_again() {
    let place = Place::new();
    let api = place.cluster.api();
    let object = place.service("models");
    Origin::ClientSideApply.make(api, &object, "/spec/storage");
    let before = api.get(&api.path_of(&object)).ok();
    let parameters = json!({"apiVersion": format!("{}/v1", place.group), "kind": "InferenceService", "name": "models",
        "field": "storage", "value": r#"{"bucket":"a"}"#});
    place.pushback.write("experiments/a.yaml", place.experiment("a", "CRDMutation", &parameters).to_string());
    let report = place.run().expect(0).json();
    let after = api.get(&api.path_of(&object)).ok();
    assert_eq!(after["spec"], before["spec"], "{report}");
    assert_eq!(managers(&after), managers(&before), "{report}");
    assert_eq!(report["experiments"][0]["deviations"], Value::Null, "{report}");
}

impl Place {
    /// An object, and an experiment that sets its bucket to `a`, beside a webhook on what writes such objects.
    fn watched(
        &self,
        script: impl Fn(&Value) -> Verdict + Send + Sync + 'static,
    ) -> (Value, Webhook, Registration<'_>) {
        let webhook = Webhook::start(&[], script);
        let object = self.service("models");
        Origin::ClientSideApply.make(self.cluster.api(), &object, "/spec/storage");
        let rules = json!([{"apiGroups": ["", self.group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps", "inferenceservices"]}]);
        let registration = webhook.register(self.cluster, Form::Mutating, &self.namespace, json!({"rules": rules}));
        let parameters = json!({"apiVersion": format!("{}/v1", self.group), "kind": "InferenceService",
            "name": "models", "path": "spec.storage.bucket", "value": r#""a""#});
        self.pushback.write("experiments/a.yaml", self.experiment("a", "CRDMutation", &parameters).to_string());
        (object, webhook, registration)
    }
}

/// Sets the runtime of a service where this is so of the object as it was and as it is to be.
fn touching(is_so: fn(&Value, &Value) -> bool) -> impl Fn(&Value) -> Verdict {
    move |request| {
        let bucket = |object: &str| request[object]["spec"]["storage"]["bucket"].clone();
        if is_so(&bucket("oldObject"), &bucket("object")) {
            Verdict::Patch(json!([{"op": "add", "path": "/spec/runtime", "value": "touched"}]))
        } else {
            Verdict::Allow
        }
    }
}

fn what_a_webhook_changes_along_with_an_injection_comes_back_too() {
    let place = Place::new();
    // On the way there, and on the way back.
    let (object, webhook, _registration) = place.watched(touching(|old, new| old == "a" || new == "a"));
    let api = place.cluster.api();
    let before = api.get(&api.path_of(&object)).ok();
    let report = place.run().expect(0).json();
    let after = api.get(&api.path_of(&object)).ok();
    assert!(webhook.asked().iter().any(|request| request["object"]["kind"] == "InferenceService"));
    assert_eq!(
        (kept(after.clone(), false), managers(&after)),
        (kept(before.clone(), false), managers(&before)),
        "{report}"
    );
    assert_eq!(report["experiments"][0]["verdict"], "Resilient", "{report}");
}

fn what_a_webhook_does_not_let_come_back_is_named() {
    let place = Place::new();
    let (object, _webhook, registration) = place.watched(touching(|_, new| new == "models"));
    let api = place.cluster.api();
    let path = api.path_of(&object);
    let report = place.run().expect(20).json();
    let outcome = &report["experiments"][0];
    assert_eq!(outcome["verdict"], "Failed", "{report}");
    let named = format!("spec.runtime of InferenceService {}/models: ", place.namespace);
    let not_restored = outcome["notRestored"].as_array().expect("what is not as before");
    assert_eq!(not_restored.len(), 1, "{report}");
    assert_eq!(not_restored[0], format!("{named}the server has changed it"), "{report}");
    let live = api.get(&path).ok();
    assert_eq!((&live["spec"]["storage"]["bucket"], &live["spec"]["runtime"]), (&json!("models"), &json!("touched")));
    drop(registration);
    let journals =
        format!("/api/v1/namespaces/{}/secrets?labelSelector=pushback.dev/experiment=journal", place.namespace);
    assert_eq!(api.list(&journals).len(), 1, "it says what was there before");
    // Nothing gives it back from here on, and every recovery says so until that is accepted.
    for _ in 0..2 {
        let ran = place.recover(&[]).expect(20);
        assert!(ran.complaints().contains(&named) || ran.stdout.contains(&named), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(api.list(&journals).len(), 1);
    }
    place.recover(&["--accept-changed"]).expect(0);
    assert_eq!(api.list(&journals).len(), 0);
    assert_eq!(place.recover(&[]).expect(0).stdout, "Nothing is left to take back.\n");
}

/// An object, the field of it that comes second where it is not made at once, and an experiment that changes it.
struct Subject {
    object: Value,
    pointer: &'static str,
    kind: &'static str,
    what: &'static str,
    parameters: Value,
}

/// What was made of a subject.
struct Cell {
    /// `InjectionType | what`
    title: String,
    is: &'static str,
    detail: String,
}

fn whoever_made_an_object_has_every_value_of_it_back() {
    let columns: Vec<Vec<Cell>> = std::thread::scope(|scope| {
        let running = ORIGINS.map(|origin| scope.spawn(move || swept(origin)));
        running.map(|running| running.join().expect("a column")).into()
    });
    let origins: Vec<&str> = ORIGINS.iter().map(|origin| origin.word()).collect();
    show(&format!("| injection | of what | {} |", origins.join(" | ")));
    for (number, first) in columns[0].iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|column| column[number].is).collect();
        show(&format!("| {} | {} |", first.title, cells.join(" | ")));
    }
    let cells = || columns.iter().flatten();
    let wrong: Vec<&str> = cells().filter(|cell| cell.is != AS_BEFORE).map(|cell| cell.detail.as_str()).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cells().count(), wrong.join("\n"));
}

const AS_BEFORE: &str = "as before";

impl Cell {
    fn of(subject: &Subject, origin: Origin, before: &Value, after: &Value, said: &str) -> Self {
        let was_deleted = subject.kind.ends_with("Deletion") || subject.kind == "FinalizerBlock";
        let is = if kept(after.clone(), was_deleted) != kept(before.clone(), was_deleted) {
            "values differ"
        } else if managers(after) != managers(before) {
            "managers differ"
        } else {
            AS_BEFORE
        };
        let title = format!("{} | {}", subject.kind, subject.what);
        let detail = format!("{title}, made by {}: {is}: {after}, before {before}; {said}", origin.word());
        Self { title, is, detail }
    }
}

/// All experiments on objects of one origin.
fn swept(origin: Origin) -> Vec<Cell> {
    let place = Place::new();
    let api = place.cluster.api();
    let subjects = place.subjects();
    let mut before = Vec::new();
    for (number, subject) in subjects.iter().enumerate() {
        origin.make(api, &subject.object, subject.pointer);
        before.push(api.get(&api.path_of(&subject.object)).ok());
        let experiment = place.experiment(&format!("e{number:02}"), subject.kind, &subject.parameters);
        place.pushback.write(&format!("experiments/{number:02}.yaml"), experiment.to_string());
    }
    let ran = place.run();
    let report = ran.json();
    let look = |(number, (subject, before)): (usize, (&Subject, Value))| {
        let outcome = &report["experiments"][number];
        assert!(outcome["changes"].as_array().is_some_and(|changes| !changes.is_empty()), "not made: {outcome}");
        let after = api.get(&api.path_of(&subject.object)).ok();
        Cell::of(subject, origin, &before, &after, &outcome.to_string())
    };
    subjects.iter().zip(before).enumerate().map(look).collect()
}

impl Place {
    /// At least one of every type that changes or deletes what somebody has made. The other types make an object of their
    /// own, or kill a Pod.
    fn subjects(&self) -> Vec<Subject> {
        let namespace = &self.namespace;
        let rbac = "rbac.authorization.k8s.io";
        let named = |name: &str, mut object: Value| {
            object["metadata"]["namespace"] = namespace.as_str().into();
            object["metadata"]["name"] = name.into();
            object
        };
        let map = |name: &str| {
            let data = json!({"mode": "fast", "level": "1"});
            let mut map = named(name, json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data}));
            map["metadata"]["labels"] = json!({"team": "models"});
            map
        };
        let secret = |name: &str| {
            let data = json!({"password": "c2VzYW1l", "user": "YQ=="});
            named(name, json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data}))
        };
        let service = |name: &str| {
            let spec = json!({"ports": [{"name": "http", "port": 80}, {"name": "tls", "port": 443}],
                "selector": {"app": "web"}});
            let mut service = named(name, json!({"apiVersion": "v1", "kind": "Service", "spec": spec}));
            service["metadata"]["labels"] = json!({"team": "models", "tier": "web"});
            service
        };
        let deployment = named(
            "web",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0, "paused": true,
                "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}}}),
        );
        let mut scaled = deployment.clone();
        scaled["spec"]["replicas"] = 2.into();
        let binding = named(
            "readers",
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
                "subjects": [{"kind": "User", "apiGroup": rbac, "name": "anna"},
                    {"kind": "Group", "apiGroup": rbac, "name": "readers"}]}),
        );
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace, "labels": {"team": "models"}},
            "webhooks": [{"name": "one.example.com", "clientConfig": {"url": "https://localhost:1/"},
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}},
                "rules": [{"apiGroups": [self.group], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}]}],
        });
        let resource = |name: &str, more: Value| {
            let mut all = json!({"apiVersion": format!("{}/v1", self.group), "kind": "InferenceService", "name": name});
            all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            all
        };
        let mutated = |name: &'static str, what, pointer, path: &str, value: &str| Subject {
            object: self.service(name),
            pointer,
            kind: "CRDMutation",
            what,
            parameters: resource(name, json!({"path": format!("spec.{path}"), "value": value})),
        };
        let mut reported = self.service("reported");
        reported["status"] = json!({"url": "https://models.example"});
        let subject = |object, pointer, kind, what, parameters| Subject { object, pointer, kind, what, parameters };
        let label = |name: &str, more: Value| {
            let mut all = json!({"apiVersion": "v1", "kind": "Service", "name": name, "labelKey": "team"});
            all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            all
        };
        let drift = |name: &str, key: &str| json!({"name": name, "key": key, "value": "chaos"});
        let mut secret_drift = drift("credentials", "password");
        secret_drift["resourceType"] = "Secret".into();
        vec![
            mutated("narrowed", "a map that loses a key", "/spec/storage", "storage", r#"{"bucket":"a"}"#),
            mutated(
                "widened",
                "a map that gains a key",
                "/spec/storage",
                "storage",
                r#"{"type":"s3","bucket":"models","endpoint":"x"}"#,
            ),
            mutated("emptied", "a map that becomes empty", "/spec/storage", "storage", "{}"),
            mutated("removed", "a map that goes", "/spec/storage", "storage", "null"),
            mutated("nested", "a value in a map", "/spec/storage", "storage.bucket", r#""a""#),
            mutated("atomic", "a map that is owned as one", "/spec/selector", "selector", r#"{"zone":"b"}"#),
            mutated("inside", "a value in such a map", "/spec/selector", "selector.zone", r#""b""#),
            mutated("listed", "a list", "/spec/arguments", "arguments", r#"["--slow"]"#),
            mutated("scalar", "a value", "/spec/runtime", "runtime", r#""vllm""#),
            mutated("defaulted", "a default", "/spec/runtime", "replicas", "7"),
            subject(map("settings"), "/data/mode", "ConfigDrift", "a key of a ConfigMap", drift("settings", "mode")),
            subject(map("only"), "/data", "ConfigDrift", "a key that was not there", drift("only", "more")),
            subject(
                without(&map("nothing"), "/data"),
                "/metadata/labels",
                "ConfigDrift",
                "a ConfigMap without data",
                drift("nothing", "mode"),
            ),
            subject(secret("credentials"), "/data/password", "ConfigDrift", "a key of a Secret", secret_drift),
            subject(
                self.service("blocked"),
                "/spec/storage",
                "FinalizerBlock",
                "a custom resource",
                resource("blocked", json!({})),
            ),
            subject(
                service("stomped"),
                "/metadata/labels/team",
                "LabelStomping",
                "a label that changes",
                label("stomped", json!({"action": "overwrite", "newValue": "chaos"})),
            ),
            subject(
                service("bared"),
                "/metadata/labels/team",
                "LabelStomping",
                "a label that goes",
                label("bared", json!({"action": "delete"})),
            ),
            subject(
                webhook,
                "/metadata/labels",
                "WebhookDisrupt",
                "a failure policy",
                json!({"webhookName": namespace, "webhookType": "validating", "action": "setFailurePolicy", "value": "Ignore"}),
            ),
            subject(
                binding,
                "/subjects",
                "RBACRevoke",
                "subjects",
                json!({"bindingType": "RoleBinding", "bindingName": "readers"}),
            ),
            subject(scaled, "/spec/replicas", "DeploymentScaleZero", "replicas", json!({"name": "web"})),
            subject(
                service("deleted"),
                "/spec/selector",
                "ResourceDeletion",
                "a Service",
                json!({"apiVersion": "v1", "kind": "Service", "name": "deleted", "namespace": namespace}),
            ),
            subject(reported, "/spec/storage", "ResourceDeletion", "a custom resource with a status", {
                let mut all = resource("reported", json!({}));
                all["namespace"] = namespace.as_str().into();
                all
            }),
            subject(
                secret("deleted"),
                "/data/password",
                "SecretDeletion",
                "a Secret",
                json!({"name": "deleted", "namespace": namespace}),
            ),
        ]
    }
}
