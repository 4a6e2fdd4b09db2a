//! The first deploy into a namespace that the set brings: the server is asked elsewhere whether the fields are right, and
//! nothing that depends on the namespace is held against the set.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::SOON;
use crate::support::apply::TestApp;
use crate::support::case::show;
use crate::support::proxy::{FaultProxy, Verb, any, matching};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_misspelt_field_is_found_before_anything_is_written,
        ApiServer: what_the_server_refuses_in_any_namespace_is_found_before_anything_is_written,
        ApiServer: what_depends_on_the_namespace_is_not_held_against_the_set,
        ApiServer: a_large_set_costs_two_requests_an_object,
        ApiServer: who_may_not_ask_elsewhere_pays_one_request_an_object,
    ]
}

/// An app whose record is in one namespace and whose objects go into another one that it brings.
struct New {
    cluster: &'static TestCluster,
    home: String,
    inside: String,
    proxy: FaultProxy,
    app: TestApp,
}

impl New {
    fn of(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let home = cluster.namespace(prefix);
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "new", &home);
        Self { inside: format!("{home}-inside"), cluster, home, proxy, app }
    }

    fn namespace(&self) -> String {
        format!("---\n{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}\n", self.inside)
    }

    /// So many objects of a kind of the core group; `part` is their content.
    fn objects(&self, kind: &str, count: usize, part: &str) -> String {
        (0..count).fold(String::new(), |mut text, number| {
            let _ = write!(
                text,
                "---\n{{apiVersion: v1, kind: {kind}, metadata: {{name: object-{number}, namespace: {}}}, {part}}}\n",
                self.inside
            );
            text
        })
    }

    fn is_untouched(&self) -> bool {
        self.cluster.api().get(&format!("/api/v1/namespaces/{}", self.inside)).status == 404
    }
}

/// The findings of a refused run: check, path, object, message.
fn findings(events: &[Value]) -> Vec<Value> {
    let findings = events.iter().filter(|event| event["type"] == "finding");
    findings
        .map(|event| {
            json!([
                event["finding"]["check"],
                event["finding"]["path"],
                event["finding"]["object"]["name"],
                event["finding"]["position"]["line"]
            ])
        })
        .collect()
}

fn a_misspelt_field_is_found_before_anything_is_written() {
    let new = New::of("misspelt");
    let mut input = new.namespace() + &new.objects("ConfigMap", 50, "data: {a: b}");
    let at = input.lines().count() + 2;
    let misspelt = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": new.inside},
        "spec": {
            "replica": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
                "name": "main", "image": "registry.example/web:1", "comand": ["run"],
            }]}},
        },
    });
    let _ = writeln!(input, "---\n{misspelt}");
    let ran = new.app.apply(&input, &[]).expect(10);
    let expected = [
        json!(["unknown-field", "spec.replica", "web", at]),
        json!(["unknown-field", "spec.template.spec.containers[0].comand", "web", at]),
    ];
    let mut found = findings(&ran.events());
    found.sort_by_key(Value::to_string);
    assert_eq!(found, expected, "{}", ran.stdout);
    assert!(!ran.stdout.contains("web-"), "no word of another name: {}", ran.stdout);
    assert!(new.is_untouched());
    assert_eq!(
        new.proxy.count(&any().that(|request| request.writes()
            && request.resource != "selfsubjectaccessreviews"
            && request.resource != "selfsubjectrulesreviews")),
        0
    );
}

fn what_the_server_refuses_in_any_namespace_is_found_before_anything_is_written() {
    let new = New::of("invalid-inside");
    let port = "spec: {ports: [{port: 0, targetPort: 80}]}";
    let ran = new.app.apply(&(new.namespace() + &new.objects("Service", 1, port)), &[]).expect(10);
    assert_eq!(findings(&ran.events()), [json!(["invalid", "spec.ports[0].port", "object-0", 4])], "{}", ran.stdout);
    assert!(new.is_untouched());
}

/// The namespace in which the server is asked has rules of its own, and allows next to nothing.
fn what_depends_on_the_namespace_is_not_held_against_the_set() {
    let new = New::of("strict-home");
    let api = new.cluster.api();
    let level = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    api.merge_patch(&format!("/api/v1/namespaces/{}", new.home), &level).ok();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": new.home},
        "spec": {"hard": {"count/secrets": "0", "services.nodeports": "0"}}});
    api.apply(&quota).ok();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": new.home},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": new.home}},
                "resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"],
                }],
            },
            "validations": [{"expression": "false"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": new.home}, "spec": {"policyName": new.home, "validationActions": ["Deny"]},
    });
    api.apply(&policy).ok();
    api.apply(&binding).ok();
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "hostNetwork": true, "containers": [{"name": "main", "image": "registry.example/web:1"}],
    }});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": new.inside},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": new.inside},
        "spec": {"hostNetwork": true, "serviceAccountName": "default", "containers": template["spec"]["containers"]},
    });
    let mut elsewhere = deployment.clone();
    elsewhere["metadata"]["namespace"] = json!(new.home);
    wait_until("the policy is in force", SOON, || {
        (api.apply_with(&elsewhere, super::DRY_RUN).status == 422).then_some(())
    });
    // Names that the question cannot keep, because they are as long as they may be.
    let long = format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: {}, namespace: {}}}, spec: {{type: NodePort, ports: [{{port: 80}}]}}}}",
        "n".repeat(63),
        new.inside
    );
    let input = new.namespace()
        + &new.objects("Secret", 2, "stringData: {a: b}")
        + &format!("---\n{deployment}\n---\n{pod}\n---\n{long}\n");
    new.app.pushback.write("app.yaml", &input);
    new.app.run("check", &["-f", "app.yaml"]).expect(0);
    let ran = new.app.apply(&input, &["--wait=false"]);
    api.delete(&format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{}", new.home)).ok();
    // A Pod waits for the ServiceAccount that a controller makes; this cluster may have none.
    let failed: Vec<String> = ran.end()["unfinished"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|line| line["object"]["kind"].to_string())
        .collect();
    assert!(ran.code == 0 || failed == ["\"Pod\""], "{}", ran.stdout);
    let probed =
        new.proxy.requests().into_iter().filter(|it| it.request.dry_run && it.request.namespace == new.home).count();
    assert!(probed >= 5, "{:?}", new.proxy.counts());
}

/// The requests of a run that creates a namespace and 1,000 objects in it.
fn cost(new: &New, kind: &str, arguments: &[&str]) -> u64 {
    let before: usize = new.proxy.counts().values().sum();
    let input = new.namespace() + &new.objects(kind, 1_000, "");
    let ran = new.app.apply(&input, arguments).expect(0);
    let requests = ran.end()["requests"].as_u64().expect("a number");
    let seen: usize = new.proxy.counts().values().sum();
    assert_eq!(requests, (seen - before) as u64);
    show(&format!("a namespace and 1,000 of {kind} in it: {requests} requests, {:?}", new.proxy.counts()));
    requests
}

fn a_large_set_costs_two_requests_an_object() {
    let new = New::of("large-inside");
    assert!(cost(&new, "ConfigMap", &[]) <= 2_100);
    // In the namespace of the questions nothing is left behind but the app's own.
    let left = new.cluster.api().list(&format!("/api/v1/namespaces/{}/configmaps", new.home));
    let foreign =
        left.iter().filter(|it| it["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("object")));
    assert_eq!(foreign.count(), 0);
}

fn who_may_not_ask_elsewhere_pays_one_request_an_object() {
    let mut new = New::of("narrow-inside");
    let (cluster, inside) = (new.cluster, new.inside.clone());
    let user = format!("{}-deployer", new.home);
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let subject = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]);
    let bind = move |kind: &str, namespace: &str, resource: &str| {
        let cluster_wide = namespace.is_empty();
        let metadata = if cluster_wide { json!({"name": user}) } else { json!({"name": user, "namespace": namespace}) };
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": all}]});
        cluster.api().apply(&role).ok();
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
            "metadata": metadata, "subjects": subject,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}});
        cluster.api().apply(&binding).ok();
    };
    let restricted = cluster.api_for(&format!("{}-deployer", new.home), &[]);
    bind("ClusterRole", "", "namespaces");
    bind("Role", &new.home, "configmaps");
    let home = new.home.clone();
    let may = move |namespace: &str, resource: &str| {
        wait_until("the user has the rights", SOON, || {
            (restricted.get(&format!("/api/v1/namespaces/{namespace}/{resource}")).status == 200).then_some(())
        });
    };
    may(&home, "configmaps");
    let kubeconfig = cluster.kubeconfig_for(&format!("{home}-deployer"), &[]);
    let path = new.proxy.kubeconfig_as("restricted", &kubeconfig);
    new.app = TestApp::of(Pushback::with_kubeconfig(&path), "new", &home);
    // Whoever makes a namespace is given the rights in it, as platforms do.
    new.proxy.after(matching(Verb::Apply, "namespaces"), move |_| {
        bind("Role", &inside, "secrets");
        may(&inside, "secrets");
    });
    assert!(cost(&new, "Secret", &["--preflight=none"]) <= 1_060);
}
