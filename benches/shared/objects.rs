//! The objects that benchmarks apply: ConfigMaps, and a mix of kinds whose default order makes a graph.
//! Always the same for the same number.

use serde_json::{Value, json};

/// A small ConfigMap.
pub(crate) fn config_map(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name("settings", number), "labels": {"tier": "bench"}},
        "data": {
            "level": "info",
            "address": format!("http://service-{number}.example:8080"),
            "application.properties": format!("server.port=8080\nname=app-{number}\ntimeout=30s\n"),
        },
    })
}

/// So many ConfigMaps.
pub(crate) fn config_maps(count: usize) -> Vec<Value> {
    (0..count).map(config_map).collect()
}

/// A quarter each of ConfigMaps, ServiceAccounts, Services and Deployments that use them.
pub(crate) fn mixed(count: usize) -> Vec<Value> {
    let quarters = count.div_ceil(4);
    let of_quarter = |number: usize| [config_map(number), account(number), service(number), deployment(number)];
    (0..quarters).flat_map(of_quarter).take(count).collect()
}

/// Objects as one file.
pub(crate) fn yaml(objects: &[Value]) -> String {
    let document = |object: &Value| format!("---\n{}", serde_yaml::to_string(object).expect("YAML"));
    objects.iter().map(document).collect()
}

fn name(stem: &str, number: usize) -> String {
    format!("{stem}-{number:05}")
}

fn account(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name("account", number)}})
}

fn service(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name("web", number)},
        "spec": {"selector": {"app": name("web", number)}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

fn deployment(number: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name("web", number)},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name("web", number)}},
            "template": {
                "metadata": {"labels": {"app": name("web", number)}},
                "spec": {
                    "serviceAccountName": name("account", number),
                    "containers": [{
                        "name": "web",
                        "image": "registry.example/web:1",
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "envFrom": [{"configMapRef": {"name": name("settings", number)}}],
                        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
                    }],
                },
            },
        },
    })
}
