//! Manifests that change from one member of a union to another: the server fills in or keeps fields of the old one.

use serde_json::{Value, json};

/// A manifest before and after.
pub(crate) struct Union {
    pub(crate) name: &'static str,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

/// A Deployment with more fields in its spec and its only container.
pub(crate) fn deployment(name: &str, spec: Value, container: Value) -> Value {
    workload("Deployment", name, spec, container)
}

fn workload(kind: &str, name: &str, spec: Value, container: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "containers": [{"name": "main", "image": "registry.example/main:1"}],
            }},
        },
    });
    extend(&mut object["spec"], spec);
    extend(&mut object["spec"]["template"]["spec"]["containers"][0], container);
    object
}

/// A Deployment with more fields in the spec of its Pods.
pub(crate) fn with_pod(name: &str, pod: Value) -> Value {
    let mut object = deployment(name, json!({}), json!({}));
    extend(&mut object["spec"]["template"]["spec"], pod);
    object
}

fn extend(object: &mut Value, more: Value) {
    let Value::Object(more) = more else { panic!("a map") };
    object.as_object_mut().expect("a map").extend(more);
}

pub(super) fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}});
    service["spec"] = spec;
    service
}

/// Unions of a container, each with two of its members.
fn of_container() -> Vec<(&'static str, Value, Value)> {
    let probe = |handler: Value| json!({"readinessProbe": handler});
    let http = json!({"httpGet": {"path": "/h", "port": 80}});
    let tcp = json!({"tcpSocket": {"port": 80}});
    let exec = json!({"exec": {"command": ["true"]}});
    let grpc = json!({"grpc": {"port": 80}});
    let env = |source: Value| {
        let mut variable = json!({"name": "A"});
        extend(&mut variable, source);
        json!({"env": [variable]})
    };
    let value = json!({"value": "x"});
    let of = |kind: &str, source: Value| json!({"valueFrom": {kind: source}});
    let secret = of("secretKeyRef", json!({"name": "s", "key": "k", "optional": true}));
    let config = of("configMapKeyRef", json!({"name": "c", "key": "k"}));
    let field = of("fieldRef", json!({"fieldPath": "metadata.name"}));
    let resource = of("resourceFieldRef", json!({"resource": "limits.cpu", "containerName": "main"}));
    let hook = |handler: &Value| json!({"lifecycle": {"preStop": handler}});
    let sleep = json!({"sleep": {"seconds": 5}});
    let security = |profile: Value| json!({"securityContext": {"seccompProfile": profile}});
    let all_env = |source: Value| json!({"envFrom": [source]});
    vec![
        ("probe http tcp", probe(http.clone()), probe(tcp.clone())),
        ("probe http exec", probe(http.clone()), probe(exec.clone())),
        ("probe tcp grpc", probe(tcp.clone()), probe(grpc)),
        ("env value secret", env(value.clone()), env(secret.clone())),
        ("env value config", env(value.clone()), env(config.clone())),
        ("env value field", env(value), env(field.clone())),
        ("env secret config", env(secret), env(config)),
        ("env field resource", env(field), env(resource)),
        ("hook http exec", hook(&http), hook(&exec)),
        ("hook exec sleep", hook(&exec), hook(&sleep)),
        (
            "seccomp profile",
            security(json!({"type": "Localhost", "localhostProfile": "p.json"})),
            security(json!({"type": "RuntimeDefault"})),
        ),
        (
            "all of a source",
            all_env(json!({"configMapRef": {"name": "c"}})),
            all_env(json!({"secretRef": {"name": "s"}})),
        ),
    ]
}

/// Sources of a volume; each is followed by the next.
fn of_volume() -> Vec<(&'static str, Value)> {
    vec![
        ("emptyDir", json!({})),
        ("hostPath", json!({"path": "/tmp"})),
        ("configMap", json!({"name": "c"})),
        ("secret", json!({"secretName": "s"})),
        ("projected", json!({"sources": [{"secret": {"name": "s"}}]})),
        ("persistentVolumeClaim", json!({"claimName": "data"})),
        ("downwardAPI", json!({"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]})),
        ("csi", json!({"driver": "csi.example"})),
        ("nfs", json!({"server": "nfs.example", "path": "/"})),
        (
            "ephemeral",
            json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}}),
        ),
    ]
}

/// All unions, each on an object of its own.
pub(crate) fn all() -> Vec<Union> {
    let mut all = Vec::new();
    for (name, old, new) in of_container() {
        let object = |container: Value| deployment("container", json!({}), container);
        all.push(Union { name, old: object(old), new: object(new) });
    }
    let sources = of_volume();
    for pair in sources.windows(2) {
        let volume =
            |(kind, source): &(&str, Value)| with_pod("volume", json!({"volumes": [{"name": "v", *kind: source}]}));
        all.push(Union { name: pair[1].0, old: volume(&pair[0]), new: volume(&pair[1]) });
    }
    let rolling = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}});
    let strategies = [json!({}), rolling];
    for old in strategies {
        let recreate = json!({"strategy": {"type": "Recreate"}});
        all.push(Union {
            name: "strategy",
            old: deployment("strategy", old, json!({})),
            new: deployment("strategy", recreate, json!({})),
        });
    }
    for kind in ["StatefulSet", "DaemonSet"] {
        let object = |spec: Value| workload(kind, "strategy", spec, json!({}));
        let on_delete = object(json!({"updateStrategy": {"type": "OnDelete"}}));
        all.push(Union { name: "default to OnDelete", old: object(json!({})), new: on_delete.clone() });
        let rolling = json!({"updateStrategy": {"type": "RollingUpdate"}});
        all.push(Union { name: "RollingUpdate to OnDelete", old: object(rolling), new: on_delete });
    }
    let budget = |spec: Value| {
        let mut object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}}});
        extend(&mut object["spec"], spec);
        object
    };
    all.push(Union {
        name: "budget",
        old: budget(json!({"minAvailable": 1})),
        new: budget(json!({"maxUnavailable": 1})),
    });
    let ingress = |backend: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"rules": [
            {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}},
        ]}})
    };
    let port = |port: Value| ingress(json!({"service": {"name": "s", "port": port}}));
    all.push(Union { name: "ingress port", old: port(json!({"number": 80})), new: port(json!({"name": "http"})) });
    let default = |backend: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "d"},
            "spec": {"defaultBackend": backend}})
    };
    let storage = json!({"resource": {"apiGroup": "k8s.example", "kind": "Bucket", "name": "b"}});
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    all.push(Union { name: "ingress backend", old: default(backend), new: default(storage) });
    let scaler = |target: Value| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}})
    };
    let utilization = scaler(json!({"type": "Utilization", "averageUtilization": 50}));
    let average = scaler(json!({"type": "AverageValue", "averageValue": "500m"}));
    all.push(Union { name: "autoscaler target", old: utilization, new: average });
    let ports = json!([{"name": "http", "port": 80}]);
    let external = service("external", json!({"type": "ExternalName", "externalName": "a.example"}));
    let internal = service("external", json!({"type": "ClusterIP", "ports": ports}));
    all.push(Union { name: "service type", old: internal, new: external });
    let node_port = service("node", json!({"type": "NodePort", "externalTrafficPolicy": "Local", "ports": ports}));
    all.push(Union { name: "node port", old: node_port, new: service("node", json!({"ports": ports})) });
    all
}
