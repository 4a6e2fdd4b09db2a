//! What a run says of what it does not do: Pods that nothing restarts, and fields that somebody else has set in an object
//! that does not become ready.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::TestApp;
use crate::support::pushback::Ran;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: who_reads_a_changed_configuration_and_is_not_restarted_is_named,
        ApiServer: a_restart_that_comes_anyway_is_not_asked_for,
        ApiServer: a_wait_that_times_out_names_the_fields_of_others,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app() -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace("bystanders"))
}

fn configuration(kind: &str, name: &str, value: &str) -> Value {
    let field = if kind == "Secret" { "stringData" } else { "data" };
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: {"key": value}})
}

/// A workload whose Pods have this in their spec beside a container.
fn workload(kind: &str, name: &str, pod: &Value, container: &Value) -> Value {
    let labels = json!({"app": name});
    let mut spec = pod.clone();
    spec["containers"] = json!([container]);
    spec["containers"][0]["name"] = "main".into();
    spec["containers"][0]["image"] = "registry.example/main:1".into();
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template}})
}

fn apply(app: &TestApp, objects: &[Value]) -> Ran {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    app.apply(&list.to_string(), &["--wait=false"]).expect(0)
}

fn hints(ran: &Ran) -> Vec<String> {
    let end = ran.events().pop().expect("an end");
    let hints = end["hints"].as_array().cloned().unwrap_or_default();
    hints.iter().filter_map(|hint| hint.as_str().map(str::to_owned)).collect()
}

fn who_reads_a_changed_configuration_and_is_not_restarted_is_named() {
    let app = app();
    let mounted = json!({"volumes": [{"name": "v", "configMap": {"name": "settings", "optional": true}}]});
    let environment = json!({"envFrom": [{"configMapRef": {"name": "settings"}}]});
    let password = json!({"env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "login", "key": "key"}}}]});
    let objects = |settings: &str, login: &str| {
        vec![
            configuration("ConfigMap", "settings", settings),
            configuration("ConfigMap", "unread", settings),
            configuration("Secret", "login", login),
            workload("Deployment", "web", &mounted, &json!({})),
            workload("DaemonSet", "agent", &json!({}), &environment),
            workload("Deployment", "api", &json!({}), &password),
        ]
    };
    assert_eq!(hints(&apply(&app, &objects("1", "first-pa55"))), Vec::<String>::new(), "their Pods are new");
    let namespace = &app.namespace;
    let ran = apply(&app, &objects("2", "first-pa55"));
    let restart = format!("kubectl rollout restart -n {namespace} deployment/web daemonset/agent");
    let text =
        format!("ConfigMap {namespace}/settings has changed, and nothing restarts the Pods that read it: {restart}");
    assert_eq!(hints(&ran), [text]);
    app.pushback.write(
        "app.yaml",
        json!({"apiVersion": "v1", "kind": "List", "items": objects("2", "second-pa55")}).to_string(),
    );
    let diff = app.pushback.run(&["diff", "-a", "shop", "-n", namespace, "-f", "app.yaml"]).expect(0).stdout;
    assert!(diff.contains("nothing restarts the Pods that read it: Deployment api"), "{diff}");
    let ran = apply(&app, &objects("2", "second-pa55"));
    assert!(
        hints(&ran)[0].ends_with(&format!("kubectl rollout restart -n {namespace} deployment/api")),
        "{:?}",
        hints(&ran)
    );
    assert!(!ran.stdout.contains("pa55"), "{}", ran.stdout);
    assert_eq!(hints(&apply(&app, &objects("2", "second-pa55"))), Vec::<String>::new(), "nothing has changed");
}

fn a_restart_that_comes_anyway_is_not_asked_for() {
    let app = app();
    let mounted = json!({"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "settings"}}]}}]});
    let objects = |value: &str, image: &str| {
        let mut rolled = workload("Deployment", "rolled", &mounted, &json!({}));
        rolled["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        let mut reloaded = workload("Deployment", "reloaded", &mounted, &json!({}));
        reloaded["metadata"]["annotations"] = json!({"reloader.stakater.com/auto": "true"});
        vec![configuration("ConfigMap", "settings", value), rolled, reloaded]
    };
    apply(&app, &objects("1", "a"));
    assert_eq!(hints(&apply(&app, &objects("2", "b"))), Vec::<String>::new());
    // The same change with the image as it is: now one of them stays.
    let named = hints(&apply(&app, &objects("3", "b")));
    assert!(named.len() == 1 && named[0].ends_with("deployment/rolled"), "{named:?}");
}

fn a_wait_that_times_out_names_the_fields_of_others() {
    let app = app();
    let objects = [workload("Deployment", "web", &json!({}), &json!({}))];
    apply(&app, &objects);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web?fieldManager=kubectl-edit", app.namespace);
    let patch = json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "pa55word"}}}}});
    api().request("PATCH", &path, Some("application/merge-patch+json"), Some(&patch)).expect("an answer").ok();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let ran = app.apply(&list.to_string(), &["--wait-timeout=1s"]).expect(22);
    let end = ran.events().pop().expect("an end");
    let reasons = end["unfinished"][0]["reasons"].as_array().cloned().unwrap_or_default();
    let expected = "spec.template.spec.nodeSelector is not in the manifest: kubectl-edit set it at 2";
    assert!(reasons.iter().any(|reason| reason.as_str().is_some_and(|it| it.starts_with(expected))), "{end:#}");
    assert!(!end.to_string().contains("pa55word"), "values are nobody's business");
}
