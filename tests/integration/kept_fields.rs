//! Fields that the server and its controllers fill in, and that kapp keeps by rules of its own: no change is shown, and none is
//! written.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::apply::TestApp;
use crate::support::{TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: what_the_server_and_its_controllers_fill_in_is_no_change,
        ApiServer: what_secretgen_controller_puts_into_a_secret_stays,
        ApiServer: secrets_that_are_generated_for_an_account_stay,
    ]
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

/// Says who patches.
fn patch_as(manager: &str, path: &str, patch: &Value) {
    TestCluster::shared().api().merge_patch(&format!("{path}?fieldManager={manager}"), patch).ok();
}

#[track_caller]
fn assert_unchanged(app: &TestApp, input: &str) {
    for arguments in [&["--wait=false"][..], &["--wait=false", "--recheck"]] {
        let end = app.apply(input, arguments).expect(0).end();
        assert_eq!((&end["outcome"], &end["done"]["update"]), (&json!("unchanged"), &json!(0)), "{arguments:?}: {end}");
    }
}

fn what_the_server_and_its_controllers_fill_in_is_no_change() {
    let app = app("filled-in");
    let api = TestCluster::shared().api();
    let team = format!("{}-team", app.namespace);
    let balanced = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "selector": {"app": "web"},
        "ports": [{"port": 80}]});
    let container = json!({"name": "main", "image": "registry.example/web:1"});
    let objects = [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "plain"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "balanced"}, "spec": balanced}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [container]}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "account"}}),
    ];
    let input: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    app.apply(&input, &["--wait=false"]).expect(0);
    let path = |plural: &str, name: &str| format!("/api/v1/namespaces/{}/{plural}/{name}", app.namespace);
    wait_until("the Pod has a node", Duration::from_secs(60), || {
        api.get(&path("pods", "pod")).ok()["spec"]["nodeName"].is_string().then_some(())
    });
    assert!(api.get(&path("services", "balanced")).ok()["spec"]["healthCheckNodePort"].is_u64(), "not what is tested");
    let annotate = |keys: &[&str]| {
        let annotations: serde_json::Map<_, Value> =
            keys.iter().map(|key| ((*key).to_owned(), "theirs".into())).collect();
        json!({"metadata": {"annotations": annotations}})
    };
    let bound = ["pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"];
    let claim = path("persistentvolumeclaims", "claim");
    patch_as("kube-controller-manager", &claim, &annotate(&bound));
    patch_as("kube-controller-manager", &claim, &json!({"spec": {"volumeName": "pv-1"}}));
    let of_openshift = ["openshift.io/sa.scc.mcs", "openshift.io/sa.scc.uid-range"];
    patch_as("cluster-policy-controller", &format!("/api/v1/namespaces/{team}"), &annotate(&of_openshift));
    let secrets =
        json!({"secrets": [{"name": "account-token-x1"}], "imagePullSecrets": [{"name": "account-dockercfg-x1"}]});
    patch_as("openshift-controller-manager", &path("serviceaccounts", "account"), &secrets);

    let versions = || -> Vec<Value> {
        let watched = [path("services", "plain"), path("services", "balanced"), path("serviceaccounts", "account")];
        watched.iter().map(|path| api.get(path).ok()["metadata"]["resourceVersion"].take()).collect()
    };
    let before = versions();
    assert_unchanged(&app, &input);
    assert_eq!(versions(), before);
    let account = api.get(&path("serviceaccounts", "account")).ok();
    assert_eq!(account["imagePullSecrets"], secrets["imagePullSecrets"]);
    app.delete(&["--wait=false"]).expect(0);
}

fn what_secretgen_controller_puts_into_a_secret_stays() {
    let app = app("secretgen");
    let secret = |annotations: &[&str]| {
        let annotations: serde_json::Map<_, Value> =
            annotations.iter().map(|key| ((*key).to_owned(), "".into())).collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "annotations": annotations},
            "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": BASE64.encode("{}")}})
    };
    let marked = "secretgen.carvel.dev/image-pull-secret";
    let input = secret(&[marked]).to_string();
    app.apply(&input, &[]).expect(0);
    let path = format!("/api/v1/namespaces/{}/secrets/pull", app.namespace);
    let combined = BASE64.encode(r#"{"auths":{}}"#);
    let status = json!({"annotations": {"secretgen.carvel.dev/status": "observed"}});
    patch_as("secretgen-controller", &path, &json!({"data": {".dockerconfigjson": combined}, "metadata": status}));
    assert_unchanged(&app, &input);
    let live = || TestCluster::shared().api().get(&path).ok()["data"][".dockerconfigjson"].take();
    assert_eq!(live(), combined.as_str());
    // On request the manifest decides.
    let opted_out = secret(&[marked, "kapp.k14s.io/disable-default-secretgen-rebase-rules"]).to_string();
    app.apply(&opted_out, &[]).expect(0);
    assert_eq!(live(), BASE64.encode("{}").as_str());
    app.delete(&[]).expect(0);
}

fn secrets_that_are_generated_for_an_account_stay() {
    let app = app("generated");
    let names = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let account = |own: &[&str]| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "account"},
            "secrets": names(own), "imagePullSecrets": names(own)})
        .to_string()
    };
    app.apply(&account(&["own", "other"]), &[]).expect(0);
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/account", app.namespace);
    let all = ["own", "other", "account-token-x1", "account-dockercfg-x1"];
    patch_as("controller", &path, &json!({"secrets": names(&all), "imagePullSecrets": names(&all)}));
    assert_unchanged(&app, &account(&["own", "other"]));
    // What the manifest drops goes, and what was generated stays.
    app.apply(&account(&["own"]), &[]).expect(0);
    let live = TestCluster::shared().api().get(&path).ok();
    for field in ["secrets", "imagePullSecrets"] {
        let left = ["own", "account-token-x1", "account-dockercfg-x1"];
        let there: Vec<&Value> = live[field].as_array().expect("a list").iter().collect();
        assert_eq!(there.len(), left.len(), "{field}: {there:?}");
        assert!(left.iter().all(|name| there.contains(&&json!({"name": name}))), "{field}: {there:?}");
    }
    app.delete(&[]).expect(0);
}
