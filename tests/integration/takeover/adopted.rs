//! Objects of Helm, of other tools and of the cluster itself that an app takes over: the plan names their owner once.

use serde_json::{Value, json};

use super::{create, manifest, new_app};
use crate::support::apply::TestApp;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: object_of_helm_is_named_with_its_release_until_it_is_adopted,
        ApiServer: object_of_kube_system_is_named,
    ]
}

/// Messages of the warnings about adopted objects.
fn warnings(app: &TestApp, command: &str, more: &[&str]) -> Vec<String> {
    let ran = app.run(command, &[&["-f", "app.yaml"], more].concat()).expect(0);
    let told = ran.events_of("warning").into_iter().filter(|event| event["code"] == "adopted");
    told.map(|event| event["message"].as_str().expect("a message").to_owned()).collect()
}

fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
        "data": {"key": value},
    })
}

fn object_of_helm_is_named_with_its_release_until_it_is_adopted() {
    let app = new_app();
    let mut object = config_map(&app.namespace, "settings", "old");
    object["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod"});
    object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    create(&app, "fieldManager=helm", object);
    let wanted = [config_map(&app.namespace, "settings", "new"), config_map(&app.namespace, "own", "1")];
    app.pushback.write("app.yaml", manifest(&wanted));
    let expected = format!(
        "ConfigMap {}/settings exists and belongs to Helm release prod/db: the app takes it over, and deletes it when it is \
         removed from the manifests",
        app.namespace
    );
    assert_eq!(warnings(&app, "diff", &[]), [expected.as_str()]);
    assert_eq!(warnings(&app, "apply", &["--yes"]), [expected.as_str()]);
    assert_eq!(warnings(&app, "diff", &[]), Vec::<String>::new());
}

fn object_of_kube_system_is_named() {
    let app = new_app();
    let object = config_map("kube-system", &app.namespace, "old");
    let api = TestCluster::shared().api();
    api.post("/api/v1/namespaces/kube-system/configmaps", &object).ok();
    app.pushback.write("app.yaml", manifest(&[config_map("kube-system", &app.namespace, "new")]));
    let told = warnings(&app, "diff", &[]);
    assert!(told.len() == 1 && told[0].contains("belongs to the cluster itself (namespace kube-system)"), "{told:?}");
    api.delete(&format!("/api/v1/namespaces/kube-system/configmaps/{}", app.namespace)).ok();
}
