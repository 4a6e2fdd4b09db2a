//! Fields that a controller keeps, although the manifest names them too: no change is shown, and none is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{app, sound};
use crate::support::certificates::Authority;
use crate::support::{TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_certificate_authority_that_was_injected_stays,
        Controllers: the_rules_of_an_aggregated_role_stay_the_controllers,
        Controllers: what_the_server_and_its_controllers_fill_in_is_no_change,
        ApiServer: what_secretgen_controller_puts_into_a_secret_stays,
        ApiServer: secrets_that_are_generated_for_an_account_stay,
        Controllers: replicas_that_a_controller_has_scaled_stay_and_those_that_a_person_set_do_not,
    ]
}

/// Says who patches.
fn patch_as(manager: &str, path: &str, patch: &Value) {
    TestCluster::shared().api().merge_patch(&format!("{path}?fieldManager={manager}"), patch).ok();
}

#[track_caller]
fn assert_unchanged(app: &crate::support::apply::TestApp, input: &str) {
    for arguments in [&[][..], &["--recheck"]] {
        let end = sound(app.apply(input, arguments), 0).end();
        assert_eq!((&end["outcome"], &end["done"]["update"]), (&json!("unchanged"), &json!(0)), "{arguments:?}: {end}");
    }
}

fn a_certificate_authority_that_was_injected_stays() {
    let app = app("injected");
    let group = format!("{}.example.com", app.namespace);
    let bundle = || BASE64.encode(Authority::new().expect("an authority").certificate());
    let (placeholder, injected) = (bundle(), bundle());
    let service = json!({"namespace": app.namespace, "name": "hook", "path": "/"});
    let client = json!({"service": service, "caBundle": placeholder});
    let never = json!({"matchLabels": {"no": "namespace"}});
    let hooks = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": app.namespace}, "webhooks": [{
            "name": "hook.example.com", "clientConfig": client, "namespaceSelector": never, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        }],
    });
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gears.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": "Gear", "plural": "gears"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}},
        },
    });
    let input = format!("---\n{hooks}\n---\n{definition}\n");
    sound(app.apply(&input, &[]), 0);

    // As cert-manager does it: a certificate of its own in place of the placeholder.
    let paths = [TestCluster::shared().api().path_of(&hooks), TestCluster::shared().api().path_of(&definition)];
    let mut patched = hooks["webhooks"].clone();
    patched[0]["clientConfig"]["caBundle"] = json!(injected);
    patch_as("cert-manager-cainjector", &paths[0], &json!({"webhooks": patched}));
    let conversion = json!({"webhook": {"clientConfig": {"caBundle": injected}}});
    patch_as("cert-manager-cainjector", &paths[1], &json!({"spec": {"conversion": conversion}}));

    assert_unchanged(&app, &input);
    let live = |path: &str| TestCluster::shared().api().get(path).ok();
    assert_eq!(live(&paths[0])["webhooks"][0]["clientConfig"]["caBundle"], injected);
    assert_eq!(live(&paths[1])["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"], injected);
    sound(app.delete(&[]), 0);
}

fn the_rules_of_an_aggregated_role_stay_the_controllers() {
    let app = app("aggregated-role");
    let label = format!("example.com/aggregate-to-{}", app.namespace);
    let role = |name: &str, labels: Value, more: Value| {
        let mut role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("{}-{name}", app.namespace), "labels": labels},
        });
        role.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        role
    };
    let selector = json!({"clusterRoleSelectors": [{"matchLabels": {&label: "true"}}]});
    let whole = role("whole", json!({}), json!({"aggregationRule": selector, "rules": []}));
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let part = role("part", json!({&label: "true"}), json!({"rules": [rule]}));
    let input = format!("---\n{whole}\n---\n{part}\n");
    sound(app.apply(&input, &[]), 0);
    let path = TestCluster::shared().api().path_of(&whole);
    let rules = || TestCluster::shared().api().get(&path).ok()["rules"].take();
    crate::support::wait_until("the controller has aggregated", std::time::Duration::from_secs(60), || {
        (rules() == json!([rule])).then_some(())
    });
    assert_unchanged(&app, &input);
    assert_eq!(rules(), json!([rule]));
    sound(app.delete(&[]), 0);
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
    sound(app.apply(&input, &["--wait=false"]), 0);
    let path = |plural: &str, name: &str| format!("/api/v1/namespaces/{}/{plural}/{name}", app.namespace);
    crate::support::wait_until("the Pod has a node", std::time::Duration::from_secs(60), || {
        api.get(&path("pods", "pod")).ok()["spec"]["nodeName"].is_string().then_some(())
    });
    assert!(api.get(&path("services", "balanced")).ok()["spec"]["healthCheckNodePort"].is_u64(), "not what is tested");
    let annotate = |keys: &[&str]| json!({"metadata": {"annotations": keys.iter().map(|key| ((*key).to_owned(), "theirs".into())).collect::<serde_json::Map<_, Value>>()}});
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
    for arguments in [&["--wait=false"][..], &["--wait=false", "--recheck"]] {
        let end = sound(app.apply(&input, arguments), 0).end();
        assert_eq!((&end["outcome"], &end["done"]["update"]), (&json!("unchanged"), &json!(0)), "{arguments:?}: {end}");
    }
    assert_eq!(versions(), before);
    let account = api.get(&path("serviceaccounts", "account")).ok();
    assert_eq!(account["imagePullSecrets"], secrets["imagePullSecrets"]);
    sound(app.delete(&["--wait=false"]), 0);
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
    sound(app.apply(&input, &[]), 0);
    let path = format!("/api/v1/namespaces/{}/secrets/pull", app.namespace);
    let combined = BASE64.encode(r#"{"auths":{}}"#);
    let status = json!({"annotations": {"secretgen.carvel.dev/status": "observed"}});
    patch_as("secretgen-controller", &path, &json!({"data": {".dockerconfigjson": combined}, "metadata": status}));
    assert_unchanged(&app, &input);
    let live = || TestCluster::shared().api().get(&path).ok()["data"][".dockerconfigjson"].take();
    assert_eq!(live(), combined.as_str());
    // On request the manifest decides.
    let opted_out = secret(&[marked, "kapp.k14s.io/disable-default-secretgen-rebase-rules"]).to_string();
    sound(app.apply(&opted_out, &[]), 0);
    assert_eq!(live(), BASE64.encode("{}").as_str());
    sound(app.delete(&[]), 0);
}

fn secrets_that_are_generated_for_an_account_stay() {
    let app = app("generated");
    let names = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let account = |own: &[&str]| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "account"},
            "secrets": names(own), "imagePullSecrets": names(own)})
        .to_string()
    };
    sound(app.apply(&account(&["own", "other"]), &[]), 0);
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/account", app.namespace);
    let all = ["own", "other", "account-token-x1", "account-dockercfg-x1"];
    patch_as("controller", &path, &json!({"secrets": names(&all), "imagePullSecrets": names(&all)}));
    assert_unchanged(&app, &account(&["own", "other"]));
    // What the manifest drops goes, and what was generated stays.
    sound(app.apply(&account(&["own"]), &[]), 0);
    let live = TestCluster::shared().api().get(&path).ok();
    for field in ["secrets", "imagePullSecrets"] {
        let left = ["own", "account-token-x1", "account-dockercfg-x1"];
        let there: Vec<&Value> = live[field].as_array().expect("a list").iter().collect();
        assert_eq!(there.len(), left.len(), "{field}: {there:?}");
        assert!(left.iter().all(|name| there.contains(&&json!({"name": name}))), "{field}: {there:?}");
    }
    sound(app.delete(&[]), 0);
}

fn replicas_that_a_controller_has_scaled_stay_and_those_that_a_person_set_do_not() {
    let app = app("scaled");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
            },
        },
    });
    let input = format!("---\n{deployment}\n");
    sound(app.apply(&input, &[]), 0);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    let replicas = || TestCluster::shared().api().get(&path).ok()["spec"]["replicas"].take();

    patch_as("horizontal-pod-autoscaler", &format!("{path}/scale"), &json!({"spec": {"replicas": 3}}));
    assert_unchanged(&app, &input);
    assert_eq!(replicas(), 3);
    patch_as("kubectl", &format!("{path}/scale"), &json!({"spec": {"replicas": 2}}));
    sound(app.apply(&input, &[]), 0);
    assert_eq!(replicas(), 1);
}
