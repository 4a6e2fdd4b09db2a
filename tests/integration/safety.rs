//! What belongs to somebody else stays, what belongs to the app is not forgotten, and nothing is deleted in vain.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::proxy::{FaultProxy, writes};
use crate::support::pushback::{Pushback, Ran};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: two_apps_of_a_directory_leave_each_other_what_is_theirs,
        ApiServer: objects_of_a_kapp_app_that_a_patch_does_not_name_are_not_forgotten,
        ApiServer: kinds_that_could_not_be_listed_are_not_forgotten,
        ApiServer: a_namespace_that_is_missing_for_the_record_is_said_with_what_to_do,
        ApiServer: an_object_that_must_exist_is_not_waited_for,
        ApiServer: an_object_that_is_kept_as_it_is_is_not_waited_for,
        ApiServer: a_replacement_that_the_server_would_refuse_deletes_nothing,
        ApiServer: an_immutable_object_is_replaced_where_its_strategy_says_so,
        ApiServer: the_namespace_of_the_record_is_deleted_last,
        ApiServer: an_object_that_another_app_creates_meanwhile_is_not_taken_over,
        ApiServer: an_object_that_another_app_adopts_meanwhile_is_not_deleted,
        ApiServer: an_object_that_is_to_stay_meanwhile_is_not_deleted,
        ApiServer: an_object_that_has_merely_changed_meanwhile_is_deleted,
        ApiServer: a_secret_that_changes_meanwhile_shows_no_value,
        ApiServer: an_object_of_another_app_is_not_taken_for_a_new_one_where_a_webhook_is_down,
    ]
}

struct App<'a> {
    cluster: &'a TestCluster,
    namespace: String,
    place: Pushback,
}

impl App<'_> {
    fn new(prefix: &str) -> App<'static> {
        let cluster = TestCluster::shared();
        App {
            cluster,
            namespace: cluster.namespace(prefix),
            place: Pushback::with_kubeconfig(cluster.kubeconfig_path()),
        }
    }

    fn run(&self, command: &str, app: &str, manifests: &str, more: &[&str]) -> Ran {
        self.run_as(&self.place, command, app, manifests, more)
    }

    fn run_as(&self, place: &Pushback, command: &str, app: &str, manifests: &str, more: &[&str]) -> Ran {
        let mut arguments = vec![command, "-a", app, "-n", &self.namespace, "--yes", "--wait-timeout=20s"];
        if command != "delete" {
            arguments.extend(["-f", "-"]);
        }
        arguments.extend(more);
        place.run_with_input(&arguments, manifests.as_bytes())
    }

    fn path(&self, plural: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}/{name}", self.namespace)
    }

    fn exists(&self, plural: &str, name: &str) -> bool {
        self.cluster.api().get(&self.path(plural, name)).status == 200
    }

    /// Makes a record one that kapp alone has written.
    fn forget_own_part(&self, app: &str) {
        let own = json!({"data": {"pushback": null, "pushback-inventory": null}});
        self.cluster.api().merge_patch(&self.path("configmaps", app), &own).ok();
    }

    fn label(&self, plural: &str, name: &str) -> Value {
        self.cluster.api().get(&self.path(plural, name)).ok()["metadata"]["labels"]["kapp.k14s.io/app"].take()
    }

    /// Somebody who works through a proxy that does something once, before the first write to an object.
    fn disturbed(
        &self,
        method: &'static str,
        name: &str,
        act: impl Fn(&ApiClient) + Send + Sync + 'static,
    ) -> (Pushback, FaultProxy) {
        let proxy = FaultProxy::start(self.cluster.kubeconfig_path());
        let api = self.cluster.api().clone();
        let first = writes().named(name).that(move |request| request.method == method).first(1);
        proxy.before(first, move |_| act(&api));
        (Pushback::with_kubeconfig(&proxy.kubeconfig()), proxy)
    }
}

fn config_map(name: &str, value: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{key: {value:?}}}}}\n---\n")
}

fn service(port: u32, annotations: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: web, annotations: {{{annotations}}}}}, \
         spec: {{ports: [{{port: {port}}}]}}}}\n---\n"
    )
}

fn two_apps_of_a_directory_leave_each_other_what_is_theirs() {
    let place = Pushback::new();
    let run = |app: &str, manifests: &str, more: &[&str]| {
        let mut arguments = vec!["apply", "-a", app, "-f", "-", "--cluster=dir:live", "--yes"];
        arguments.extend(more);
        place.run_with_input(&arguments, manifests.as_bytes())
    };
    let shared = place.directory().join("live/default/configmap_shared.yaml");
    let both = config_map("shared", "1") + &config_map("one", "1");
    run("first", &both, &[]).expect(0);
    let refused = run("second", &config_map("shared", "2"), &[]).expect(1);
    assert!(refused.stderr.contains("different app 'first' namespace: default"), "{}", refused.stderr);
    run("second", &config_map("shared", "2"), &["--dangerous-override-ownership-of-existing-resources"]).expect(0);
    run("second", &config_map("shared", "2"), &[]).expect(1);
    run("first", &config_map("one", "1"), &[]).expect(0);
    run("second", &config_map("shared", "2"), &[]).expect(0);
    let text = std::fs::read_to_string(&shared).expect("the file of the second app stays");
    assert!(text.contains("key: \"2\""), "{text}");
    place.run(&["delete", "-a", "first", "--cluster=dir:live", "--yes"]).expect(0);
    assert!(shared.exists());
}

fn objects_of_a_kapp_app_that_a_patch_does_not_name_are_not_forgotten() {
    let app = App::new("patch");
    let whole = config_map("one", "1") + &service(80, "");
    app.run("apply", "shop", &whole, &[]).expect(0);
    app.forget_own_part("shop");
    app.run("apply", "shop", &config_map("one", "2"), &["--patch"]).expect(0);
    assert!(app.exists("services", "web"), "--patch deletes nothing");
    app.run("apply", "shop", &config_map("one", "2"), &[]).expect(0);
    assert!(!app.exists("services", "web"), "what the input names no more is pruned");
}

fn kinds_that_could_not_be_listed_are_not_forgotten() {
    let app = App::new("unlisted");
    let whole = config_map("one", "1") + &service(80, "");
    app.run("apply", "shop", &whole, &[]).expect(0);
    app.forget_own_part("shop");
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"namespace": app.namespace, "name": "config-maps"}, "rules": [rule(&["configmaps"], &["*"])],
    });
    app.cluster.api().apply(&role).ok();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"namespace": app.namespace, "name": "config-maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "config-maps"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "narrow"}],
    });
    app.cluster.api().apply(&binding).ok();
    let narrow = Pushback::with_kubeconfig(&app.cluster.kubeconfig_once_allowed("narrow", &app.namespace));
    let ran = app.run_as(&narrow, "apply", "shop", &config_map("one", "2"), &["--preflight=none"]).expect(0);
    assert!(ran.stderr.contains("Service could not be listed"), "{}", ran.stderr);
    assert!(app.exists("services", "web"));
    app.run("apply", "shop", &config_map("one", "2"), &[]).expect(0);
    assert!(!app.exists("services", "web"), "who may list it prunes it");
}

fn a_namespace_that_is_missing_for_the_record_is_said_with_what_to_do() {
    let place = Pushback::on(TestCluster::shared());
    let manifests = "{apiVersion: v1, kind: Namespace, metadata: {name: not-there-yet}}";
    let ran =
        place.run_with_input(&["apply", "-a", "shop", "-n", "not-there-yet", "-f", "-", "--yes"], manifests.as_bytes());
    let ran = ran.expect(1);
    assert!(ran.stderr.contains("--app-namespace"), "{}", ran.stderr);
}

/// Puts a Deployment into the cluster that does not become ready, and returns its manifest.
fn idle_deployment(app: &App<'_>) -> Value {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": app.namespace, "name": "idle"},
        "spec": {
            "selector": {"matchLabels": {"app": "idle"}},
            "template": {
                "metadata": {"labels": {"app": "idle"}},
                "spec": {
                    "nodeSelector": {"no": "node"},
                    "containers": [{"name": "main", "image": "registry.example/main:1"}],
                },
            },
        },
    });
    app.cluster.api().apply(&deployment).ok();
    let status =
        json!({"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}});
    app.cluster.api().merge_patch(&format!("{}/status", app.cluster.api().path_of(&deployment)), &status).ok();
    deployment
}

fn an_object_that_must_exist_is_not_waited_for() {
    let app = App::new("exists");
    let mut deployment = idle_deployment(&app);
    deployment["metadata"]["annotations"] = json!({"kapp.k14s.io/exists": ""});
    let manifests = config_map("one", "1") + &deployment.to_string();
    app.run("apply", "shop", &manifests, &[]).expect(0);
}

fn an_object_that_is_kept_as_it_is_is_not_waited_for() {
    let app = App::new("kept");
    let mut deployment = idle_deployment(&app);
    deployment["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "skip"});
    let manifests = config_map("one", "1") + &deployment.to_string();
    app.run("apply", "shop", &manifests, &[]).expect(0);
}

const REPLACE: &str = "kapp.k14s.io/update-strategy: fallback-on-replace";

fn a_replacement_that_the_server_would_refuse_deletes_nothing() {
    let app = App::new("refused");
    app.run("apply", "shop", &service(80, REPLACE), &[]).expect(0);
    let before = app.cluster.api().get(&app.path("services", "web")).ok();
    let ran = app.run("apply", "shop", &service(99_999, REPLACE), &[]).expect(10);
    assert!(ran.stdout.contains("must be between 1 and 65535"), "{}", ran.stdout);
    assert_eq!(app.cluster.api().get(&app.path("services", "web")).ok(), before);
}

fn an_immutable_object_is_replaced_where_its_strategy_says_so() {
    let app = App::new("immutable");
    let settings = |value: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {{name: settings, annotations: {{{REPLACE}}}}}, \
             data: {{key: {value}}}}}"
        )
    };
    app.run("apply", "shop", &settings("one"), &[]).expect(0);
    let before = app.cluster.api().get(&app.path("configmaps", "settings")).ok();
    app.run("apply", "shop", &settings("two"), &[]).expect(0);
    let after = app.cluster.api().get(&app.path("configmaps", "settings")).ok();
    assert_eq!(after["data"]["key"], "two");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

fn the_namespace_of_the_record_is_deleted_last() {
    let app = App::new("own-namespace");
    let elsewhere = app.cluster.namespace("elsewhere");
    let own = &app.namespace;
    let manifests = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {own}}}}}\n---\n\
         {{apiVersion: v1, kind: ConfigMap, metadata: {{name: far, namespace: {elsewhere}}}}}\n---\n{}",
        config_map("near", "1")
    );
    app.run("apply", "shop", &manifests, &[]).expect(0);
    let ran = app.run("delete", "shop", "", &["--wait=false", "--output=json"]).expect(0);
    let order: Vec<String> = ran
        .events()
        .iter()
        .filter(|event| event["type"] == "change.start" || event["type"] == "change.done")
        .map(|event| format!("{} {}", event["type"], event["object"]["name"]))
        .collect();
    let last = format!("\"change.start\" \"{own}\"");
    assert_eq!(order.iter().position(|line| *line == last), Some(4), "{order:?}");
}

fn an_object_that_another_app_creates_meanwhile_is_not_taken_over() {
    let app = App::new("created");
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs"},
        "metadata": {"namespace": app.namespace, "name": "one", "labels": {"kapp.k14s.io/app": "another"}},
    });
    let (place, _proxy) = app.disturbed("PATCH", "one", move |api| {
        api.apply(&foreign).ok();
    });
    let ran = app.run_as(&place, "apply", "shop", &config_map("one", "ours"), &["--wait=false"]).expect(1);
    assert!(ran.stderr.contains("already associated with a different"), "{}", ran.stderr);
    assert_eq!(app.cluster.api().get(&app.path("configmaps", "one")).ok()["data"]["key"], "theirs");
    assert_eq!(app.label("configmaps", "one"), "another");
}

/// What is pruned while somebody does something to it first.
fn pruned_while(prefix: &str, patch: Value) -> (App<'static>, Ran) {
    let app = App::new(prefix);
    app.run("apply", "shop", &(config_map("one", "1") + &config_map("two", "1")), &[]).expect(0);
    let path = app.path("configmaps", "two");
    let (place, _proxy) = app.disturbed("DELETE", "two", move |api| {
        api.merge_patch(&path, &patch).ok();
    });
    let ran = app.run_as(&place, "apply", "shop", &config_map("one", "1"), &["--wait=false"]);
    (app, ran)
}

fn an_object_that_another_app_adopts_meanwhile_is_not_deleted() {
    let adopted = json!({"metadata": {"labels": {"kapp.k14s.io/app": "another"}}});
    let (app, ran) = pruned_while("adopted", adopted);
    // The next look finds that it belongs to the app no more, so there is nothing left to do.
    ran.expect(0);
    assert_eq!(app.label("configmaps", "two"), "another");
}

fn an_object_that_is_to_stay_meanwhile_is_not_deleted() {
    let protected = json!({"metadata": {"annotations": {"kapp.k14s.io/delete-strategy": "orphan"}}});
    let (app, ran) = pruned_while("protected", protected);
    ran.expect(0);
    assert_eq!(app.label("configmaps", "two"), Value::Null, "it was let go of");
}

fn an_object_that_has_merely_changed_meanwhile_is_deleted() {
    let (app, ran) = pruned_while("touched", json!({"data": {"key": "changed"}}));
    ran.expect(0);
    assert!(!app.exists("configmaps", "two"));
}

fn a_secret_that_changes_meanwhile_shows_no_value() {
    let app = App::new("secret");
    let secret = |value: &str| {
        let mut lines = config_map("first", value);
        lines.push_str(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: login, annotations: \
             {{kapp.k14s.io/change-rule: upsert after upserting first}}}}, stringData: {{password: {value}-password}}}}"
        ));
        lines.replace("{name: first}", "{name: first, annotations: {kapp.k14s.io/change-group: first}}")
    };
    app.run("apply", "shop", &secret("old"), &[]).expect(0);
    let path = app.path("secrets", "login");
    let (place, _proxy) = app.disturbed("PATCH", "login", move |api| {
        // "their-password"
        api.merge_patch(&path, &json!({"data": {"password": "dGhlaXItcGFzc3dvcmQ="}})).ok();
    });
    let arguments = ["--wait=false", "--output=json", "-vvv"];
    // The object before it was written already: this is no plan to be made anew.
    let ran = app.run_as(&place, "apply", "shop", &secret("new"), &arguments).expect(20);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("it was changed since it was planned: data.password"), "{said}");
    for value in ["old-password", "new-password", "their-password", "b2xkLXBhc3N3b3Jk", "bmV3LXBhc3N3b3Jk", "dGhlaXIt"]
    {
        assert!(!said.contains(value), "{value} is shown: {said}");
    }
}

fn an_object_of_another_app_is_not_taken_for_a_new_one_where_a_webhook_is_down() {
    let app = App::new("webhook");
    app.run("apply", "theirs", &config_map("one", "theirs"), &[]).expect(0);
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": app.namespace},
        "webhooks": [{
            "name": "down.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": app.namespace, "name": "nobody"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": app.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "matchConditions": [{"name": "one", "expression": "request.name == 'one'"}],
        }],
    });
    app.cluster.api().apply(&webhook).ok();
    let mut changed = webhook.clone();
    changed["webhooks"][0]["timeoutSeconds"] = json!(3);
    let manifests = format!("{}{changed}", config_map("one", "ours"));
    let ran = app.run("apply", "shop", &manifests, &["--wait=false"]);
    app.cluster.api().delete(&app.cluster.api().path_of(&webhook)).ok();
    let ran = ran.expect(1);
    assert!(ran.stderr.contains("already associated with a different app 'theirs'"), "{}", ran.stderr);
}
