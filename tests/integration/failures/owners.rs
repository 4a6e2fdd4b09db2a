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
    // Without its Service, the CRD is refused.
    let backend = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": app.namespace, "name": "hook"},
        "spec": {"ports": [{"port": 443}]}});
    TestCluster::shared().api().apply(&backend).ok();
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
