//! An operator and its definition in one apply: the old operator is paused where an object could lose a field between the
//! two versions, and only there.

use serde_json::{Value, json};

use super::crd::{DEADLINE, TestCrd, Version, size, without_clients};
use crate::support::apply::TestApp;
use crate::support::{Ran, TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_old_operator_is_paused_while_objects_move_if_a_field_could_be_lost,
        ApiServer: an_operator_runs_on_if_no_field_can_be_lost,
        ApiServer: an_operator_that_does_not_change_goes_on_with_as_many_replicas_as_it_had,
        ApiServer: what_would_be_lost_is_said_before_anything_is_written,
        ApiServer: the_old_release_comes_back_with_its_objects,
        ApiServer: an_operator_that_a_killed_run_left_paused_goes_on,
        ApiServer: an_operator_stays_paused_while_its_objects_are_half_moved,
    ]
}

/// `size` and a field that only the new version has.
fn with_colour() -> Value {
    json!({"size": {"type": "integer"}, "colour": {"type": "string"}})
}

fn old_release() -> Vec<Version> {
    vec![("v1", true, true, size())]
}

fn new_release() -> Vec<Version> {
    vec![("v1", true, false, size()), ("v2", true, true, with_colour())]
}

/// An operator and its definition.
struct Operator {
    crd: TestCrd,
}

impl Operator {
    fn new(prefix: &str) -> Self {
        Self { crd: TestCrd::new(prefix) }
    }

    fn deployment(&self, image: &str, replicas: Option<u32>) -> Value {
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "operator", "namespace": self.crd.namespace,
                "annotations": {"pushback.dev/operator-of": self.crd.name()},
            },
            "spec": {
                "selector": {"matchLabels": {"app": "operator"}},
                "template": {
                    "metadata": {"labels": {"app": "operator"}},
                    "spec": {"containers": [{"name": "operator", "image": format!("example.com/operator:{image}")}]},
                },
            },
        });
        if let Some(replicas) = replicas {
            deployment["spec"]["replicas"] = replicas.into();
        }
        deployment
    }

    /// Nobody makes pods ready here.
    fn apply(&self, versions: &[Version], deployment: &Value, arguments: &[&str]) -> Ran {
        let mut input = vec![self.crd.manifest(versions).to_string(), deployment.to_string()];
        input.extend(arguments.contains(&"--storage").then(|| without_clients().to_string()));
        let input = input.join("\n---\n");
        TestApp::new("operator", &self.crd.namespace).apply(&input, &[&["--wait=false"], arguments].concat())
    }

    /// The old release with its pods, and objects of it.
    fn deployed(prefix: &str, replicas: u32) -> Self {
        let operator = Self::new(prefix);
        let ran = operator.apply(&old_release(), &operator.deployment("v1", Some(replicas)), &[]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        operator.crd.await_version("v1", true);
        operator.crd.create("v1", 3);
        operator.await_pods(replicas as usize);
        operator
    }

    fn live(&self) -> Value {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/operator", self.crd.namespace);
        self.crd.api().get(&path).ok()
    }

    /// Image, replicas, and whether it is marked as paused.
    fn state(&self) -> (String, u64, bool) {
        let live = self.live();
        let image = live["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        let marked = live["metadata"]["annotations"].get("pushback.dev/paused-replicas").is_some();
        let tag = image.rsplit(':').next().unwrap_or_default().to_owned();
        (tag, live["spec"]["replicas"].as_u64().unwrap_or_default(), marked)
    }

    fn await_pods(&self, count: usize) {
        let path = format!("/api/v1/namespaces/{}/pods", self.crd.namespace);
        wait_until("as many pods as replicas", DEADLINE, || (self.crd.api().list(&path).len() == count).then_some(()));
    }
}

/// Where each text is in what a run printed; they have to be there in this order.
#[track_caller]
fn in_order(ran: &Ran, texts: &[&str]) {
    let mut rest = ran.stdout.as_str();
    for text in texts {
        let at = rest.find(text).unwrap_or_else(|| panic!("{text:?} is missing or too early:\n{}", ran.stdout));
        rest = &rest[at + text.len()..];
    }
}

fn the_old_operator_is_paused_while_objects_move_if_a_field_could_be_lost() {
    let operator = Operator::deployed("waves-cold", 2);
    let ran = operator.apply(&new_release(), &operator.deployment("v2", Some(2)), &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    // The plan says so, and why; then it happens in this order.
    in_order(
        &ran,
        &[
            "operator: paused first, because spec.colour of v2 is lost in v1",
            "operator is paused",
            "3 objects moved to v2, and proved",
            "operator goes on",
        ],
    );
    assert_eq!(operator.state(), ("v2".to_owned(), 2, false));
    assert_eq!((operator.crd.in_etcd().as_str(), operator.crd.stored_versions()), ("v2: 3", json!(["v2"])));
    // Paused, then updated: the old image had no replicas in between.
    operator.await_pods(2);
    // Nothing is left to do.
    let again = ["--storage", "migrate", "--apply-exit-status"];
    let ran = operator.apply(&new_release(), &operator.deployment("v2", Some(2)), &again);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

fn an_operator_runs_on_if_no_field_can_be_lost() {
    let operator = Operator::deployed("waves-hot", 1);
    let same_fields = [("v1", true, false, size()), ("v2", true, true, size())];
    let ran = operator.apply(&same_fields, &operator.deployment("v2", Some(1)), &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("paused"), "{}", ran.stdout);
    in_order(
        &ran,
        &["runs on, because nothing is lost between the old and the new version", "3 objects moved to v2, and proved"],
    );
    assert_eq!(operator.state(), ("v2".to_owned(), 1, false));
    assert_eq!(operator.crd.in_etcd(), "v2: 3");
}

fn an_operator_that_does_not_change_goes_on_with_as_many_replicas_as_it_had() {
    let operator = Operator::new("waves-same");
    // Its replicas are not the manifest's: somebody scales it by hand.
    let deployment = operator.deployment("v1", None);
    let ran = operator.apply(&old_release(), &deployment, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    operator.crd.await_version("v1", true);
    operator.crd.create("v1", 3);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/operator", operator.crd.namespace);
    operator.crd.api().merge_patch(&path, &json!({"spec": {"replicas": 3}})).ok();
    operator.await_pods(3);
    let ran = operator.apply(&new_release(), &deployment, &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    in_order(&ran, &["operator is paused", "3 objects moved to v2, and proved", "operator goes on"]);
    assert_eq!(operator.state(), ("v1".to_owned(), 3, false));
}

fn what_would_be_lost_is_said_before_anything_is_written() {
    let operator = Operator::deployed("waves-lost", 1);
    let ran = operator.apply(&new_release(), &operator.deployment("v2", Some(1)), &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let path = operator.crd.object_path("v2", "cog-1");
    operator.crd.api().merge_patch(&path, &json!({"spec": {"colour": "red"}})).ok();
    let before = (operator.crd.live(), operator.live());
    // Back to the old storage version, with both versions there: nothing but this look prevents the loss.
    let flipped = [("v1", true, true, size()), ("v2", true, false, with_colour())];
    let ran = operator.apply(&flipped, &operator.deployment("v1", Some(1)), &["--storage", "migrate"]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 of 3 objects would lose fields: spec.colour (1, such as "), "{}", ran.stdout);
    assert_eq!((operator.crd.live(), operator.live()), before);
    assert_eq!(operator.crd.in_etcd(), "v2: 3");
}

fn the_old_release_comes_back_with_its_objects() {
    let operator = Operator::deployed("waves-back", 2);
    let ran = operator.apply(&new_release(), &operator.deployment("v2", Some(2)), &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let path = operator.crd.object_path("v2", "cog-1");
    operator.crd.api().merge_patch(&path, &json!({"spec": {"colour": "red"}})).ok();
    // The old definition does not have v2: refused, and what would be lost is named.
    let bridge = ["--storage", "bridge"];
    let ran = operator.apply(&old_release(), &operator.deployment("v1", Some(2)), &bridge);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 of 3 objects would lose fields: spec.colour (1, such as "), "{}", ran.stdout);
    assert_eq!(operator.crd.in_etcd(), "v2: 3");
    // Without that value, it is carried out.
    operator.crd.api().merge_patch(&path, &json!({"spec": {"colour": null}})).ok();
    let ran = operator.apply(&old_release(), &operator.deployment("v1", Some(2)), &bridge);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    in_order(&ran, &["operator is paused", "3 objects moved to v1, and proved", "operator goes on"]);
    assert_eq!(operator.state(), ("v1".to_owned(), 2, false));
    assert_eq!((operator.crd.in_etcd().as_str(), operator.crd.stored_versions()), ("v1: 3", json!(["v1"])));
}

fn an_operator_that_a_killed_run_left_paused_goes_on() {
    let operator = Operator::deployed("waves-killed", 2);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/operator", operator.crd.namespace);
    let paused = json!({"metadata": {"annotations": {"pushback.dev/paused-replicas": "2"}}, "spec": {"replicas": 0}});
    operator.crd.api().merge_patch(&path, &paused).ok();
    // The same manifests again: all there is to do.
    let ran = operator.apply(&old_release(), &operator.deployment("v1", Some(2)), &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("an earlier run has paused it"), "{}", ran.stdout);
    assert_eq!(operator.state(), ("v1".to_owned(), 2, false));
    // Also where the manifest leaves its replicas to others.
    let deployment = operator.deployment("v1", None);
    assert_eq!(operator.apply(&old_release(), &deployment, &[]).code, 0);
    operator.crd.api().merge_patch(&path, &paused).ok();
    let ran = operator.apply(&old_release(), &deployment, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(operator.state(), ("v1".to_owned(), 2, false));
}

/// An admission policy keeps one object from being rewritten.
fn an_operator_stays_paused_while_its_objects_are_half_moved() {
    let operator = Operator::deployed("waves-half", 2);
    let name = operator.crd.namespace.clone();
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [operator.crd.group], "apiVersions": ["*"], "resources": ["cogs", "cogs/status"], "operations": ["UPDATE"],
            }]},
            "validations": [{"expression": "object.metadata.name != 'cog-1'", "message": "cog-1 stays as it is"}],
        },
    });
    operator.crd.api().post(policies, &policy).ok();
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    operator.crd.api().post(bindings, &binding).ok();
    wait_until("the policy is in force", DEADLINE, || {
        let path = format!("{}?dryRun=All", operator.crd.object_path("v1", "cog-1"));
        (operator.crd.api().merge_patch(&path, &json!({"spec": {"size": 7}})).status != 200).then_some(())
    });
    let upgrade = || operator.apply(&new_release(), &operator.deployment("v2", Some(2)), &["--storage", "migrate"]);
    let ran = upgrade();
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("cog-1 stays as it is"), "{}", ran.stdout);
    assert!(ran.stdout.contains("it stays paused, because"), "{}", ran.stdout);
    assert_eq!(operator.state(), ("v1".to_owned(), 0, true));
    operator.crd.api().delete(&format!("{bindings}/{name}")).ok();
    operator.crd.api().delete(&format!("{policies}/{name}")).ok();
    wait_until("the policy is gone", DEADLINE, || {
        let path = format!("{}?dryRun=All", operator.crd.object_path("v1", "cog-1"));
        (operator.crd.api().merge_patch(&path, &json!({"spec": {"size": 7}})).status == 200).then_some(())
    });
    let ran = upgrade();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(operator.state(), ("v2".to_owned(), 2, false));
    assert_eq!(operator.crd.in_etcd(), "v2: 3");
}
