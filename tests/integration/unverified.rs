//! Valid sets of objects are not refused for what the server cannot know before a part of the set is there.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::apply::assert_order;
use crate::support::webhook::{Form, Verdict, Webhook, configuration};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_definition_and_its_first_resource,
        Controllers: a_namespace_and_what_is_in_it,
        Controllers: a_service_account_and_a_pod_that_runs_as_it,
        Controllers: a_role_and_its_binding_by_a_user_who_may_not_bind,
        Controllers: a_definition_that_gains_a_field_and_a_resource_that_uses_it,
        Controllers: a_webhook_and_its_own_backend,
        Controllers: the_missing_backend_of_a_webhook,
        Controllers: a_webhook_without_dry_run,
        Controllers: a_namespace_that_allows_more_and_a_pod_that_needs_it,
        Controllers: a_policy_and_a_quota_that_are_loosened_and_what_they_then_allow,
    ]
}

/// A CRD of kind Box, in a group named after the namespace.
pub(crate) fn definition(namespace: &str, properties: &str) -> String {
    format!(
        "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: boxes.{namespace}.example.com}}
spec:
  group: {namespace}.example.com
  scope: Namespaced
  names: {{kind: Box, plural: boxes, singular: box}}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                {properties}
"
    )
}

fn a_box(namespace: &str, spec: &str) -> String {
    format!("---\napiVersion: {namespace}.example.com/v1\nkind: Box\nmetadata: {{name: one}}\nspec: {spec}\n")
}

/// Checks and applies, which both must pass; the run of apply.
#[track_caller]
fn deploy(pushback: &Pushback, namespace: &str, input: &str) -> Ran {
    pushback.write("app.yaml", input);
    let arguments = ["-a", "valid", "-f", "app.yaml", "-n", namespace, "--yes", "-o", "json"];
    pushback.run(&[&["check"], &arguments[..]].concat()).expect(0);
    let limits = ["apply", "--apply-timeout=60s", "--wait-timeout=60s"];
    let ran = pushback.run(&[&limits, &arguments[..]].concat()).expect(0);
    // And once it is all there, there is nothing left that could not be known.
    let again = pushback.run(&[&["apply", "--recheck"], &arguments[..]].concat()).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged", "{}", again.stdout);
    ran
}

/// The remark that an object's line in the plan has on its verification.
#[track_caller]
fn remark(ran: &Ran, name: &str) -> String {
    let plan = ran.events_of("plan").remove(0);
    let changes = plan["changes"].as_array().expect("changes");
    let change = changes.iter().find(|change| change["object"]["name"] == name).expect("the object's change");
    let notes = change["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    notes.filter_map(|note| note.strip_prefix("not verified by the server: ")).collect::<Vec<_>>().join("; ")
}

fn a_definition_and_its_first_resource() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("crd");
    let pushback = Pushback::on(cluster);
    let input = definition(&namespace, "size: {type: string}") + &a_box(&namespace, "{size: big}");
    let ran = deploy(&pushback, &namespace, &input);
    assert_eq!(remark(&ran, "one"), "its CustomResourceDefinition is created by this run");
}

fn a_namespace_and_what_is_in_it() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("outside");
    let pushback = Pushback::on(cluster);
    let input = format!(
        "\
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}-inside}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {namespace}-inside}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}-inside}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: \"registry.example/web:1\"}}]}}
"
    );
    let ran = deploy(&pushback, &namespace, &input);
    assert_eq!(remark(&ran, "settings"), format!("Namespace {namespace}-inside is created by this run"));
}

fn a_service_account_and_a_pod_that_runs_as_it() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("account");
    let pushback = Pushback::on(cluster);
    let input = "\
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  serviceAccountName: worker
  containers: [{name: main, image: \"registry.example/job:1\"}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: worker}
";
    let ran = deploy(&pushback, &namespace, input);
    assert_eq!(remark(&ran, "job"), "ServiceAccount worker is changed by this run");
}

fn a_role_and_its_binding_by_a_user_who_may_not_bind() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("restricted");
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"],
         "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
         "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]},
    ]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"namespace": namespace, "name": "deployer"}, "rules": rules,
    });
    cluster.api().apply(&role).ok();
    let user = format!("{namespace}-deployer");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"namespace": namespace, "name": "deployer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    cluster.api().apply(&binding).ok();
    let kubeconfig = cluster.kubeconfig_once_allowed(&user, &namespace);
    let input = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads-settings}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: settings-reader}
subjects: [{kind: ServiceAccount, name: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: settings-reader}
rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]
";
    let ran = deploy(&Pushback::with_kubeconfig(&kubeconfig), &namespace, input);
    assert_eq!(remark(&ran, "reads-settings"), "Role settings-reader is changed by this run");
}

fn a_definition_that_gains_a_field_and_a_resource_that_uses_it() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("gains");
    let pushback = Pushback::on(cluster);
    let open = "---\napiVersion: kapp.k14s.io/v1alpha1\nkind: Config\npreflightRules:\n  \
                - name: CRDUpgradeSafety\n    config: {failMode: open}\n";
    deploy(
        &pushback,
        &namespace,
        &(definition(&namespace, "size: {type: string}") + &a_box(&namespace, "{size: big}") + open),
    );
    let properties = "size: {type: string}\n                colour: {type: string}";
    let input = definition(&namespace, properties) + &a_box(&namespace, "{size: big, colour: red}") + open;
    let ran = deploy(&pushback, &namespace, &input);
    assert_eq!(remark(&ran, "one"), "the CustomResourceDefinition of Box is changed by this run");
    let stored = cluster.api().get(&format!("/apis/{namespace}.example.com/v1/namespaces/{namespace}/boxes/one")).ok();
    assert_eq!(stored["spec"], json!({"size": "big", "colour": "red"}));
}

/// A Service that leads to this machine: there are no Pods that could run a webhook.
fn backend(namespace: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: hook, namespace: {namespace}}}\n\
         spec: {{type: ExternalName, externalName: localhost}}\n"
    )
}

/// It judges Secrets, so that the app's own record is none of its business.
fn webhook_for_secrets(webhook: &Webhook, namespace: &str) -> Value {
    let service = json!({"namespace": namespace, "name": "hook", "port": webhook.port(), "path": "/judge"});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]});
    configuration(
        Form::Validating,
        namespace,
        &json!({"service": service, "caBundle": webhook.ca_bundle()}),
        json!({"rules": [rule]}),
    )
}

const SECRET: &str = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: judged}\nstringData: {key: value}\n";

fn a_webhook_and_its_own_backend() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("own-backend");
    let webhook = Webhook::start(&[&format!("hook.{namespace}.svc")], |_| Verdict::Allow);
    let configuration = webhook_for_secrets(&webhook, &namespace).to_string();
    let pushback = Pushback::on(cluster);
    let input = configuration + "\n" + SECRET + &backend(&namespace);
    let ran = deploy(&pushback, &namespace, &input);
    // Before its Service the webhook would only refuse the Secret, for which the Service waits.
    assert_order(&ran, "Service hook", &format!("ValidatingWebhookConfiguration {namespace}"));
    // From now on the webhook is asked.
    let changed = input.replace("key: value", "key: changed");
    deploy(&pushback, &namespace, &changed);
    assert!(webhook.asked().iter().any(|request| request["name"] == "judged"), "{:?}", webhook.asked());
    pushback.run(&["delete", "-a", "valid", "-n", &namespace, "--yes"]).expect(0);
}

fn the_missing_backend_of_a_webhook() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("repaired");
    let webhook = Webhook::start(&[&format!("hook.{namespace}.svc")], |_| Verdict::Allow);
    let configuration = webhook_for_secrets(&webhook, &namespace);
    let _registered = webhook.register_unseen(cluster, &configuration);
    let probe = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": "probe"}});
    wait_until("the API server misses the webhook", SOON, || {
        (cluster.api().apply_with(&probe, "fieldManager=test&dryRun=All").status == 500).then_some(())
    });
    let pushback = Pushback::on(cluster);
    pushback.write("secret.yaml", SECRET);
    let arguments = ["-a", "valid", "-f", "secret.yaml", "-n", &namespace, "--yes"];
    pushback.run(&[&["apply"], &arguments[..]].concat()).expect(10);

    let ran = deploy(&pushback, &namespace, &(SECRET.to_owned() + &backend(&namespace)));
    assert_eq!(remark(&ran, "judged"), "the webhook's own backend is in this set");
    assert!(webhook.asked().iter().any(|request| request["name"] == "judged"), "{:?}", webhook.asked());
}

/// Writes an object past the API server, as one that has been stored since a server of old accepted it.
fn store(cluster: &TestCluster, key: &str, object: &Value) {
    let command = std::fs::read_to_string(cluster.directory().join("kube-apiserver.sh")).expect("a command");
    let (_, etcd) = command.split_once("--etcd-servers=").expect("the address of etcd");
    let etcd = etcd.split('\'').next().expect("an address");
    let body = json!({"key": BASE64.encode(key), "value": BASE64.encode(object.to_string())});
    let answer = ureq::post(format!("{etcd}/v3/kv/put")).send(body.to_string());
    assert_eq!(answer.expect("an answer of etcd").status(), 200);
}

/// The API no longer takes `sideEffects: Some`; clusters that have been upgraded for long may still have it.
fn a_webhook_without_dry_run() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("side-effects");
    let webhook = Webhook::start(&[], |_| Verdict::Allow);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]});
    let overrides = json!({"rules": [rule]});
    let mut configuration = configuration(Form::Validating, &namespace, &webhook.by_url(), overrides);
    let _registered = webhook.register_unseen(cluster, &configuration);
    let stored = cluster.api().get(&cluster.api().path_of(&configuration)).ok();
    configuration["metadata"] = stored["metadata"].clone();
    configuration["webhooks"] = stored["webhooks"].clone();
    configuration["webhooks"][0]["sideEffects"] = json!("Some");
    store(cluster, &format!("/registry/validatingwebhookconfigurations/{namespace}"), &configuration);
    let probe = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": "probe"}});
    wait_until("the webhook prevents dry-runs", SOON, || {
        let answer = cluster.api().apply_with(&probe, "fieldManager=test&dryRun=All");
        answer.message().contains("does not support dry run").then_some(())
    });
    let pushback = Pushback::on(cluster);
    pushback.write("app.yaml", SECRET);
    let arguments = ["-a", "valid", "-f", "app.yaml", "-n", &namespace, "--yes", "-o", "json"];
    pushback.run(&[&["check"], &arguments[..]].concat()).expect(0);
    assert_eq!(webhook.asked().len(), 0);
    let ran = pushback.run(&[&["apply"], &arguments[..]].concat()).expect(0);
    assert!(remark(&ran, "judged").contains("does not support dry run"), "{}", ran.stdout);
    assert!(webhook.asked().iter().any(|request| request["name"] == "judged"), "{:?}", webhook.asked());
}

fn a_namespace_that_allows_more_and_a_pod_that_needs_it() {
    let cluster = TestCluster::shared();
    let outside = cluster.namespace("security");
    let pushback = Pushback::on(cluster);
    let namespace = |level: &str| {
        format!(
            "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {outside}-inside\n  \
             labels: {{pod-security.kubernetes.io/enforce: {level}}}\n"
        )
    };
    deploy(&pushback, &outside, &namespace("restricted"));
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: host, namespace: {outside}-inside}}\n\
         spec: {{hostNetwork: true, containers: [{{name: main, image: \"registry.example/host:1\"}}]}}\n"
    );
    let ran = deploy(&pushback, &outside, &(pod + &namespace("privileged")));
    assert_eq!(remark(&ran, "host"), format!("Namespace {outside}-inside is changed by this run"));
}

fn a_policy_and_a_quota_that_are_loosened_and_what_they_then_allow() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("loosened");
    let policy = |expression: &str, limit: u32| {
        format!(
            "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {namespace}}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
      - {{apiGroups: [\"\"], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}}
  validations: [{{expression: \"{expression}\"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {namespace}}}
spec: {{policyName: {namespace}, validationActions: [Deny]}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: secrets}}
spec: {{hard: {{count/secrets: \"{limit}\"}}}}
"
        )
    };
    let pushback = Pushback::on(cluster);
    deploy(&pushback, &namespace, &policy("object.metadata.name != 'unwanted'", 0));
    let probe =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "unwanted"}});
    wait_until("the policy is in force", SOON, || {
        (cluster.api().apply_with(&probe, "fieldManager=test&dryRun=All").status == 422).then_some(())
    });
    // What it allows stands before the policy in the input, and before it in kapp's order.
    let wanted = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unwanted}\n---\n\
                  apiVersion: v1\nkind: Secret\nmetadata: {name: one}\n---\n";
    let ran = deploy(&pushback, &namespace, &(wanted.to_owned() + &policy("true", 1)));
    assert_eq!(remark(&ran, "unwanted"), "a webhook or admission policy is changed by this run");
    assert_eq!(remark(&ran, "one"), "a quota or limit range of its namespace is changed by this run");
}
