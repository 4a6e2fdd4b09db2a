//! The server behind a real API server: who is refused, who is not, and what happens while it is down.

use serde_json::{Value, json};

use super::server::{AdmissionServer, SOON};
use super::{narrow, wide};
use crate::support::api::{Answer, ApiClient};
use crate::support::binaries::Binaries;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: breaking_update_by_any_kind_of_write_is_refused,
        ApiServer: deletion_is_refused_while_objects_exist,
        ApiServer: exempt_users_are_allowed,
        Controllers: helm_and_kubectl_print_the_cause,
        ApiServer: webhook_that_is_down_follows_its_failure_policy,
        ApiServer: webhook_cannot_lock_the_cluster_out,
    ]
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A registered server that is asked about the CRDs of one group.
struct GuardedCrd {
    cluster: &'static TestCluster,
    server: AdmissionServer,
    namespace: String,
    group: String,
}

impl GuardedCrd {
    fn start(prefix: &str, more: &[&str]) -> Self {
        Self::start_printed(prefix, more, &[])
    }

    fn start_printed(prefix: &str, more: &[&str], print: &[&str]) -> Self {
        let cluster = TestCluster::shared();
        let namespace = cluster.namespace(prefix);
        let group = format!("{namespace}.example.com");
        let server = AdmissionServer::start(None, Some(cluster.kubeconfig_path()), more);
        let guarded = Self { cluster, server, namespace, group };
        guarded.api().post(CRDS, &wide(&guarded.group)).ok();
        wait_until("the CRD is established", SOON, || guarded.api().serves(&guarded.object("probe")).then_some(()));
        guarded.api().post(CONFIGURATIONS, &guarded.configuration(print)).ok();
        wait_until("the webhook is asked", SOON, || (guarded.try_narrow().status == 403).then_some(()));
        guarded
    }

    /// The printed configuration, for the CRDs of this test alone.
    fn configuration(&self, more: &[&str]) -> Value {
        let mut configuration = self.server.configuration(more);
        configuration["metadata"]["name"] = self.group.as_str().into();
        let only = json!({"name": "only-this-test", "expression": format!("oldObject.spec.group == '{}'", self.group)});
        configuration["webhooks"][0]["matchConditions"].as_array_mut().expect("conditions").push(only);
        configuration
    }

    fn api(&self) -> &ApiClient {
        self.cluster.api()
    }

    fn path(&self) -> String {
        format!("{CRDS}/foos.{}", self.group)
    }

    fn object(&self, name: &str) -> Value {
        let api_version = format!("{}/v1", self.group);
        let metadata = json!({"name": name, "namespace": self.namespace});
        json!({"apiVersion": api_version, "kind": "Foo", "metadata": metadata, "spec": {"f": "B"}})
    }

    /// A dry run of a breaking change.
    fn try_narrow(&self) -> Answer {
        self.api().merge_patch(&format!("{}?dryRun=All", self.path()), &json!({"spec": narrow(&self.group)["spec"]}))
    }

    fn narrow_by(&self, api: &ApiClient) -> Answer {
        api.merge_patch(&self.path(), &json!({"spec": narrow(&self.group)["spec"]}))
    }
}

impl Drop for GuardedCrd {
    fn drop(&mut self) {
        self.api().delete(&format!("{CONFIGURATIONS}/{}", self.group));
    }
}

#[track_caller]
fn refused(answer: &Answer, group: &str) {
    assert_eq!(answer.status, 403, "{}", answer.body);
    let start = format!("admission webhook \"crds.pushback.dev\" denied the request: CRD foos.{group}");
    assert!(answer.message().starts_with(&start), "{}", answer.message());
}

fn breaking_update_by_any_kind_of_write_is_refused() {
    let guarded = GuardedCrd::start("admit-update", &[]);
    let (api, group) = (guarded.api(), guarded.group.as_str());
    refused(&guarded.narrow_by(api), group);
    refused(&api.apply_with(&narrow(group), "fieldManager=other&force=true"), group);
    let mut whole = narrow(group);
    whole["metadata"] = api.get(&guarded.path()).ok()["metadata"].clone();
    refused(&api.put(&guarded.path(), &whole), group);
    // The product itself is refused in its dry run.
    let pushback = Pushback::on(guarded.cluster);
    pushback.write("crd.yaml", narrow(group).to_string());
    let apply = ["apply", "-a", "foos", "-f", "crd.yaml", "-n", &guarded.namespace, "--yes", "--preflight=none"];
    let ran = pushback.run(&apply).expect(10);
    assert!(ran.stdout.contains("crds.pushback.dev"), "{}", ran.stdout);
    // Metadata, status and safe changes.
    api.merge_patch(&guarded.path(), &json!({"metadata": {"labels": {"a": "b"}}})).ok();
    api.merge_patch(&format!("{}/status", guarded.path()), &json!({"status": {"storedVersions": ["v1"]}})).ok();
    let described = super::crd(group, &json!({"type": "string", "description": "a field"}));
    api.apply_with(&described, "fieldManager=other&force=true").ok();
    // An acceptance is written with the change, and does not outlive it.
    let mut accepted = narrow(group);
    accepted["metadata"]["annotations"] = json!({"pushback.dev/accept-breaking": "no object has B"});
    api.apply_with(&accepted, "fieldManager=other&force=true").ok();
    guarded.server.wait_for("accepted: no object has B");
    let mut next = accepted.clone();
    next["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["f"]["enum"] =
        json!(["C"]);
    let answer = api.apply_with(&next, "fieldManager=other&force=true");
    refused(&answer, group);
    assert!(answer.message().contains("is older than this change"), "{}", answer.message());
}

fn deletion_is_refused_while_objects_exist() {
    let guarded = GuardedCrd::start("admit-delete", &["--read-objects"]);
    let (api, group) = (guarded.api(), guarded.group.as_str());
    let object = guarded.object("kept");
    api.apply(&object).ok();
    let answer = api.delete(&guarded.path());
    refused(&answer, group);
    assert!(answer.message().contains("1 Foo object would be deleted with it"), "{}", answer.message());
    // Each CRD of a collection is a deletion of its own.
    api.merge_patch(&guarded.path(), &json!({"metadata": {"labels": {"test": group}}})).ok();
    refused(&api.delete(&format!("{CRDS}?labelSelector=test%3D{group}")), group);
    api.delete(&api.path_of(&object)).ok();
    api.delete(&guarded.path()).ok();
    wait_until("the CRD is deleted", SOON, || (api.get(&guarded.path()).status == 404).then_some(()));
}

fn exempt_users_are_allowed() {
    let guarded = GuardedCrd::start("admit-exempt", &["--exempt-user", "admit-exempt-breaker"]);
    let (api, group) = (guarded.api(), guarded.group.as_str());
    let breaker = guarded.cluster.api_for("admit-exempt-breaker", &["system:masters"]);
    let other = guarded.cluster.api_for("admit-exempt-other", &["system:masters"]);
    refused(&guarded.narrow_by(&other), group);
    guarded.narrow_by(&breaker).ok();
    guarded.server.wait_for("by admit-exempt-breaker exempt: user admit-exempt-breaker: ");
    // Without the right to read objects, a deletion is unknown, and an annotation accepts it.
    let answer = api.delete(&guarded.path());
    refused(&answer, group);
    assert!(answer.message().contains("--read-objects"), "{}", answer.message());
    let accept = json!({"metadata": {"annotations": {"pushback.dev/accept-deletion": "a test"}}});
    api.merge_patch(&guarded.path(), &accept).ok();
    api.delete(&guarded.path()).ok();
}

fn helm_and_kubectl_print_the_cause() {
    let guarded = GuardedCrd::start("admit-tools", &[]);
    let group = guarded.group.as_str();
    let place = Pushback::on(guarded.cluster).with_renderers();
    place.write("chart/Chart.yaml", "apiVersion: v2\nname: foos\nversion: 1.0.0\n");
    let cause = format!("denied the request: CRD foos.{group} v1 spec.f: ");
    // The chart brings a CRD of its own, under another group that is not in use yet.
    let own = format!("own.{group}");
    let write = |crd: &Value| {
        place.write("chart/templates/crd.yaml", crd.to_string());
    };
    let helm = |action: &str| {
        place.run_in_shell(&format!("helm {action} foos chart --namespace {} --wait=false", guarded.namespace))
    };
    write(&wide(&own));
    helm("install").expect(0);
    let mut configuration = guarded.api().get(&format!("{CONFIGURATIONS}/{group}")).ok();
    configuration["webhooks"][0]["matchConditions"][3]["expression"] =
        format!("oldObject.spec.group in ['{group}', '{own}']").into();
    guarded.api().put(&format!("{CONFIGURATIONS}/{group}"), &configuration).ok();
    let path = format!("{CRDS}/foos.{own}");
    let narrowed = json!({"spec": narrow(&own)["spec"]});
    wait_until("the webhook is asked about the chart's CRD", SOON, || {
        (guarded.api().merge_patch(&format!("{path}?dryRun=All"), &narrowed).status == 403).then_some(())
    });
    write(&narrow(&own));
    let refused = helm("upgrade").expect(1);
    assert!(refused.stderr.contains(&cause.replace(group, &own)), "{}", refused.stderr);
    let mut accepted = narrow(&own);
    accepted["metadata"]["annotations"] = json!({"pushback.dev/accept-breaking": "no object has B"});
    write(&accepted);
    helm("upgrade").expect(0);

    let binaries = Binaries::get(true).and_then(|binaries| binaries.command("kubectl")).expect("kubectl");
    place.write("crd.yaml", narrow(group).to_string());
    for arguments in ["apply -f crd.yaml", "apply -f crd.yaml --server-side --force-conflicts", "replace -f crd.yaml"] {
        let refused = place.run_in_shell(&format!("{} {arguments}", binaries.join(" "))).expect(1);
        assert!(refused.stderr.contains(&cause), "{arguments}: {}", refused.stderr);
    }
    let refused = place.run_in_shell(&format!("{} delete -f crd.yaml", binaries.join(" "))).expect(1);
    assert!(refused.stderr.contains("accept-deletion=REASON"), "{}", refused.stderr);
}

fn webhook_that_is_down_follows_its_failure_policy() {
    let mut guarded = GuardedCrd::start_printed("admit-down", &[], &["--failure-policy", "fail", "--timeout", "2"]);
    guarded.server.end();
    let (api, configuration) = (guarded.api(), format!("{CONFIGURATIONS}/{}", guarded.group));
    let answer = guarded.narrow_by(api);
    assert_eq!(answer.status, 500, "{}", answer.body);
    assert!(answer.message().contains("failed calling webhook"), "{}", answer.message());
    // A write that changes no `spec` is never sent.
    api.merge_patch(&guarded.path(), &json!({"metadata": {"labels": {"down": "yes"}}})).ok();
    let mut webhooks = api.get(&configuration).ok()["webhooks"].clone();
    webhooks[0]["failurePolicy"] = "Ignore".into();
    api.merge_patch(&configuration, &json!({"webhooks": webhooks})).ok();
    wait_until("the change is ignored", SOON, || (guarded.try_narrow().status == 200).then_some(()));
    guarded.narrow_by(api).ok();
}

/// While the webhook is down and failures refuse, everything that ends the state is possible.
fn webhook_cannot_lock_the_cluster_out() {
    let mut guarded = GuardedCrd::start_printed(
        "admit-lock",
        &[],
        &["--failure-policy", "fail", "--timeout", "2", "--exempt-group", "admit-lock-glass"],
    );
    let cluster = guarded.cluster;
    guarded.server.end();
    let api = cluster.api();
    assert_eq!(guarded.narrow_by(api).status, 500);
    // Another CRD can be created, and the objects of a guarded one are not the webhook's business.
    let other = wide(&format!("other.{}", guarded.group));
    api.post(CRDS, &other).ok();
    api.delete(&format!("{CRDS}/{}", other["metadata"]["name"].as_str().expect("a name"))).ok();
    api.apply(&guarded.object("free")).ok();
    // What it runs on is never sent to it.
    let namespace = format!("/api/v1/namespaces/{}", guarded.namespace);
    api.merge_patch(&namespace, &json!({"metadata": {"labels": {"a": "b"}}})).ok();
    // Who may break the glass is not sent to it either, even while it is down.
    let glass = cluster.api_for("admit-lock-admin", &["system:masters", "admit-lock-glass"]);
    guarded.narrow_by(&glass).ok();
    // A new release of it comes up, and judges.
    guarded = {
        let configured = format!("{CONFIGURATIONS}/{}", guarded.group);
        let (group, namespace) = (guarded.group.clone(), guarded.namespace.clone());
        assert_eq!(api.get(&configured).status, 200);
        let server = restarted(guarded);
        GuardedCrd { cluster, server, namespace, group }
    };
    api.post(CONFIGURATIONS, &guarded.configuration(&["--failure-policy", "fail"])).ok();
    let wider = json!({"spec": wide(&guarded.group)["spec"]});
    wait_until("safe changes pass", SOON, || {
        (api.merge_patch(&format!("{}?dryRun=All", guarded.path()), &wider).status == 200).then_some(())
    });
    // The configuration is never sent to a webhook.
    api.delete(&format!("{CONFIGURATIONS}/{}", guarded.group)).ok();
}

/// Ends the guard of a CRD, and starts its server anew.
fn restarted(guarded: GuardedCrd) -> AdmissionServer {
    drop(guarded);
    AdmissionServer::start(None, None, &[])
}
