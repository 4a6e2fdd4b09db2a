//! Derived models, rule by rule: owners, excluded objects, and the dependencies of components.

mod facts;
mod properties;

use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::{Given, Ownership, Settings, derive};
use crate::model::{Component, Release};

/// The model of these objects as an app named `shop`.
fn model(objects: &[Value]) -> Release {
    derive(&given(objects), &Settings { app: "shop".to_owned(), ..Settings::default() })
}

fn given(objects: &[Value]) -> Vec<Given> {
    objects.iter().map(|object| Given { value: object.clone().into(), positions: None }).collect()
}

fn object(kind: &str, name: &str, more: Value) -> Value {
    let api_version = match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps/v1",
        "CronJob" | "Job" => "batch/v1",
        "PodDisruptionBudget" => "policy/v1",
        "NetworkPolicy" | "Ingress" => "networking.k8s.io/v1",
        "ServiceMonitor" => "monitoring.coreos.com/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "APIService" => "apiregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration" => "admissionregistration.k8s.io/v1",
        kind if kind.ends_with("Role") || kind.ends_with("RoleBinding") => "rbac.authorization.k8s.io/v1",
        _ => "v1",
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !["Namespace", "CustomResourceDefinition", "APIService"].contains(&kind) && !kind.starts_with("Cluster") {
        object["metadata"]["namespace"] = json!("prod");
    }
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// A Deployment with pods labelled `app: NAME` and further content in its pod template.
fn deployment(name: &str, pods: Value) -> Value {
    let image = format!("registry.example:5000/{name}:1.2@sha256:0");
    let mut template =
        json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}});
    merge(&mut template, json!({"spec": pods}));
    object("Deployment", name, json!({"spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}))
}

fn service(name: &str, app: &str) -> Value {
    object("Service", name, json!({"spec": {"selector": {"app": app}, "ports": [{"port": 8080}]}}))
}

/// Name of the component that owns an object.
fn owner(release: &Release, kind: &str, name: &str) -> String {
    let owners: Vec<&str> = components(release)
        .filter(|component| {
            component.resources.iter().any(|resource| resource.object.kind == kind && resource.object.name == name)
        })
        .map(|component| component.name.as_str())
        .collect();
    owners.join(" and ")
}

fn components(release: &Release) -> impl Iterator<Item = &Component> {
    release.operators.iter().flat_map(|operator| &operator.components)
}

fn component<'a>(release: &'a Release, name: &str) -> &'a Component {
    components(release).find(|component| component.name == name).expect(name)
}

#[test]
fn an_owner_outweighs_a_selector() {
    let owned =
        json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]}});
    let mut selected = service("api", "api");
    merge(&mut selected, owned);
    let model = model(&[deployment("web", json!({})), deployment("api", json!({})), selected]);
    assert_eq!(owner(&model, "Service", "api"), "web");
}

#[test]
fn owners_of_owners_are_followed_and_a_circle_ends() {
    let owned_by = |kind: &str, name: &str| json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": name}]}});
    let model = model(&[
        deployment("web", json!({"serviceAccountName": "web"})),
        object("ServiceAccount", "web", json!({})),
        object("ConfigMap", "child", owned_by("ServiceAccount", "web")),
        object("ConfigMap", "grandchild", owned_by("ConfigMap", "child")),
        object("ConfigMap", "hen", owned_by("ConfigMap", "egg")),
        object("ConfigMap", "egg", owned_by("ConfigMap", "hen")),
    ]);
    assert_eq!(owner(&model, "ConfigMap", "grandchild"), "web");
    assert_eq!(owner(&model, "ConfigMap", "hen"), "shop-shared");
}

#[test]
fn what_a_pod_template_names_belongs_to_its_workload() {
    let pods = json!({
        "serviceAccountName": "account",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "a", "configMap": {"name": "volume-config"}},
            {"name": "b", "secret": {"secretName": "volume-secret"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "d", "projected": {"sources": [{"configMap": {"name": "projected"}}, {"secret": {"name": "key"}}]}},
        ],
        "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "from"}}, {"secretRef": {"name": "env"}}]}],
        "containers": [{"name": "c", "image": "web", "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "one-key", "key": "k"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "one-secret", "key": "k"}}},
        ]}],
    });
    let expected = [
        ("ServiceAccount", "account"),
        ("Secret", "pull"),
        ("ConfigMap", "volume-config"),
        ("Secret", "volume-secret"),
        ("PersistentVolumeClaim", "claim"),
        ("ConfigMap", "projected"),
        ("Secret", "key"),
        ("ConfigMap", "from"),
        ("Secret", "env"),
        ("ConfigMap", "one-key"),
        ("Secret", "one-secret"),
    ];
    let mut objects = vec![deployment("web", pods), object("ConfigMap", "unnamed", json!({}))];
    objects.extend(expected.map(|(kind, name)| object(kind, name, json!({}))));
    let model = model(&objects);
    for (kind, name) in expected {
        assert_eq!(owner(&model, kind, name), "web", "{kind} {name}");
    }
    assert_eq!(owner(&model, "ConfigMap", "unnamed"), "shop-shared");
}

#[test]
fn a_reference_reaches_only_its_own_namespace() {
    let mut elsewhere = object("ConfigMap", "config", json!({}));
    elsewhere["metadata"]["namespace"] = json!("test");
    let pods = json!({"volumes": [{"name": "a", "configMap": {"name": "config"}}]});
    assert_eq!(owner(&model(&[deployment("web", pods), elsewhere]), "ConfigMap", "config"), "shop-shared");
}

#[test]
fn a_claim_that_a_stateful_set_made_belongs_to_it() {
    let spec = json!({"spec": {"template": {}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    let model = model(&[
        object("StatefulSet", "db-a", spec),
        object("PersistentVolumeClaim", "data-db-a-0", json!({})),
        object("PersistentVolumeClaim", "data-db-a-x", json!({})),
    ]);
    assert_eq!(owner(&model, "PersistentVolumeClaim", "data-db-a-0"), "db-a");
    assert_eq!(owner(&model, "PersistentVolumeClaim", "data-db-a-x"), "shop-shared");
}

#[test]
fn what_selects_pods_belongs_to_their_workload() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let listed = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]});
    let mut labelled = service("web", "web");
    labelled["metadata"]["labels"] = json!({"scraped": "yes"});
    let model = model(&[
        deployment("api", json!({})),
        deployment("web", json!({})),
        labelled,
        object("PodDisruptionBudget", "web", json!({"spec": {"selector": selector}})),
        object("NetworkPolicy", "web", json!({"spec": {"podSelector": listed}})),
        object("NetworkPolicy", "all", json!({"spec": {"podSelector": {}}})),
        object("ServiceMonitor", "web", json!({"spec": {"selector": {"matchLabels": {"scraped": "yes"}}}})),
        object(
            "HorizontalPodAutoscaler",
            "web",
            json!({"spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        ),
    ]);
    for kind in ["Service", "PodDisruptionBudget", "ServiceMonitor", "HorizontalPodAutoscaler"] {
        assert_eq!(owner(&model, kind, "web"), "web", "{kind}");
    }
    assert_eq!(owner(&model, "NetworkPolicy", "web"), "web");
    assert_eq!(owner(&model, "NetworkPolicy", "all"), "shop-shared", "a selector of all pods says nothing");
}

#[test]
fn permissions_belong_to_the_workload_that_has_them() {
    let bound = |role: &str, kind: &str| json!({"roleRef": {"kind": kind, "name": role}, "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "prod"}]});
    let model = model(&[
        deployment("web", json!({"serviceAccountName": "web"})),
        deployment("api", json!({})),
        object("ClusterRoleBinding", "binding", bound("reader", "ClusterRole")),
        object("ClusterRole", "reader", json!({})),
        object("RoleBinding", "leader", bound("leader", "Role")),
        object("Role", "leader", json!({})),
        object("ClusterRole", "unbound", json!({})),
    ]);
    for (kind, name) in
        [("ClusterRoleBinding", "binding"), ("ClusterRole", "reader"), ("RoleBinding", "leader"), ("Role", "leader")]
    {
        assert_eq!(owner(&model, kind, name), "web", "{kind} {name}");
    }
    assert_eq!(owner(&model, "ClusterRole", "unbound"), "shop-shared");
}

#[test]
fn what_calls_a_service_belongs_to_the_workload_behind_it() {
    let client = json!({"service": {"namespace": "prod", "name": "hook", "path": "/check"}});
    let names = json!({"plural": "widgets", "kind": "Widget"});
    let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": client}});
    let path = json!({"path": "/", "backend": {"service": {"name": "hook"}}});
    let model = model(&[
        deployment("web", json!({})),
        deployment("api", json!({})),
        service("hook", "web"),
        object(
            "ValidatingWebhookConfiguration",
            "hook",
            json!({"webhooks": [{"name": "a.b.c", "clientConfig": client}]}),
        ),
        object(
            "CustomResourceDefinition",
            "widgets.example.com",
            json!({"spec": {"group": "example.com", "names": names, "conversion": conversion}}),
        ),
        object("APIService", "v1.example.com", json!({"spec": {"service": {"namespace": "prod", "name": "hook"}}})),
        object("Ingress", "web", json!({"spec": {"rules": [{"http": {"paths": [path]}}]}})),
    ]);
    for (kind, name) in [
        ("ValidatingWebhookConfiguration", "hook"),
        ("CustomResourceDefinition", "widgets.example.com"),
        ("APIService", "v1.example.com"),
        ("Ingress", "web"),
    ] {
        assert_eq!(owner(&model, kind, name), "web", "{kind} {name}");
    }
    let webhooks: Vec<_> = component(&model, "web").webhooks.iter().map(|it| (it.kind.as_str(), &*it.name)).collect();
    assert_eq!(webhooks, [("validating", "a.b.c"), ("conversion", "widgets.example.com")]);
}

#[test]
fn a_definition_belongs_to_what_writes_the_status_of_its_objects() {
    let rule = |resource: &str| json!({"rules": [{"apiGroups": ["example.com"], "resources": [resource], "verbs": ["update"]}]});
    let bound = |name: &str| json!({"roleRef": {"kind": "ClusterRole", "name": name}, "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "prod"}]});
    let names = json!({"plural": "widgets", "kind": "Widget"});
    let model = model(&[
        deployment("admin", json!({"serviceAccountName": "admin"})),
        deployment("controller", json!({"serviceAccountName": "controller"})),
        object("ClusterRoleBinding", "admin", bound("admin")),
        object("ClusterRole", "admin", rule("widgets")),
        object("ClusterRoleBinding", "controller", bound("controller")),
        object("ClusterRole", "controller", rule("widgets/status")),
        object(
            "CustomResourceDefinition",
            "widgets.example.com",
            json!({"spec": {"group": "example.com", "names": names}}),
        ),
    ]);
    assert_eq!(owner(&model, "CustomResourceDefinition", "widgets.example.com"), "controller");
    assert_eq!(component(&model, "admin").dependencies, ["controller"], "it uses what the other defines");
    assert_eq!(model.definitions.len(), 1);
}

#[test]
fn equal_recommended_labels_join_what_nothing_else_joins() {
    let labels = |component: &str| json!({"metadata": {"labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/component": component}}});
    let (mut web, mut api, mut twin) =
        (deployment("web", json!({})), deployment("api", json!({})), deployment("twin", json!({})));
    merge(&mut web, labels("web"));
    merge(&mut api, labels("api"));
    merge(&mut twin, labels("api"));
    let model = model(&[
        web,
        api,
        twin,
        object("ConfigMap", "dashboard", labels("web")),
        object("ConfigMap", "ambiguous", labels("api")),
        object("ConfigMap", "strange", json!({"metadata": {"labels": {"app.kubernetes.io/instance": "x"}}})),
    ]);
    assert_eq!(owner(&model, "ConfigMap", "dashboard"), "web");
    assert_eq!(owner(&model, "ConfigMap", "ambiguous"), "shop-shared", "two workloads are labelled like it");
    assert_eq!(owner(&model, "ConfigMap", "strange"), "shop-shared");
}

#[test]
fn of_several_claimants_the_first_owns_and_the_others_depend_on_it() {
    let pods = json!({"serviceAccountName": "common", "volumes": [{"name": "a", "configMap": {"name": "config"}}]});
    let model = model(&[
        deployment("web", pods.clone()),
        deployment("api", pods),
        object("ConfigMap", "config", json!({})),
        object("ServiceAccount", "common", json!({})),
    ]);
    assert_eq!(owner(&model, "ConfigMap", "config"), "api");
    assert_eq!(owner(&model, "ServiceAccount", "common"), "api");
    assert_eq!(component(&model, "web").dependencies, ["api"]);
    assert!(component(&model, "api").dependencies.is_empty());
}

#[test]
fn of_several_claimants_the_one_that_is_labelled_alike_owns() {
    let pods = json!({"volumes": [{"name": "a", "configMap": {"name": "config"}}]});
    let labels = json!({"metadata": {"labels": {"app.kubernetes.io/name": "web"}}});
    let mut web = deployment("web", pods.clone());
    merge(&mut web, labels.clone());
    let model = model(&[web, deployment("api", pods), object("ConfigMap", "config", labels)]);
    assert_eq!(owner(&model, "ConfigMap", "config"), "web");
    assert_eq!(component(&model, "api").dependencies, ["web"]);
}

#[test]
fn an_object_has_the_owner_that_it_has_on_the_other_side_where_that_one_uses_it_too() {
    let pods = json!({"volumes": [{"name": "a", "configMap": {"name": "config"}}]});
    let config = object("ConfigMap", "config", json!({}));
    let beside = |counterpart: &Release, objects: &[Value]| {
        let counterpart = Ownership::of(counterpart);
        derive(&given(objects), &Settings { app: "shop".to_owned(), counterpart, ..Settings::default() })
    };
    let old = model(&[deployment("web", pods.clone()), config.clone()]);
    let objects = [deployment("web", pods.clone()), deployment("api", pods.clone()), config.clone()];
    assert_eq!(owner(&model(&objects), "ConfigMap", "config"), "api");
    let kept = beside(&old, &objects);
    assert_eq!(owner(&kept, "ConfigMap", "config"), "web");
    assert_eq!(component(&kept, "api").dependencies, ["web"]);
    let given_up = beside(&old, &[deployment("web", json!({})), deployment("api", pods), config.clone()]);
    assert_eq!(owner(&given_up, "ConfigMap", "config"), "api", "web uses it no more");
    let unclaimed = beside(&old, &[deployment("web", json!({})), config]);
    assert_eq!(owner(&unclaimed, "ConfigMap", "config"), "web", "nobody else claims it");
}

#[test]
fn what_an_operator_turns_into_pods_is_a_component() {
    let labels = json!({"app": "prometheus"});
    let spec = json!({"serviceAccountName": "prometheus", "podMetadata": {"labels": labels}, "image": "quay.io/prometheus:v3"});
    let mut prometheus = object("Prometheus", "k8s", json!({"spec": spec}));
    prometheus["apiVersion"] = json!("monitoring.coreos.com/v1");
    let mut release = object("HelmRelease", "k8s", json!({"spec": {"serviceAccountName": "prometheus"}}));
    release["apiVersion"] = json!("helm.toolkit.fluxcd.io/v2");
    let model = model(&[
        prometheus,
        release,
        object("ServiceAccount", "prometheus", json!({})),
        service("prometheus", "prometheus"),
    ]);
    assert_eq!(owner(&model, "ServiceAccount", "prometheus"), "prometheus-k8s");
    assert_eq!(owner(&model, "Service", "prometheus"), "prometheus-k8s");
    assert_eq!(owner(&model, "HelmRelease", "k8s"), "shop-shared", "it runs no pods");
    assert_eq!(component(&model, "prometheus-k8s").controller, "quay.io/prometheus");
}

#[test]
fn an_app_without_workloads_is_one_component() {
    let model = model(&[object("ConfigMap", "a", json!({})), object("Namespace", "prod", json!({}))]);
    let names: Vec<&str> = components(&model).map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["shop-shared"]);
    assert_eq!(component(&model, "shop-shared").resources.len(), 2);
    assert_eq!(model.operators[0].namespace, "prod");
}

#[test]
fn what_the_cluster_or_a_tool_made_is_no_part_of_a_release() {
    let controlled = json!({"metadata": {"ownerReferences": [{"kind": "Widget", "name": "w", "controller": true}]}});
    let record = |label: &str| json!({"metadata": {"labels": {label: ""}}});
    let model = model(&[
        object("ConfigMap", "kept", json!({})),
        object("ConfigMap", "controlled", controlled),
        object("ConfigMap", "shop", record("kapp.k14s.io/is-app")),
        object("ConfigMap", "shop-change-1", record("kapp.k14s.io/is-app-change")),
        object("ConfigMap", "shop-part", record("pushback.dev/inventory")),
        object("ReplicaSet", "web-1", json!({})),
        object("Pod", "web-1-x", json!({})),
        object("Endpoints", "web", json!({})),
        object("Event", "web.1", json!({})),
        json!({"kind": "ConfigMap", "metadata": {"name": "no-version"}}),
        json!("no object"),
    ]);
    let names: Vec<&str> = components(&model).flat_map(|it| &it.resources).map(|it| it.object.name.as_str()).collect();
    assert_eq!(names, ["kept"]);
}

#[test]
fn versioned_names_are_told_by_their_base() {
    let pods = json!({"volumes": [{"name": "a", "configMap": {"name": "config-ver-10"}}]});
    let data = |text: &str| json!({"data": {"a": text}});
    let model = model(&[
        deployment("web", pods),
        object("ConfigMap", "config-ver-9", data("old")),
        object("ConfigMap", "config-ver-10", data("new")),
        deployment("api-ver-2", json!({})),
    ]);
    assert_eq!(owner(&model, "ConfigMap", "config"), "web");
    let resource = &component(&model, "web").resources[1];
    assert_eq!(resource.manifest.as_ref().map(|it| it.text("/data/a")), Some("new"), "the last one counts");
    assert_eq!(components(&model).filter(|it| it.name == "api-ver-2").count(), 1, "no version of a Deployment");
}

#[test]
fn what_is_for_all_workloads_is_for_none_however_many_there_are() {
    let config = json!({"envFrom": [{"configMapRef": {"name": "config"}}], "name": "c", "image": "web"});
    let count = 1_500;
    let mut objects = Vec::new();
    let mut hosts = String::new();
    for number in 0..count {
        let name = format!("w{number}");
        let pods = json!({"serviceAccountName": "common", "containers": [config]});
        let mut workload = deployment(&name, pods);
        workload["spec"]["template"]["metadata"]["labels"] = json!({"app": "all"});
        let bound = json!({"roleRef": {"kind": "Role", "name": name},
                           "subjects": [{"kind": "ServiceAccount", "name": "common", "namespace": "prod"}]});
        hosts.push_str(&format!("http://{name} "));
        objects.extend([workload, service(&name, "all"), object("RoleBinding", &name, bound)]);
    }
    objects.push(object("ConfigMap", "config", json!({"data": {"hosts": hosts}})));
    let model = model(&objects);
    assert_eq!(components(&model).count(), count + 1);
    assert_eq!(owner(&model, "Service", "w7"), "shop-shared");
    let edges: usize = components(&model).map(|component| component.dependencies.len()).sum();
    assert!(edges <= 1_000_000 + count, "{edges}");
}
