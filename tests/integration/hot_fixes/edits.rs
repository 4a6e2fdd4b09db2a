//! Edits by hand that people make between two deploys, as JSON patches.

use serde_json::{Value, json};

use super::unions::{deployment, service, with_pod};

/// A deploy, an edit of its object, and the next deploy.
pub(crate) struct Edit {
    pub(crate) name: &'static str,
    pub(crate) old: Value,
    pub(crate) patch: Value,
    pub(crate) new: Value,
}

fn replace(path: &str, value: Value) -> Value {
    operation("replace", path, value)
}

fn add(path: &str, value: Value) -> Value {
    operation("add", path, value)
}

/// A patch of one operation.
fn operation(operation: &str, path: &str, value: Value) -> Value {
    let mut operation = json!({"op": operation, "path": path});
    operation["value"] = value;
    Value::Array(vec![operation])
}

/// All edits, each of an object of its own.
pub(crate) fn all() -> Vec<Edit> {
    let mut all = of_pods();
    all.extend(of_others());
    all
}

fn of_pods() -> Vec<Edit> {
    const MAIN: &str = "/spec/template/spec/containers/0";
    let ports = json!({"ports": [{"name": "http", "containerPort": 80}]});
    let env = |source: Value| {
        let mut variable = json!({"name": "A"});
        variable.as_object_mut().expect("a map").extend(source.as_object().expect("a map").clone());
        json!({"env": [variable]})
    };
    let secret = json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}});
    let probe = json!({"readinessProbe": {"httpGet": {"path": "/h", "port": 80}}});
    let hook = json!({"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}});
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    let same = |name: &'static str, object: Value, patch: Value| Edit { name, old: object.clone(), patch, new: object };
    let container = |name: &str, container: &Value| deployment(name, json!({}), container.clone());
    let at = |place: &str| format!("{MAIN}/{place}");
    vec![
        same("port of a container", container("e1", &ports), replace(&at("ports/0/containerPort"), json!(81))),
        same("host port added", container("e2", &ports), add(&at("ports/0/hostPort"), json!(8080))),
        same("second port", container("e3", &ports), add(&at("ports/-"), json!({"name": "more", "containerPort": 82}))),
        Edit {
            name: "value of a variable, then a Secret",
            old: container("e4", &env(json!({"value": "x"}))),
            patch: replace(&at("env/0/value"), json!("hot")),
            new: container("e4", &env(secret.clone())),
        },
        same(
            "Secret of a variable, by hand a value",
            container("e5", &env(secret)),
            replace(&at("env/0"), json!({"name": "A", "value": "hot"})),
        ),
        same(
            "handler of a probe",
            container("e6", &probe),
            replace(&at("readinessProbe"), json!({"tcpSocket": {"port": 80}})),
        ),
        same(
            "handler of a hook",
            container("e7", &hook),
            replace(&at("lifecycle/preStop"), json!({"httpGet": {"path": "/stop", "port": 80}})),
        ),
        same(
            "default strategy",
            deployment("e8", json!({}), json!({})),
            replace("/spec/strategy", json!({"type": "Recreate"})),
        ),
        same(
            "strategy Recreate",
            deployment("e9", json!({"strategy": {"type": "Recreate"}}), json!({})),
            replace("/spec/strategy", rolling.clone()),
        ),
        Edit {
            name: "default strategy, by hand Recreate, then RollingUpdate",
            old: deployment("e10", json!({}), json!({})),
            patch: replace("/spec/strategy", json!({"type": "Recreate"})),
            new: deployment("e10", json!({"strategy": rolling}), json!({})),
        },
        same(
            "source of a volume",
            with_pod("e11", json!({"volumes": [{"name": "v", "emptyDir": {}}]})),
            replace("/spec/template/spec/volumes/0", json!({"name": "v", "hostPath": {"path": "/tmp"}})),
        ),
        same(
            "second source of a volume, and a variable",
            with_pod("e12", json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]})),
            json!([
                {"op": "replace", "path": "/spec/template/spec/volumes/0", "value": {"name": "v", "secret": {"secretName": "s"}}},
                {"op": "add", "path": at("env"), "value": [{"name": "DEBUG", "value": "1"}]},
            ]),
        ),
        same(
            "profile of a Pod",
            with_pod("e13", json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}})),
            replace(
                "/spec/template/spec/securityContext/seccompProfile",
                json!({"type": "Localhost", "localhostProfile": "p.json"}),
            ),
        ),
    ]
}

fn of_others() -> Vec<Edit> {
    let same = |name: &'static str, object: Value, patch: Value| Edit { name, old: object.clone(), patch, new: object };
    let ports = json!([{"name": "http", "port": 80}]);
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}});
    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
    vec![
        same(
            "port of a Service",
            service("s1", json!({"selector": {"a": "b"}, "ports": ports})),
            replace("/spec/ports/0/port", json!(81)),
        ),
        same(
            "node port",
            service("s2", json!({"type": "NodePort", "ports": ports})),
            replace("/spec/ports/0/nodePort", json!(30999)),
        ),
        same("type of a Service", service("s3", json!({"ports": ports})), replace("/spec/type", json!("NodePort"))),
        same(
            "two ports of one name each",
            service("s4", json!({"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 90}]})),
            json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 81}, {"op": "replace", "path": "/spec/ports/1/port", "value": 91}]),
        ),
        same(
            "minimum of a budget",
            budget,
            json!([{"op": "remove", "path": "/spec/minAvailable"}, {"op": "add", "path": "/spec/maxUnavailable", "value": 1}]),
        ),
        same(
            "target of an autoscaler",
            scaler,
            replace("/spec/metrics/0/resource/target", json!({"type": "AverageValue", "averageValue": "500m"})),
        ),
        same(
            "port of an Ingress",
            ingress.clone(),
            replace("/spec/defaultBackend/service/port", json!({"name": "http"})),
        ),
        same(
            "backend of an Ingress",
            ingress,
            replace(
                "/spec/defaultBackend",
                json!({"resource": {"apiGroup": "k8s.example", "kind": "Bucket", "name": "b"}}),
            ),
        ),
    ]
}
