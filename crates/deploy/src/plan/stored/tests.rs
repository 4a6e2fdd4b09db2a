use pushback_cluster::FIELD_MANAGER;
use pushback_manifest::config::defaults::defaults;
use serde_json::json;

use super::*;

fn with_own(mut object: Value, own: &Value) -> Value {
    object["metadata"]["managedFields"] = json!([{
        "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": own,
    }]);
    object
}

fn places(desired: &Value, announced: &Value, stored: &Value) -> Vec<String> {
    let masker = Masker::new(&defaults().diff_mask_rules);
    let found = compare(&ObjectRef::of(desired), desired, announced, stored, &masker);
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let mut places: Vec<String> = found
        .of_manifest
        .iter()
        .map(|it| format!("{} {} {}", it.path, text(&it.announced), text(&it.stored)))
        .collect();
    places.extend(found.elsewhere.then(|| "elsewhere".to_owned()));
    places
}

fn pod(containers: &Value, arguments: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {"containers": containers, "args": arguments}})
}

#[test]
fn field_of_the_manifest_that_is_stored_otherwise_is_found() {
    let own = json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}},
        "f:args": {}}});
    let desired = pod(&json!([{"name": "web", "image": "x:2"}]), &json!(["a"]));
    let announced = pod(&json!([{"name": "web", "image": "x:2", "pull": "Always"}]), &json!(["a"]));
    let stored = |image: &str, arguments: &Value| {
        pod(&json!([{"name": "side", "image": "s"}, {"name": "web", "image": image, "pull": "Never"}]), arguments)
    };
    for owned in [true, false] {
        let stored = |image: &str, arguments: &Value| match owned {
            true => with_own(stored(image, arguments), &own),
            // A webhook may change the managed fields, too.
            false => stored(image, arguments),
        };
        assert_eq!(places(&desired, &announced, &stored("x:2", &json!(["a"]))), ["elsewhere"], "{owned}");
        let changed = places(&desired, &announced, &stored("evil", &json!(["a"])));
        assert_eq!(changed, ["spec.containers[1].image \"x:2\" \"evil\"", "elsewhere"], "{owned}");
        let changed = places(&desired, &announced, &stored("x:2", &json!(["b"])));
        assert_eq!(changed, ["spec.args[0] \"a\" \"b\"", "elsewhere"], "{owned}");
    }
    let longer = with_own(pod(&json!([{"name": "web", "image": "x:2", "pull": "Always"}]), &json!(["a", "b"])), &own);
    assert_eq!(places(&desired, &announced, &longer), ["spec.args[1] - \"b\""]);
    let without = with_own(pod(&json!([]), &json!(["a"])), &own);
    let removed = "spec.containers[0] {\"name\":\"web\",\"image\":\"x:2\",\"pull\":\"Always\"} -";
    assert_eq!(places(&desired, &announced, &without), [removed]);
}

#[test]
fn fields_that_the_server_sets_do_not_count() {
    let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec});
    let allocated = |address: &str, port: u16| {
        let own = json!({"f:spec": {"f:clusterIP": {}, "f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:nodePort": {}}}}});
        let ports = json!([{"port": 80, "protocol": "TCP", "nodePort": port}]);
        with_own(service(json!({"clusterIP": address, "clusterIPs": [address], "ports": ports})), &own)
    };
    let desired = service(json!({"clusterIP": "", "ports": [{"port": 80, "nodePort": 0}]}));
    assert_eq!(places(&desired, &allocated("10.0.0.1", 30001), &allocated("10.0.0.2", 30002)), [""; 0]);
    let desired = service(json!({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}));
    let found = places(&desired, &allocated("10.0.0.1", 30001), &allocated("10.0.0.2", 30001));
    assert_eq!(found, ["spec.clusterIP \"10.0.0.1\" \"10.0.0.2\""]);
    let zero = service(json!({"replicas": 0, "hostNetwork": false}));
    let found = places(&zero, &zero, &service(json!({"replicas": 3, "hostNetwork": true})));
    assert_eq!(found, ["spec.replicas 0 3", "spec.hostNetwork false true"]);
}

#[test]
fn empty_value_that_the_server_leaves_out_is_still_compared() {
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    let desired = pod(json!({"hostNetwork": false, "tolerations": [], "nodeName": null, "priority": ""}));
    let announced = pod(json!({"priority": "filled in"}));
    let stored =
        pod(json!({"hostNetwork": true, "tolerations": [{"operator": "Exists"}], "nodeName": "n", "priority": "x"}));
    let found = places(&desired, &announced, &stored);
    assert_eq!(found, ["spec.hostNetwork - true", "spec.tolerations - [{\"operator\":\"Exists\"}]", "elsewhere"]);
}

#[test]
fn order_of_list_items_differs_elsewhere() {
    let list = |names: [&str; 2]| pod(&json!(names.map(|name| json!({"name": name}))), &json!([]));
    let (one, other) = (list(["a", "b"]), list(["b", "a"]));
    assert_eq!(places(&one, &one, &other), ["elsewhere"]);
}

#[test]
fn token_volume_differs_in_volumes_and_mounts_only() {
    let pod = |field: &str, value: &Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {field: value}});
    let volume = |suffix: &str| json!([{"name": format!("kube-api-access-{suffix}")}]);
    let empty = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    let found = places(&empty, &pod("volumes", &volume("x")), &pod("volumes", &volume("y")));
    assert_eq!(found, [""; 0]);
    let found = places(&empty, &pod("containers", &volume("x")), &pod("containers", &volume("y")));
    assert_eq!(found, ["elsewhere"]);
}

#[test]
fn secret_values_are_masked() {
    let secret =
        |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": value}});
    let found = places(&secret("aHVudGVyMg=="), &secret("aHVudGVyMg=="), &secret("ZXZpbA=="));
    assert_eq!(found, ["data.k \"(secret #1)\" \"(secret #2)\""]);
}
