//! Replicas that the manifest gives up: the server's default, shown as such, unless an autoscaler looks after them.

use serde_json::{Value, json};

use super::{api, assert_settled, create, manifest, new_app, notes, shown_fields};
use crate::support::apply::TestApp;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: replicas_that_are_given_up_are_reset_and_shown,
        ApiServer: replicas_that_are_given_up_to_an_autoscaler_stay,
        ApiServer: replicas_that_are_given_up_to_an_autoscaler_of_the_same_input_stay,
    ]
}

fn deployment(replicas: Option<u32>) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}},
    }});
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = json!(replicas);
    }
    object
}

fn autoscaler() -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": {
        "minReplicas": 2, "maxReplicas": 9,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
    }})
}

fn made_by_kapp(app: &TestApp) -> String {
    create(app, "fieldManager=kapp", deployment(Some(3)))
}

fn replicas_that_are_given_up_are_reset_and_shown() {
    let app = new_app();
    let path = made_by_kapp(&app);
    let input = manifest(&[deployment(None)]);
    app.pushback.write("app.yaml", &input);
    let diff = app.run("diff", &["-f", "app.yaml"]).expect(0);
    assert_eq!(shown_fields(&diff, "Deployment web"), ["spec.replicas: 3 → 1"]);
    // Whatever a rule makes of it, it is what happens.
    app.apply(&input, &["--wait=false", "--preflight=none"]).expect(0);
    assert_eq!(api().get(&path).ok()["spec"]["replicas"], 1);
    assert_settled(&app, &input, &["--preflight=none"], &[path]);
}

fn assert_stay(app: &TestApp, input: &str, path: &str) {
    let ran = app.apply(input, &["--wait=false"]).expect(0);
    assert_eq!(shown_fields(&ran, "Deployment web"), Vec::<String>::new());
    let note = notes(&ran, "Deployment web");
    assert!(note.contains("spec.replicas stays, because it is autoscaled"), "{note}");
    assert_eq!(api().get(path).ok()["spec"]["replicas"], 3);
    assert_settled(app, input, &[], &[path.to_owned()]);
}

fn replicas_that_are_given_up_to_an_autoscaler_stay() {
    let app = new_app();
    let path = made_by_kapp(&app);
    create(&app, "fieldManager=somebody", autoscaler());
    assert_stay(&app, &manifest(&[deployment(None)]), &path);
}

fn replicas_that_are_given_up_to_an_autoscaler_of_the_same_input_stay() {
    let app = new_app();
    let path = made_by_kapp(&app);
    assert_stay(&app, &manifest(&[deployment(None), autoscaler()]), &path);
}
