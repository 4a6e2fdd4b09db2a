//! Objects that kubectl has written, client-side and server-side, and those of nobody: what the manifest drops goes
//! and is shown before, what hands have done since stays.

use serde_json::{Value, json};

use super::{api, assert_settled, content, create, foreign_entries, managers, manifest, new_app, notes, shown_fields};
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::{TestCase, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: what_client_side_apply_has_set_goes_as_it_was_shown,
        ApiServer: what_server_side_apply_of_kubectl_has_set_goes_as_it_was_shown,
        ApiServer: key_that_leaves_string_data_during_a_takeover_is_removed,
        ApiServer: an_object_without_entries_is_taken_over_once,
        ApiServer: two_predecessors_of_one_object_become_one_entry,
        ApiServer: an_object_that_is_invalid_until_old_fields_are_gone_is_taken_over,
        ApiServer: a_list_item_goes_although_somebody_else_has_set_something_in_it,
        ApiServer: only_the_removals_that_the_server_refuses_are_given_up,
        ApiServer: entries_of_other_managers_are_as_they_were,
        ApiServer: a_replacement_on_every_change_is_none_where_only_the_owner_changes,
    ]
}

const CLIENT_SIDE: &str = "fieldManager=kubectl-client-side-apply";

/// An object as `kubectl apply` leaves it.
#[track_caller]
fn applied_client_side(app: &TestApp, object: &Value) -> String {
    let mut sent = object.clone();
    let copy = json!({"kubectl.kubernetes.io/last-applied-configuration": object.to_string()});
    match sent["metadata"]["annotations"].as_object_mut() {
        Some(annotations) => annotations.extend(copy.as_object().expect("a map").clone()),
        None => sent["metadata"]["annotations"] = copy,
    }
    create(app, CLIENT_SIDE, sent)
}

fn deployment(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "a", "tier": "b"}},
        "spec": {
            "replicas": 2, "minReadySeconds": 5, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}}, "spec": {
                "volumes": [{"name": "v", "configMap": {"name": "settings"}}],
                "containers": [
                    {"name": "web", "image": "registry.example/web:1", "env": [{"name": "A", "value": "1"},
                        {"name": "B", "value": "2"}], "ports": [{"containerPort": 80}, {"containerPort": 81}]},
                    {"name": "side", "image": "registry.example/side:1"},
                ],
            }},
        },
    });
    merge(&mut object["spec"], spec);
    object
}

fn merge(value: &mut Value, with: &Value) {
    match (value, with) {
        (Value::Object(value), Value::Object(with)) => {
            for (key, with) in with {
                match with {
                    Value::Null => drop(value.shift_remove(key)),
                    _ => merge(value.entry(key.as_str()).or_insert(Value::Null), with),
                }
            }
        }
        (value, with) => *value = with.clone(),
    }
}

/// The manifest of [`deployment`] after fields of every sort have been dropped from it.
fn smaller() -> Value {
    let mut object = deployment(&json!({"minReadySeconds": null}));
    object["metadata"]["labels"] = json!({"team": "a"});
    let template = &mut object["spec"]["template"];
    template["metadata"].as_object_mut().expect("metadata").shift_remove("annotations");
    template["spec"]["containers"] = json!([{"name": "web", "image": "registry.example/web:1",
        "env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 81}]}]);
    object
}

/// What is shown for [`smaller`], and nothing else.
fn assert_smaller_is_shown(shown: &[String]) {
    let mut paths: Vec<&str> = shown.iter().map(|line| line.split(": ").next().expect("a path")).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "metadata.labels.tier",
            "spec.minReadySeconds",
            "spec.template.metadata.annotations",
            "spec.template.spec.containers[name=side]",
            "spec.template.spec.containers[name=web].env[name=A]",
            "spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP]",
        ],
        "{shown:#?}"
    );
    assert!(shown.iter().all(|line| line.ends_with("→ -")), "{shown:#?}");
}

fn assert_is_smaller(after: &Value) {
    let pod = &after["spec"]["template"]["spec"];
    assert_eq!(after["metadata"]["labels"]["tier"], Value::Null);
    assert_eq!(after["metadata"]["labels"]["team"], "a");
    assert_eq!(after["spec"]["minReadySeconds"], Value::Null);
    assert_eq!(after["spec"]["selector"], json!({"matchLabels": {"app": "web"}}), "a selector is never touched");
    assert_eq!(pod["containers"].as_array().expect("containers").len(), 1);
    assert_eq!(pod["containers"][0]["env"], json!([{"name": "B", "value": "2"}]));
    assert_eq!(pod["containers"][0]["ports"], json!([{"containerPort": 81, "protocol": "TCP"}]));
    assert_eq!(pod["volumes"][0]["configMap"], json!({"name": "settings", "defaultMode": 420}));
}

fn what_client_side_apply_has_set_goes_as_it_was_shown() {
    let app = new_app();
    let path = applied_client_side(&app, &deployment(&json!({})));
    // Somebody has edited it since; that is not ours to undo.
    let edit = json!({"spec": {"template": {"metadata": {"annotations": {"edited": "by hand"}}}}});
    let edited = format!("{path}?fieldManager=kubectl-edit");
    let patch = api().request("PATCH", &edited, Some("application/merge-patch+json"), Some(&edit));
    patch.expect("an answer").ok();

    let input = manifest(&[smaller()]);
    app.pushback.write("app.yaml", &input);
    let diff = app.run("diff", &["-f", "app.yaml"]).expect(0);
    let shown = shown_fields(&diff, "Deployment web");
    let annotation = "spec.template.metadata.annotations.note: x → -".to_owned();
    assert!(shown.contains(&annotation), "{shown:#?}");
    let others: Vec<String> = shown.iter().filter(|line| **line != annotation).cloned().collect();
    let all = [others.as_slice(), &["spec.template.metadata.annotations: x → -".to_owned()]].concat();
    assert_smaller_is_shown(&all);
    assert!(notes(&diff, "Deployment web").contains("continues the work of kubectl-client-side-apply"));

    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(shown_fields(&ran, "Deployment web"), shown);
    let after = api().get(&path).ok();
    assert_is_smaller(&after);
    assert_eq!(after["spec"]["template"]["metadata"]["annotations"], json!({"edited": "by hand"}));
    let copy = "kubectl.kubernetes.io/last-applied-configuration";
    assert_eq!(after["metadata"]["annotations"][copy], Value::Null, "a copy that nobody keeps true any more");
    assert_eq!(managers(&after), ["pushback Apply", "kubectl-edit Update"]);
    assert_settled(&app, &input, &[], &[path]);
}

fn what_server_side_apply_of_kubectl_has_set_goes_as_it_was_shown() {
    let app = new_app();
    let mut object = deployment(&json!({}));
    object["metadata"]["namespace"] = json!(app.namespace);
    api().apply_with(&object, "fieldManager=kubectl").ok();
    let path = api().path_of(&object);
    let input = manifest(&[smaller()]);
    app.pushback.write("app.yaml", &input);
    let shown = shown_fields(&app.run("diff", &["-f", "app.yaml"]).expect(0), "Deployment web");
    assert_smaller_is_shown(&shown);
    app.apply(&input, &["--wait=false"]).expect(0);
    let after = api().get(&path).ok();
    assert_is_smaller(&after);
    assert_eq!(managers(&after), ["pushback Apply"]);
    assert_settled(&app, &input, &[], &[path]);
}

fn key_that_leaves_string_data_during_a_takeover_is_removed() {
    let app = new_app();
    let secret = |keys: &[&str]| {
        let texts: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!("x"))).collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": app.namespace},
            "stringData": texts})
    };
    api().apply_with(&secret(&["kept", "dropped"]), "fieldManager=kubectl").ok();
    let path = api().path_of(&secret(&[]));
    let entry = &api().get(&path).ok()["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(entry["f:data"].is_null() && entry["f:stringData"]["f:dropped"].is_object(), "not what is tested: {entry}");
    let input = manifest(&[secret(&["kept"])]);
    let ran = app.apply(&input, &[]).expect(0);
    assert_eq!(shown_fields(&ran, "Secret a").len(), 1, "{:?}", shown_fields(&ran, "Secret a"));
    assert!(shown_fields(&ran, "Secret a")[0].starts_with("data.dropped: "), "{:?}", shown_fields(&ran, "Secret a"));
    assert_eq!(api().get(&path).ok()["data"], json!({"kept": "eA=="}));
    assert_settled(&app, &input, &[], &[path]);
}

fn an_object_without_entries_is_taken_over_once() {
    let app = new_app();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "finalizers": ["ex.com/kept"]},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}, {"name": "old", "port": 81}]}});
    let path = create(&app, "fieldManager=somebody", service.clone());
    kapp::set_managers(&path, &[json!({})]);
    let before = api().get(&path).ok();
    assert_eq!(before["metadata"]["managedFields"], Value::Null, "not what is tested: {before}");
    let mut wanted = service;
    wanted["metadata"].as_object_mut().expect("metadata").shift_remove("finalizers");
    wanted["spec"]["ports"].as_array_mut().expect("ports").pop();
    let input = manifest(&[wanted]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    let shown = shown_fields(&ran, "Service web");
    assert!(shown.len() == 1 && shown[0].starts_with("spec.ports[port=81,protocol=TCP]: "), "{shown:?}");
    let after = api().get(&path).ok();
    for field in ["clusterIP", "clusterIPs", "selector", "type"] {
        assert_eq!(after["spec"][field], before["spec"][field], "{field}");
    }
    assert_eq!(after["spec"]["ports"], json!([before["spec"]["ports"][0]]), "its port on the nodes, too");
    assert_eq!(after["metadata"]["finalizers"], json!(["ex.com/kept"]), "whoever waits for it has not been asked");
    assert_eq!(managers(&after), ["pushback Apply"]);
    assert_settled(&app, &input, &[], std::slice::from_ref(&path));
    api().merge_patch(&path, &json!({"metadata": {"finalizers": null}})).ok();
}

fn two_predecessors_of_one_object_become_one_entry() {
    let app = new_app();
    let object =
        |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let path = create(&app, "fieldManager=kapp", object(json!({"key": "1", "of-kapp": "x", "both": "z"})));
    let mut second = object(json!({"of-kubectl": "x", "both": "z"}));
    second["metadata"]["namespace"] = json!(app.namespace);
    api().apply_with(&second, "fieldManager=kubectl&force=true").ok();
    assert_eq!(managers(&api().get(&path).ok()), ["kubectl Apply", "kapp Update"], "not what is tested");
    let input = config_map("a", "1");
    let ran = app.apply(&input, &[]).expect(0);
    assert_eq!(
        shown_fields(&ran, "ConfigMap a"),
        ["data.both: z → -", "data.of-kapp: x → -", "data.of-kubectl: x → -"]
    );
    let after = api().get(&path).ok();
    assert_eq!(after["data"], json!({"key": "1"}));
    assert_eq!(managers(&after), ["pushback Apply"]);
    assert_settled(&app, &input, &[], &[path]);
}

fn an_object_that_is_invalid_until_old_fields_are_gone_is_taken_over() {
    let app = new_app();
    let path = applied_client_side(
        &app,
        &deployment(&json!({
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        })),
    );
    // A volume of another type, a value from elsewhere, another strategy: each excludes what was there.
    let mut wanted = deployment(&json!({"strategy": {"type": "Recreate"}}));
    let pod = &mut wanted["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "v", "secret": {"secretName": "settings"}}]);
    pod["containers"][0]["env"][0] = json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let input = manifest(&[wanted]);
    app.pushback.write("app.yaml", &input);
    let shown = shown_fields(&app.run("diff", &["-f", "app.yaml"]).expect(0), "Deployment web");
    app.apply(&input, &["--wait=false"]).expect(0);
    let after = api().get(&path).ok();
    let pod = &after["spec"]["template"]["spec"];
    assert_eq!(after["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(pod["volumes"], json!([{"name": "v", "secret": {"secretName": "settings", "defaultMode": 420}}]));
    assert_eq!(pod["containers"][0]["env"][0]["value"], Value::Null);
    assert_eq!(pod["containers"].as_array().expect("containers").len(), 2);
    for part in ["volumes[name=v].configMap", "strategy.rollingUpdate", "env[name=A].value:"] {
        assert!(shown.iter().any(|line| line.contains(part)), "{part} was not shown: {shown:#?}");
    }
    assert_settled(&app, &input, &[], &[path]);
}

fn a_list_item_goes_although_somebody_else_has_set_something_in_it() {
    let app = new_app();
    let path = applied_client_side(&app, &deployment(&json!({})));
    let containers = json!([{"name": "side", "image": "registry.example/side:2"}]);
    let image = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let set = format!("{path}?fieldManager=kubectl-set");
    let patch = api().request("PATCH", &set, Some("application/strategic-merge-patch+json"), Some(&image));
    patch.expect("an answer").ok();
    let input = manifest(&[smaller()]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    assert_smaller_is_shown(&shown_fields(&ran, "Deployment web"));
    assert!(!notes(&ran, "Deployment web").contains("let go"), "{}", notes(&ran, "Deployment web"));
    assert_is_smaller(&api().get(&path).ok());
    assert_settled(&app, &input, &[], &[path]);
}

fn only_the_removals_that_the_server_refuses_are_given_up() {
    let app = new_app();
    let claim = |labels: Value, spec: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "labels": labels},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        merge(&mut object["spec"], &spec);
        object
    };
    let before = claim(json!({"gone": "x", "team": "a"}), json!({"storageClassName": "filled-in"}));
    let path = applied_client_side(&app, &before);
    let input = manifest(&[claim(json!({"team": "a"}), json!({}))]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    let note = notes(&ran, "PersistentVolumeClaim data");
    assert!(note.contains("the server does not let go of spec.storageClassName\""), "{note}");
    let after = api().get(&path).ok();
    assert_eq!(after["spec"]["storageClassName"], "filled-in");
    assert_eq!(after["metadata"]["labels"]["gone"], Value::Null);
    assert_settled(&app, &input, &[], &[path]);
}

fn entries_of_other_managers_are_as_they_were() {
    let app = new_app();
    let path = applied_client_side(&app, &deployment(&json!({})));
    // An injector by server-side apply, an autoscaler through the subresource, a hand.
    let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": app.namespace, "annotations": {"injected": "yes"}},
        "spec": {"template": {"spec": {"containers": [{"name": "injected", "image": "registry.example/injected:1"}]}}}});
    api().apply_with(&sidecar, "fieldManager=injector&force=true").ok();
    let scale = format!("{path}/scale?fieldManager=kube-controller-manager");
    let scaled =
        api().request("PATCH", &scale, Some("application/merge-patch+json"), Some(&json!({"spec": {"replicas": 7}})));
    scaled.expect("an answer").ok();
    let edited = format!("{path}?fieldManager=kubectl-edit");
    let edit = json!({"spec": {"revisionHistoryLimit": 3}});
    api().request("PATCH", &edited, Some("application/merge-patch+json"), Some(&edit)).expect("an answer").ok();

    let mut before = foreign_entries(&api().get(&path).ok());
    before.retain(|entry| entry["manager"] != "kubectl-client-side-apply");
    assert_eq!(before.iter().filter(|entry| entry["manager"] != "kube-controller-manager").count(), 2);
    let input = manifest(&[smaller()]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    assert_smaller_is_shown(&shown_fields(&ran, "Deployment web"));
    assert!(notes(&ran, "Deployment web").contains("leaves spec.replicas to kube-controller-manager"));
    let after = api().get(&path).ok();
    let by_name = |mut entries: Vec<Value>| {
        // The controllers' own annotation may have come since.
        entries.retain(|entry| entry["manager"] != "kube-controller-manager" || entry["subresource"] == "scale");
        entries.sort_by_key(Value::to_string);
        entries
    };
    assert_eq!(by_name(foreign_entries(&after)), by_name(before));
    assert_eq!(after["spec"]["replicas"], 7);
    assert_eq!(after["spec"]["revisionHistoryLimit"], 3);
    let names: Vec<&str> = after["spec"]["template"]["spec"]["containers"]
        .as_array()
        .expect("containers")
        .iter()
        .map(|container| container["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&"injected") && names.contains(&"web"), "{names:?}");
    assert_settled(&app, &input, &[], &[path]);
}

fn a_replacement_on_every_change_is_none_where_only_the_owner_changes() {
    let app = new_app();
    let object = |data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "a", "annotations": {"kapp.k14s.io/update-strategy": "always-replace"}}})
    };
    let labelled = |mut object: Value, app: &TestApp| {
        object["metadata"]["namespace"] = json!(app.namespace);
        object
    };
    let path = create(&app, "fieldManager=kapp", labelled(object(json!({"key": "1"})), &app));
    let uid = api().get(&path).ok()["metadata"]["uid"].take();
    app.apply(&manifest(&[object(json!({"key": "1"}))]), &[]).expect(0);
    let first = api().get(&config_map_path(&app.namespace, "a")).ok();
    // Labels are stamped, and that is a change.
    assert_ne!(first["metadata"]["uid"], uid);
    kapp::set_managers(
        &path,
        &[json!({"manager": "kapp", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:key": {}}}})],
    );
    app.apply(&manifest(&[object(json!({"key": "1"}))]), &[]).expect(0);
    let second = api().get(&path).ok();
    assert_eq!(second["metadata"]["uid"], first["metadata"]["uid"], "deleted for the sake of an entry");
    assert_eq!((content(&second), managers(&second)), (content(&first), vec!["pushback Apply".to_owned()]));
}
