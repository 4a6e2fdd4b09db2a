//! What was judged is what is written or deleted, or the run says so and stops: admission that changes definitions after
//! their verdict, and objects that somebody creates between the look and the deletion.

mod deletions;
mod folders;
mod new_namespaces;
mod stored;
mod sweep;
mod told;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map};
use crate::support::proxy::{FaultProxy, Matching, Verb, any};
use crate::support::webhook::{Form, Registration, Verdict, Webhook, configuration};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
const DRY_RUN: &str = "fieldManager=test&dryRun=All&force=true";

pub(crate) fn tests() -> Vec<TestCase> {
    let own = cases![
        ApiServer: a_webhook_that_narrows_a_definition_after_its_verdict_is_refused,
        ApiServer: a_webhook_that_changes_a_definition_and_breaks_nothing_is_no_reason_to_stop,
        ApiServer: a_webhook_that_tells_dry_runs_from_writes_is_found_out,
        ApiServer: a_policy_of_the_set_that_narrows_a_definition_of_the_set,
        ApiServer: a_definition_that_somebody_else_changes_after_its_verdict,
        ApiServer: an_update_that_was_not_verified_is_judged_before_its_write,
        ApiServer: a_webhook_that_narrows_a_definition_when_its_fields_are_taken_over,
    ];
    let own = [own, deletions::tests(), folders::tests(), new_namespaces::tests()].concat();
    [own, stored::tests(), sweep::tests(), told::tests()].concat()
}

/// A definition with an object of it, and an app behind a proxy.
struct Boxes {
    cluster: &'static TestCluster,
    namespace: String,
    proxy: FaultProxy,
    app: TestApp,
}

impl Boxes {
    /// `boxes` are there as an app of its own would make them: the definition, and one object.
    fn new(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let namespace = cluster.namespace(prefix);
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "boxes", &namespace);
        let boxes = Self { cluster, namespace, proxy, app };
        boxes.app.apply(&boxes.whole(&["size"]), &[]).expect(0);
        boxes
    }

    fn api(&self) -> &'static ApiClient {
        self.cluster.api()
    }

    fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    fn definition_name(&self) -> String {
        format!("boxes.{}", self.group())
    }

    /// The definition with these fields below `spec`, all of them texts.
    fn definition(&self, fields: &[&str]) -> Value {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.definition_name()},
            "spec": {
                "group": self.group(), "scope": "Namespaced",
                "names": {"kind": "Box", "plural": "boxes", "singular": "box"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": fields}},
                }}}],
            },
        })
    }

    fn a_box(&self, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group()), "kind": "Box",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": {"size": "big"},
        })
    }

    /// The definition with these fields, and one object.
    fn whole(&self, fields: &[&str]) -> String {
        format!("{}\n---\n{}\n", self.definition(fields), self.a_box("one"))
    }

    fn boxes(&self) -> String {
        format!("/apis/{}/v1/namespaces/{}/boxes", self.group(), self.namespace)
    }

    fn stored_definition(&self) -> Value {
        self.api().get(&self.api().path_of(&self.definition(&[]))).ok()
    }

    /// The fields that the stored definition has.
    fn stored_fields(&self) -> Vec<String> {
        let stored = self.stored_definition();
        let fields = &stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        fields.as_object().expect("fields").keys().cloned().collect()
    }

    /// The first request that writes, which is the one that takes the app's lock: the verdict has been given.
    fn locks(&self) -> Matching {
        let namespace = self.namespace.clone();
        any()
            .that(move |request| request.writes() && request.resource == "configmaps" && request.namespace == namespace)
            .nth(1)
    }

    /// A webhook that patches the definition, registered when the verdict has been given, and in force before anything
    /// of the set is written.
    fn webhook(&self, script: impl Fn(&Value) -> Verdict + Send + Sync + 'static) -> Registered {
        let webhook = Arc::new(Webhook::start(&[], script));
        let rule = json!({
            "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"], "resources": ["customresourcedefinitions"],
            "operations": ["CREATE", "UPDATE"],
        });
        let mine = format!("object.metadata.name.endsWith('{}')", self.group());
        let overrides = json!({"rules": [rule], "matchConditions": [{"name": "mine", "expression": mine}]});
        let configuration = configuration(Form::Mutating, &self.namespace, &webhook.by_url(), overrides);
        let registration = Arc::new(Mutex::new(None));
        let (cluster, probe) = (self.cluster, self.probe());
        // The proxy's own runtime must not be the one to end the webhook's.
        let (registered, slot) = (Arc::downgrade(&webhook), Arc::clone(&registration));
        self.proxy.before(self.locks(), move |_| {
            let Some(webhook) = registered.upgrade() else { return };
            *slot.lock().expect("nobody panics") = Some(webhook.register_unseen(cluster, &configuration));
            wait_until("the webhook is called", SOON, || {
                let answer = cluster.api().apply_with(&probe, DRY_RUN);
                answer.body["metadata"]["annotations"]["seen"].is_string().then_some(())
            });
        });
        Registered { webhook, registration }
    }

    /// A definition beside the own one, which a webhook marks as seen.
    fn probe(&self) -> Value {
        let mut probe = self.definition(&[]);
        probe["metadata"]["name"] = json!(format!("probes.{}", self.group()));
        probe["spec"]["names"] = json!({"kind": "Probe", "plural": "probes", "singular": "probe"});
        probe
    }
}

struct Registered {
    webhook: Arc<Webhook>,
    registration: Arc<Mutex<Option<Registration<'static>>>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Here, and not where the proxy ends: to delete it takes a request.
        drop(self.registration.lock().expect("nobody panics").take());
    }
}

/// The patch that marks a probe as seen; `None` for other objects.
fn seen(request: &Value) -> Option<Verdict> {
    let name = request["name"].as_str().unwrap_or_default();
    name.starts_with("probes.").then(|| {
        Verdict::Patch(json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"seen": "yes"}},
        ]))
    })
}

/// Where the fields of a box are in its definition.
const FIELDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

/// The findings of a run about objects, by check and severity, and the object.
fn findings(ran: &Ran) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |event: Value| {
        let finding = &event["finding"];
        format!("{} {} {}", word(&finding["check"]), word(&finding["severity"]), word(&finding["object"]["name"]))
    };
    let is_of_policy = |event: &Value| event["finding"]["rule"] == "policy";
    ran.events_of("finding").into_iter().filter(|event| !is_of_policy(event)).map(line).collect()
}

/// What the run says of an object that it did not bring about: state and message.
#[track_caller]
fn unfinished(ran: &Ran, name: &str) -> (String, String) {
    let end = ran.end();
    let lines = end["unfinished"].as_array().unwrap_or_else(|| panic!("nothing is unfinished: {end}"));
    let line = lines.iter().find(|line| line["object"]["name"] == name);
    let line = line.unwrap_or_else(|| panic!("{name} is not among them: {end}"));
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("message"))
}

fn a_webhook_that_narrows_a_definition_after_its_verdict_is_refused() {
    let boxes = Boxes::new("narrowed");
    let narrows = |request: &Value| {
        seen(request).unwrap_or_else(|| Verdict::Patch(json!([{"op": "remove", "path": format!("{FIELDS}/size")}])))
    };
    let registered = boxes.webhook(narrows);
    let ran = boxes.app.apply(&boxes.whole(&["size", "colour"]), &[]);
    assert_eq!(boxes.stored_fields(), ["size"], "{}", ran.stdout);
    let ran = ran.expect(20);
    assert!(!registered.webhook.asked().is_empty());
    let name = boxes.definition_name();
    assert!(findings(&ran).contains(&format!("existingFieldRemoval error {name}")), "{:?}", findings(&ran));
    let (state, message) = unfinished(&ran, &name);
    assert_eq!(state, "failed");
    assert!(message.contains("not written") && message.contains("spec.size"), "{message}");
}

fn a_webhook_that_changes_a_definition_and_breaks_nothing_is_no_reason_to_stop() {
    let boxes = Boxes::new("widened");
    let widens = |request: &Value| {
        let field = json!({"op": "add", "path": format!("{FIELDS}/shape"), "value": {"type": "string"}});
        seen(request).unwrap_or_else(|| Verdict::Patch(json!([field])))
    };
    let _registered = boxes.webhook(widens);
    boxes.app.apply(&boxes.whole(&["size", "colour"]), &[]).expect(0);
    assert_eq!(boxes.stored_fields(), ["colour", "shape", "size"]);
}

fn a_webhook_that_tells_dry_runs_from_writes_is_found_out() {
    let boxes = Boxes::new("two-faced");
    let two_faced = |request: &Value| match seen(request) {
        Some(seen) => seen,
        None if request["dryRun"] == true => Verdict::Allow,
        None => Verdict::Patch(json!([{"op": "remove", "path": format!("{FIELDS}/size")}])),
    };
    let _registered = boxes.webhook(two_faced);
    let ran = boxes.app.apply(&(boxes.whole(&["size", "colour"]) + "---\n" + &boxes.a_box("two").to_string()), &[]);
    let ran = ran.expect(20);
    let (state, message) = unfinished(&ran, &boxes.definition_name());
    assert_eq!(state, "failed");
    assert!(message.contains("properties.size"), "{message}");
    assert_eq!(unfinished(&ran, "two").0, "not applied", "{}", ran.stdout);
    assert_eq!(boxes.api().get(&format!("{}/two", boxes.boxes())).status, 404);
}

fn a_policy_of_the_set_that_narrows_a_definition_of_the_set() {
    let boxes = Boxes::new("own-policy");
    let (name, group) = (&boxes.namespace, boxes.group());
    let patch = |op: &str| format!("[JSONPatch{{op: \"{op}\", path: \"{FIELDS}/size\"}}]");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"],
                "resources": ["customresourcedefinitions"], "operations": ["CREATE", "UPDATE"],
            }]},
            "matchConditions": [{"name": "mine", "expression": format!("object.metadata.name == 'boxes.{group}'")}],
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch("remove")}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name, "annotations": {"kapp.k14s.io/change-group": "policy.example.com/all"}},
        "spec": {"policyName": name},
    });
    let mut definition = boxes.definition(&["size", "colour"]);
    let after = json!({"kapp.k14s.io/change-rule": "upsert after upserting policy.example.com/all"});
    definition["metadata"]["annotations"] = after;
    // Once the policy is there, the server is given the time to read it.
    let (api, stored, in_force) = (boxes.api(), boxes.definition(&["size", "shape"]), AtomicBool::new(false));
    let binding_path = api.path_of(&binding);
    let definition_name = boxes.definition_name();
    let touches = any().that(move |request| request.name == definition_name && request.verb == Verb::Apply);
    boxes.proxy.before(touches, move |_| {
        if in_force.load(Ordering::SeqCst) || api.get(&binding_path).status != 200 {
            return;
        }
        in_force.store(true, Ordering::SeqCst);
        wait_until("the policy is in force", SOON, || {
            let answer = api.apply_with(&stored, DRY_RUN).body;
            let fields = answer.pointer(FIELDS)?;
            fields.get("size").is_none().then_some(())
        });
    });
    let input = format!("{policy}\n---\n{binding}\n---\n{definition}\n---\n{}\n", boxes.a_box("one"));
    let ran = boxes.app.apply(&input, &[]);
    let fields = boxes.stored_fields();
    let delete = |object: &Value| drop(api.request("DELETE", &api.path_of(object), None, None));
    delete(&binding);
    delete(&policy);
    assert_eq!(fields, ["size"], "{}", ran.stdout);
    let ran = ran.expect(20);
    assert!(findings(&ran).iter().any(|line| line.starts_with("existingFieldRemoval error")), "{:?}", findings(&ran));
}

fn a_definition_that_somebody_else_changes_after_its_verdict() {
    let boxes = Boxes::new("moved");
    let (api, theirs) = (boxes.api(), boxes.definition(&["size", "weight"]));
    boxes.proxy.before(boxes.locks(), move |_| {
        api.apply_with(&theirs, "fieldManager=somebody&force=true").ok();
    });
    let ran = boxes.app.apply(&boxes.whole(&["size", "colour"]), &[]);
    // What is theirs would go with the update: it is planned again, and refused.
    assert_eq!(boxes.stored_fields(), ["size", "weight"], "{}", ran.stdout);
    ran.expect(10);
}

/// A takeover is two writes, and admission sees both. The first changes nothing by itself.
fn a_webhook_that_narrows_a_definition_when_its_fields_are_taken_over() {
    let boxes = Boxes::new("narrowed-takeover");
    let api = boxes.api();
    let of_kapp = |name: &str| {
        let mut definition = boxes.definition(&["size"]);
        definition["metadata"]["name"] = json!(format!("{name}s.{}", boxes.group()));
        definition["spec"]["names"] =
            json!({"kind": format!("Of{name}"), "plural": format!("{name}s"), "singular": name});
        let path = api.path_of(&definition);
        let collection = path.rsplit_once('/').expect("a path").0;
        api.post(&format!("{collection}?fieldManager=kapp"), &definition).ok();
        (definition, path)
    };
    for real_only in [false, true] {
        let (mut definition, path) = of_kapp(if real_only { "crate" } else { "chest" });
        // What is applied is what was judged; only the request in between is not.
        let narrows = move |request: &Value| {
            let is_apply = request["options"]["force"] == true;
            let is_other = is_apply || request["operation"] != "UPDATE" || (real_only && request["dryRun"] == true);
            seen(request).unwrap_or_else(|| match is_other || request["object"].pointer(FIELDS).is_none() {
                true => Verdict::Allow,
                false => Verdict::Patch(json!([{"op": "remove", "path": format!("{FIELDS}/size")}])),
            })
        };
        let _registered = boxes.webhook(narrows);
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"] =
            json!({"type": "string"});
        let input = format!("{}---\n{definition}\n---\n{}\n", boxes.whole(&["size"]), config_map("rest", "1"));
        let ran = boxes.app.apply(&input, &["--dangerous-override-ownership-of-existing-resources"]);
        let stored = api.get(&path).ok();
        let ran = ran.expect(20);
        let name = definition["metadata"]["name"].as_str().expect("a name");
        let (state, message) = unfinished(&ran, name);
        assert_eq!(state, "failed");
        if real_only {
            assert!(message.contains("spec.versions[0].schema"), "{message}");
        } else {
            assert!(stored.pointer(&format!("{FIELDS}/size")).is_some(), "{}", ran.stdout);
            assert!(findings(&ran).contains(&format!("existingFieldRemoval error {name}")), "{:?}", findings(&ran));
        }
    }
}

/// A policy of the set keeps the update from being verified; what the server makes of it ends Pods.
fn an_update_that_was_not_verified_is_judged_before_its_write() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("unverified-update");
    let app = TestApp::new("web", &namespace);
    let workload = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": namespace},
            "spec": {
                "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
                    "name": "main", "image": format!("registry.example/{image}"),
                }]}},
            },
        })
    };
    let policy = |expression: &str| {
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": namespace},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "resourceRules": [{
                        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["statefulsets"],
                        "operations": ["UPDATE"],
                    }],
                },
                "validations": [{"expression": expression}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": namespace}, "spec": {"policyName": namespace, "validationActions": ["Deny"]},
        });
        format!("{policy}\n---\n{binding}\n---\n")
    };
    let config =
        "{apiVersion: kapp.k14s.io/v1alpha1, kind: Config, preflightRules: [{name: DestructiveChange}]}\n---\n";
    let mut first = workload("web:1");
    first["spec"]["replicas"] = json!(3);
    app.apply(&format!("{config}{}{first}", policy("false")), &["--wait=false"]).expect(0);
    // The manifest gives the number up, so that it falls back to 1.
    let second = workload("web:2");
    wait_until("the policy is in force", SOON, || {
        let path = format!("{}?dryRun=All", cluster.api().path_of(&second));
        let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
        (cluster.api().merge_patch(&path, &touched).status == 422).then_some(())
    });
    let ran = app.apply(&format!("{config}{}{second}", policy("true")), &["--wait=false"]);
    let stored = cluster.api().get(&cluster.api().path_of(&second)).ok();
    assert_eq!(stored["spec"]["replicas"], 3, "{}", ran.stdout);
    assert_eq!(findings(&ran.expect(20)), ["replicasReset error web"]);
}
