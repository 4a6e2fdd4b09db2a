//! Single changes of an operator's release: each is reported, with the weight that it has for whoever rolls it out.

use super::manifests::reported;
use super::*;

/// A release with one of everything.
fn release() -> Vec<Value> {
    let metadata = |name: &str| json!({"name": name, "namespace": "n"});
    let webhook = json!({
        "name": "w.example.com", "clientConfig": {"service": {"namespace": "n", "name": "web", "path": "/w"}},
        "rules": [{"apiGroups": ["ex.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    let container = json!({
        "name": "main", "image": "quay.io/shop/web:1", "args": ["--level=info"], "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 9443}],
        "resources": {"limits": {"cpu": "1", "memory": "128Mi"}, "requests": {"cpu": "100m"}},
        "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}},
        "securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
    });
    let pod = json!({
        "containers": [container], "serviceAccountName": "web", "imagePullSecrets": [{"name": "pull"}],
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "a", "operator": "Exists"}],
        "terminationGracePeriodSeconds": 60, "volumes": [{"name": "c", "configMap": {"name": "web"}}],
    });
    let template = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"scrape": "true"}}, "spec": pod});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    let role = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web"), "spec": spec}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata("web"),
               "spec": {"selector": {"app": "web"}, "ports": [{"port": 443, "targetPort": 9443}, {"port": 80}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("web"), "data": {"a": "1", "b": "2"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "web"}, "rules": role}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata("web"),
               "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "web"}, "value": 10}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
               "metadata": {"name": "web"}, "webhooks": [webhook]}),
        json!({"apiVersion": "ex.com/v1", "kind": "Thing", "metadata": metadata("own"), "spec": {"mode": "a", "size": 1}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata("web"),
               "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("web")}),
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata("web"),
               "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
    ]
}

/// Sets a value at a pointer of the first object of a kind; null removes it.
fn mutated(kind: &str, pointer: &str, value: &Value) -> Vec<Value> {
    let mut objects = release();
    let object = objects.iter_mut().find(|object| object["kind"] == kind).expect("a kind");
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let key = key.replace("~1", "/");
    match object.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} of {kind}")) {
        Value::Array(items) if key == "-" => items.push(value.clone()),
        Value::Array(items) => {
            let index: usize = key.parse().expect("an index");
            match value {
                Value::Null => drop(items.remove(index)),
                value => items[index] = value.clone(),
            }
        }
        parent if value.is_null() => drop(parent.as_object_mut().expect("a map").shift_remove(&key)),
        parent => parent[key.as_str()] = value.clone(),
    }
    objects
}

const POD: &str = "/spec/template/spec";
const MAIN: &str = "/spec/template/spec/containers/0";

#[test]
fn every_single_change_is_reported_with_its_weight() {
    let pod = |rest: &str| format!("{POD}/{rest}");
    let main = |rest: &str| format!("{MAIN}/{rest}");
    let deployment = [
        (main("image"), json!("quay.io/shop/web:2")),
        (main("image"), json!("ghcr.io/shop/web:1")),
        (main("args/0"), json!("--level=debug")),
        (main("env/0/value"), json!("2")),
        (main("ports/0/containerPort"), json!(9444)),
        (main("resources/limits/memory"), json!("64Mi")),
        (main("resources/limits/memory"), Value::Null),
        (main("resources/limits/cpu"), json!("1000m")),
        (main("resources/requests/cpu"), json!("2")),
        (main("livenessProbe/httpGet/path"), json!("/healthz")),
        (main("livenessProbe/periodSeconds"), json!(5)),
        (main("livenessProbe/periodSeconds"), json!(10)),
        (main("readinessProbe"), Value::Null),
        (main("startupProbe"), json!({"httpGet": {"path": "/", "port": 1}})),
        (main("securityContext/privileged"), json!(true)),
        (main("securityContext/allowPrivilegeEscalation"), json!(true)),
        (main("securityContext/runAsNonRoot"), Value::Null),
        (main("securityContext/readOnlyRootFilesystem"), json!(true)),
        (main("securityContext/runAsUser"), json!(0)),
        (main("securityContext/capabilities/add"), json!(["NET_ADMIN"])),
        (main("lifecycle"), json!({"preStop": {"exec": {"command": ["sleep", "5"]}}})),
        (pod("hostNetwork"), json!(true)),
        (pod("hostPID"), json!(true)),
        (pod("hostIPC"), json!(true)),
        (pod("securityContext"), json!({"fsGroup": 1})),
        (pod("nodeSelector"), json!({"disk": "ssd"})),
        (pod("affinity"), json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}, "x": 1}})),
        (pod("tolerations/0"), Value::Null),
        (pod("tolerations/-"), json!({"key": "b"})),
        (pod("priorityClassName"), json!("web")),
        (pod("terminationGracePeriodSeconds"), json!(10)),
        (pod("terminationGracePeriodSeconds"), json!(90)),
        (pod("imagePullSecrets/0"), Value::Null),
        (pod("imagePullSecrets/-"), json!({"name": "other"})),
        (pod("serviceAccountName"), json!("other")),
        (pod("automountServiceAccountToken"), json!(false)),
        (pod("dnsPolicy"), json!("ClusterFirst")),
        (pod("runtimeClassName"), json!("gvisor")),
        (pod("volumes/0"), json!({"name": "c", "configMap": {"name": "other"}})),
        ("/spec/template/metadata/labels/tier".to_owned(), json!("a")),
        ("/spec/template/metadata/annotations/scrape".to_owned(), json!("false")),
        ("/spec/replicas".to_owned(), json!(1)),
        ("/spec/strategy".to_owned(), json!({"type": "Recreate"})),
        ("/spec/strategy".to_owned(), json!({"rollingUpdate": {"maxUnavailable": 0}})),
        ("/spec/minReadySeconds".to_owned(), json!(10)),
        ("/spec/revisionHistoryLimit".to_owned(), json!(10)),
        ("/spec/paused".to_owned(), json!(true)),
        ("/spec/selector/matchLabels/app".to_owned(), json!("other")),
    ];
    let others = [
        ("Service", "/spec/ports/0", Value::Null),
        ("Service", "/spec/ports/-", json!({"port": 8443})),
        ("Service", "/spec/type", json!("LoadBalancer")),
        ("Service", "/spec/selector/app", json!("other")),
        ("ConfigMap", "/data/a", json!("secret")),
        ("ConfigMap", "/data/a", Value::Null),
        ("ConfigMap", "/data/c", json!("3")),
        ("ClusterRole", "/rules/0/verbs", json!(["get", "list"])),
        ("ClusterRole", "/rules/0/verbs", json!(["list"])),
        ("ClusterRole", "/rules/0", json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})),
        ("PodDisruptionBudget", "/spec/maxUnavailable", json!(2)),
        ("PodDisruptionBudget", "/spec/maxUnavailable", json!(0)),
        ("PodDisruptionBudget", "/spec/selector", json!({"matchLabels": {"app": "other"}})),
        ("PriorityClass", "/value", json!(20)),
        ("ValidatingWebhookConfiguration", "/webhooks/0/matchConditions", json!([{"name": "a", "expression": "true"}])),
        ("ValidatingWebhookConfiguration", "/webhooks/0/sideEffects", json!("Some")),
        ("ValidatingWebhookConfiguration", "/webhooks/0/reinvocationPolicy", json!("IfNeeded")),
        ("ValidatingWebhookConfiguration", "/webhooks/0/failurePolicy", json!("Ignore")),
        ("Thing", "/spec/mode", json!("b")),
        ("NetworkPolicy", "/spec/policyTypes", json!(["Ingress", "Egress"])),
        ("HorizontalPodAutoscaler", "/spec/maxReplicas", json!(5)),
    ];
    let before = release();
    let deployment = deployment.iter().map(|(pointer, value)| ("Deployment", pointer.as_str(), value));
    let mut table = String::new();
    for (kind, pointer, value) in deployment.chain(others.iter().map(|(kind, pointer, value)| (*kind, *pointer, value)))
    {
        let told = reported(&before, &mutated(kind, pointer, value)).join("\n    ");
        table.push_str(&format!("{kind} {pointer} = {value}\n    {told}\n"));
    }
    insta::assert_snapshot!("mutations", table);
}

#[test]
fn empty_selector_that_is_removed_is_named() {
    let peer = |peer: Value| mutated("NetworkPolicy", "/spec/ingress", &json!([{"from": [peer]}]));
    let all = peer(json!({"podSelector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}}));
    let own = peer(json!({"podSelector": {"matchLabels": {"a": "b"}}}));
    for (before, after) in [(&all, &own), (&own, &all)] {
        let told = reported(before, after);
        assert!(told.iter().any(|line| line.contains("ingress")), "{told:?}");
    }
    let thing = |selector: Value| mutated("Thing", "/spec/ruleSelector", &selector);
    let told = reported(&thing(json!({})), &release());
    assert!(told.iter().any(|line| line.contains("ruleSelector")), "{told:?}");
    // The server sets these to what selects all.
    let policy = |constraints: Value| {
        let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "true"}]});
        vec![json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "p"}, "spec": spec})]
    };
    let told = reported(&policy(json!({"namespaceSelector": {}, "objectSelector": {}})), &policy(json!({})));
    assert_eq!(told, [""; 0]);
}

#[test]
fn what_the_api_server_fills_in_is_no_change() {
    let mut live = release();
    for object in &mut live {
        object["metadata"]["uid"] = json!("1");
    }
    let container = &mut live[0]["spec"]["template"]["spec"]["containers"][0];
    container["terminationMessagePath"] = json!("/dev/termination-log");
    container["terminationMessagePolicy"] = json!("File");
    container["imagePullPolicy"] = json!("IfNotPresent");
    container["ports"][0]["protocol"] = json!("TCP");
    for probe in ["livenessProbe", "readinessProbe"] {
        container[probe]["periodSeconds"] = json!(10);
        container[probe]["timeoutSeconds"] = json!(1);
        container[probe]["successThreshold"] = json!(1);
        container[probe]["failureThreshold"] = json!(3);
        container[probe]["httpGet"]["scheme"] = json!("HTTP");
    }
    let spec = &mut live[0]["spec"];
    spec["progressDeadlineSeconds"] = json!(600);
    spec["revisionHistoryLimit"] = json!(10);
    spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    let pod = &mut spec["template"]["spec"];
    pod["restartPolicy"] = json!("Always");
    pod["dnsPolicy"] = json!("ClusterFirst");
    pod["schedulerName"] = json!("default-scheduler");
    pod["securityContext"] = json!({});
    pod["serviceAccount"] = json!("web");
    live[1]["spec"]["clusterIP"] = json!("10.0.0.1");
    live[1]["spec"]["type"] = json!("ClusterIP");
    live[10]["spec"]["minReplicas"] = json!(1);
    assert_eq!(reported(&live, &release()), [""; 0]);
}

#[test]
fn a_container_that_became_a_workload_is_told_as_a_move() {
    let workload = |name: &str, containers: &[(&str, &str)]| {
        let containers: Vec<Value> =
            containers.iter().map(|(name, image)| json!({"name": name, "image": image})).collect();
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}})
    };
    let old = [workload("op", &[("manager", "quay.io/x/op:1"), ("proxy", "quay.io:5000/x/proxy:1")])];
    let new =
        |proxy: &str| [workload("op", &[("manager", "quay.io/x/op:1")]), workload("op-proxy", &[("main", proxy)])];
    let told = reported(&old, &new("quay.io:5000/x/proxy@sha256:00"));
    assert_eq!(
        told,
        [
            "warning SpecChanged Deployment/op spec.template.spec.containers.proxy: container proxy moves into a workload of its own, Deployment/op-proxy",
            "info ImageChanged controller: images come from quay.io/x/op instead of quay.io/x/op,quay.io:5000/x/proxy",
            "info ComponentAdded : Deployment/op-proxy was container proxy of Deployment/op before",
        ]
    );
    // Another image is another program: one goes, one comes.
    let told = reported(&old, &new("quay.io/x/other:1")).join("\n");
    assert!(told.contains("no longer expected") && told.contains("the component is new"), "{told}");
    // Both workloads were there before.
    let before = [old[0].clone(), workload("op-proxy", &[("main", "quay.io:5000/x/proxy:1")])];
    let told = reported(&before, &new("quay.io:5000/x/proxy:1")).join("\n");
    assert!(!told.contains("of its own"), "{told}");
}
