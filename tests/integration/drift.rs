//! What others have set in an app's objects is left alone, and told where a plan is asked to compare with the live objects.
//! What is not to go with the app is left where it is.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, planned};
use crate::support::{Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: what_others_have_set_is_told_where_it_is_asked_for,
        ApiServer: what_others_have_set_goes_where_a_config_says_so,
        ApiServer: a_config_leaves_objects_where_they_are,
        ApiServer: what_the_store_cannot_hold_is_refused_before_anything_is_written,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

const WEB: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'registry.example/web:1'}]}
";

fn drift(ran: &Ran) -> Vec<String> {
    let told = ran.events_of("warning").into_iter().filter(|event| event["code"] == "drift");
    told.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
}

fn what_others_have_set_is_told_where_it_is_asked_for() {
    let app = app("drift");
    app.apply(WEB, &["--wait=false"]).expect(0);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    let set = json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}});
    api().merge_patch(&path, &set).ok();
    let diff = |further: &[&str]| app.run("diff", &[&["-f", "app.yaml"][..], further].concat()).expect(0);
    assert_eq!(drift(&diff(&[])), Vec::<String>::new());
    let ran = diff(&["--diff-against", "live"]);
    let told = drift(&ran);
    assert!(
        told.len() == 1 && told[0].starts_with("spec.template.spec.nodeSelector is not in the manifest: "),
        "{told:?}"
    );
    assert!(!told[0].contains("ssd"), "values may be secret");
    assert!(planned(&ran).iter().all(|line| line.starts_with("noop")), "{:?}", planned(&ran));
    app.apply(&WEB.replace("web:1", "web:2"), &["--wait=false", "--diff-against=live"]).expect(0);
    assert_eq!(api().get(&path).ok()["spec"]["template"]["spec"]["nodeSelector"]["disk"], "ssd", "it stays");
}

fn what_others_have_set_goes_where_a_config_says_so() {
    let app = app("drift");
    let rule = |path: &str, kind: &str| {
        format!(
            "- path: {path}\n  ownership: exclusive\n  resourceMatchers: [{{apiVersionKindMatcher: {{apiVersion: {kind}}}}}]\n"
        )
    };
    let config = "---\napiVersion: pushback.dev/v1alpha1\nkind: Config\nfieldOwnershipRules:\n".to_owned()
        + &rule("[data]", "v1, kind: ConfigMap")
        + &rule("[spec, template, spec, nodeSelector]", "apps/v1, kind: Deployment")
        + &rule("[spec, template, spec, containers, {allIndexes: true}, env]", "apps/v1, kind: Deployment");
    let input = config + WEB + &config_map("settings", "1");
    app.apply(&input, &["--wait=false"]).expect(0);
    let deployment = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    let settings = config_map_path(&app.namespace, "settings");
    let foreign = json!({"metadata": {"labels": {"theirs": "x"}}, "spec": {"paused": true, "template": {"spec": {
        "nodeSelector": {"disk": "ssd"}, "terminationGracePeriodSeconds": 7}}}});
    api().merge_patch(&deployment, &foreign).ok();
    let env = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": app.namespace},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}}});
    api().apply(&env).ok();
    api().merge_patch(&settings, &json!({"data": {"more": "x"}, "metadata": {"labels": {"theirs": "x"}}})).ok();

    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    let mut lines = planned(&ran);
    lines.sort();
    assert_eq!(lines, ["update ConfigMap settings", "update Deployment web"]);
    let live = api().get(&deployment).ok();
    let pod = &live["spec"]["template"]["spec"];
    assert_eq!((&pod["nodeSelector"], &pod["containers"][0]["env"]), (&Value::Null, &Value::Null));
    assert_eq!((&live["spec"]["paused"], &pod["terminationGracePeriodSeconds"]), (&json!(true), &json!(7)));
    assert_eq!(live["metadata"]["labels"]["theirs"], "x");
    let live = api().get(&settings).ok();
    assert_eq!((&live["data"], &live["metadata"]["labels"]["theirs"]), (&json!({"key": "1"}), &json!("x")));
    let again = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged", "{:?}", planned(&again));
}

fn a_config_leaves_objects_where_they_are() {
    let app = app("orphans");
    let config = "---\napiVersion: pushback.dev/v1alpha1\nkind: Config\ndeleteStrategyRules:\n- strategy: orphan\n  \
                  resourceMatchers: [{kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NAMESPACE, name: kept}}]\n";
    let input = config.replace("NAMESPACE", &app.namespace) + &config_map("kept", "1") + &config_map("other", "1");
    app.apply(&input, &[]).expect(0);
    let deleted = app.delete(&[]).expect(0);
    assert_eq!(deleted.end()["done"]["orphaned"], 1, "{}", deleted.end());
    let kept = api().get(&config_map_path(&app.namespace, "kept")).ok();
    assert_eq!(kept["metadata"]["labels"]["kapp.k14s.io/app"], Value::Null);
    assert_eq!(api().get(&config_map_path(&app.namespace, "other")).status, 404);
}

fn what_the_store_cannot_hold_is_refused_before_anything_is_written() {
    let app = app("sizes");
    let group = format!("{}.example.com", app.namespace);
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: notes.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{kind: Note, plural: notes}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties: \
         {{text: {{type: string}}}}\n"
    );
    let owner = TestApp::new("definitions", &app.namespace);
    owner.apply(&definition, &[]).expect(0);
    let note = |size: usize| {
        let text = "x".repeat(size);
        let note = format!("---\napiVersion: {group}/v1\nkind: Note\nmetadata: {{name: long}}\ntext: {text}\n");
        note + &config_map("small", "1")
    };
    let ran = app.apply(&note(1_572_864), &[]).expect(10);
    let findings = ran.events_of("finding");
    assert_eq!((findings.len(), &findings[0]["finding"]["check"]), (1, &json!("too-large")), "{findings:?}");
    assert_eq!(api().get(&config_map_path(&app.namespace, "small")).status, 404);
    // Told by the store itself: correcting it helps, the same again does not.
    let ran = app.apply(&note(1_572_864), &["--strict=false"]).expect(20);
    let hints = ran.end()["hints"].to_string();
    assert!(hints.contains("correct what the server refuses") && !hints.contains("run the same"), "{hints}");
    app.apply(&note(1_500_000), &[]).expect(0);
    app.delete(&[]).expect(0);
    owner.delete(&[]).expect(0);
}
