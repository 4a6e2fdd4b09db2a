//! API groups that do not answer: no obstacle to whom they do not concern, and no proof that anything is gone.

use serde_json::{Value, json};

use super::{lock, secret, sound};
use crate::support::apply::{TestApp, config_map, warnings};
use crate::support::proxy::{FaultProxy, writes};
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_broken_group_that_is_not_used_is_a_warning,
        ApiServer: a_broken_group_in_the_input_ends_the_run_before_anything_is_written,
        ApiServer: of_a_broken_group_nothing_is_pruned_and_nothing_forgotten,
        ApiServer: an_app_with_objects_of_a_broken_group_is_not_deleted_by_half,
    ]
}

/// An app with an object of a group of its own, and the proxy that can break the group.
struct Scene {
    proxy: FaultProxy,
    app: TestApp,
    group: String,
}

impl Scene {
    fn new(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let namespace = cluster.namespace(prefix);
        let group = format!("{namespace}.example.com");
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("gears.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": "Gear", "plural": "gears"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        });
        cluster.api().apply(&definition).ok();
        let gear = json!({"apiVersion": format!("{group}/v1"), "kind": "Gear"});
        crate::support::wait_until("the kind is served", std::time::Duration::from_secs(60), || {
            cluster.api().serves(&gear).then_some(())
        });
        let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "shop", &namespace);
        Self { proxy, app, group }
    }

    fn with_gear(&self, value: &str) -> String {
        let gear = json!({"apiVersion": format!("{}/v1", self.group), "kind": "Gear", "metadata": {"name": "gear"}, "teeth": 12});
        config_map("first", value) + &secret() + &format!("---\n{gear}\n")
    }

    fn has_gear(&self) -> bool {
        let path = format!("/apis/{}/v1/namespaces/{}/gears/gear", self.group, self.app.namespace);
        TestCluster::shared().api().get(&path).status == 200
    }
}

fn a_broken_group_that_is_not_used_is_a_warning() {
    let scene = Scene::new("unused-group");
    scene.proxy.break_group(&scene.group);
    let ran = sound(scene.app.apply(&config_map("first", "1"), &[]), 0);
    let told = warnings(&ran);
    assert!(told.iter().any(|line| line.contains("broken-group") && line.contains(&scene.group)), "{told:?}");
    sound(scene.app.delete(&[]), 0);
}

fn a_broken_group_in_the_input_ends_the_run_before_anything_is_written() {
    let scene = Scene::new("used-group");
    sound(scene.app.apply(&scene.with_gear("1"), &[]), 0);
    scene.proxy.break_group(&scene.group);
    let before = scene.proxy.count(&writes());
    let ran = scene.app.apply(&scene.with_gear("2"), &[]);
    assert!([1, 10, 13].contains(&ran.code), "{}", ran.stdout);
    let code = ran.code;
    let ran = sound(ran, code);
    assert_eq!(scene.proxy.count(&writes()), before, "nothing is written");
    assert!(ran.stdout.contains(&scene.group), "the group is not named: {}", ran.stdout);
    assert_eq!(code, 13, "{}", ran.stdout);
    scene.proxy.clear();
    sound(scene.app.apply(&scene.with_gear("2"), &[]), 0);
}

fn of_a_broken_group_nothing_is_pruned_and_nothing_forgotten() {
    let scene = Scene::new("prune-group");
    sound(scene.app.apply(&scene.with_gear("1"), &[]), 0);
    scene.proxy.break_group(&scene.group);
    let without = config_map("first", "2") + &secret();
    let ran = sound(scene.app.apply(&without, &[]), 0);
    let told = warnings(&ran);
    assert!(told.iter().any(|line| line.contains("Gear")), "what stays is not named: {told:?}");
    assert!(scene.has_gear(), "nobody knows whether it may go");
    // However often.
    sound(scene.app.apply(&without, &[]), 0);
    assert!(scene.has_gear());
    assert_eq!(lock(&TestApp::new("shop", &scene.app.namespace)), Value::Null);
    scene.proxy.clear();
    assert_eq!(sound(scene.app.apply(&without, &[]), 0).end()["done"]["delete"], 1);
    assert!(!scene.has_gear(), "it was not forgotten");
}

fn an_app_with_objects_of_a_broken_group_is_not_deleted_by_half() {
    let scene = Scene::new("delete-group");
    sound(scene.app.apply(&scene.with_gear("1"), &[]), 0);
    scene.proxy.break_group(&scene.group);
    let ran = scene.app.delete(&[]);
    let ran = sound(ran, 10);
    assert!(scene.has_gear(), "{}", ran.stdout);
    let record = TestCluster::shared().api().get(&scene.app.record_path());
    assert_eq!(record.status, 200, "the record leads to what is left: {}", ran.stdout);
    scene.proxy.clear();
    sound(scene.app.delete(&[]), 0);
    assert!(!scene.has_gear());
}
