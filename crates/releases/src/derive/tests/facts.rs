//! Facts about components in a derived model: names, versions, webhooks, dependencies, expectations; and data that must
//! never appear.

use serde_json::{Value, json};

use super::{component, components, deployment, given, merge, model, object, service};
use crate::derive::{Settings, derive};
use crate::model::{CheckKind, FactClass, Operator, Origin, Release};

#[test]
fn nothing_of_a_secret_but_its_name_is_kept() {
    let secret = object(
        "Secret",
        "key",
        json!({
            "type": "Opaque",
            "data": {"password": "aHVudGVyMg=="},
            "stringData": {"token": "hunter2"},
            "metadata": {
                "labels": {"app": "web"},
                "managedFields": [{"fieldsV1": {"f:data": {"f:hunter2": {}}}}],
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"password\":\"hunter2\"}}",
                    "kapp.k14s.io/original": "hunter2",
                    "note": "kept"
                }
            }
        }),
    );
    let pods = json!({"volumes": [{"name": "a", "secret": {"secretName": "key"}}]});
    let text = format!("{:?}", model(&[deployment("web", pods), secret]));
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    assert!(text.contains("note") && text.contains("Opaque"));
}

#[test]
fn hosts_of_services_are_dependencies_and_other_words_are_none() {
    let data = json!({"data": {"app.conf": "upstream=http://cart/v1\nimage=db:7.2\ntitle: search"}});
    let web = json!({
        "volumes": [{"name": "a", "configMap": {"name": "config"}}],
        "containers": [{
            "name": "c",
            "image": "db:7",
            "args": ["--queue=queue:8080", "--mode=search", "--peer=mail.prod.svc.cluster.local", "--self=web:8080"],
            "env": [
                {"name": "DB_HOST", "value": "db"},
                {"name": "MODE", "value": "login"},
                {"name": "AUTH", "value": "https://user:word@auth.prod/x"},
                {"name": "METRICS", "value": "statsd.monitoring.svc:9125, kubernetes.default.svc"},
            ],
        }],
    });
    let mut objects = vec![deployment("web", web), service("web", "web"), object("ConfigMap", "config", data)];
    for name in ["cart", "db", "queue", "search", "mail", "login", "auth"] {
        objects.extend([deployment(name, json!({})), service(name, name)]);
    }
    let model = model(&objects);
    assert_eq!(
        component(&model, "web").dependencies,
        ["auth", "cart", "db", "mail", "queue", "external:statsd.monitoring"]
    );
    assert!(component(&model, "db").dependencies.is_empty());
}

#[test]
fn api_groups_of_others_and_change_rules_are_dependencies() {
    let bound = json!({
        "roleRef": {"kind": "ClusterRole", "name": "web"},
        "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "prod"}]
    });
    let groups = ["", "apps", "rbac.authorization.k8s.io", "metrics.k8s.io", "cert-manager.io", "*"];
    let rules = json!({"rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["get"]}]});
    let annotated = |name: &str, key: &str, text: &str| {
        let mut workload = deployment(name, json!({}));
        merge(&mut workload, json!({"metadata": {"annotations": {key: text}}}));
        workload
    };
    let model = model(&[
        deployment("web", json!({"serviceAccountName": "web"})),
        object("ClusterRoleBinding", "web", bound),
        object("ClusterRole", "web", rules),
        annotated("late", "kapp.k14s.io/change-rule.1", "upsert after upserting first"),
        annotated("early", "kapp.k14s.io/change-group", "first"),
        annotated("sooner", "kapp.k14s.io/change-rule", "upsert before upserting first"),
    ]);
    assert_eq!(component(&model, "web").dependencies, ["external:cert-manager.io", "external:metrics.k8s.io"]);
    assert_eq!(component(&model, "late").dependencies, ["early"]);
    assert_eq!(component(&model, "early").dependencies, ["sooner"]);
    assert!(component(&model, "sooner").dependencies.is_empty());
}

#[test]
fn webhooks_are_read_as_the_api_server_fills_them_in() {
    let entries = json!([
        {"name": "bare", "clientConfig": {"service": {"namespace": "prod", "name": "hook"}},
         "namespaceSelector": {}, "rules": [{"apiGroups": ["apps"], "resources": ["*"]}]},
        {"name": "full", "clientConfig": {"url": "https://hook.example/path/x?y"}, "failurePolicy": "Ignore",
         "timeoutSeconds": 3, "objectSelector": {"matchLabels": {"a": "b"}}},
    ]);
    let model = model(&[object("ValidatingWebhookConfiguration", "hooks", json!({"webhooks": entries}))]);
    let webhooks = &component(&model, "shop-shared").webhooks;
    let details = |number: usize| webhooks[number].details.as_ref().expect("they are known");
    assert_eq!((webhooks[0].path.as_str(), webhooks[1].path.as_str()), ("/", "/path/x"));
    assert_eq!((details(0).failure_policy.as_str(), details(0).timeout_seconds), ("Fail", 10));
    assert_eq!((details(1).failure_policy.as_str(), details(1).timeout_seconds), ("Ignore", 3));
    assert_eq!(details(0).service, Some(("prod".to_owned(), "hook".to_owned())));
    assert_eq!(details(1).service, None);
    assert_eq!(details(0).configuration, "hooks");
    assert_eq!(details(0).rules[0]["scope"], "*");
    assert_eq!(details(0).namespace_selector, Value::Null);
    assert_eq!(details(1).object_selector["matchLabels"]["a"], "b");
}

#[test]
fn a_live_object_and_its_manifest_expect_the_same() {
    let manifest = [deployment("web", json!({})), service("web", "web")];
    let mut live = manifest.clone();
    merge(
        &mut live[0],
        json!({
            "metadata": {"labels": {"kapp.k14s.io/app": "1", "kapp.k14s.io/association": "v1.x"}, "generation": 3},
            "spec": {"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
                     "progressDeadlineSeconds": 600, "template": {"spec": {"restartPolicy": "Always"}}},
            "status": {"replicas": 1}
        }),
    );
    live[1]["spec"]["ports"] = json!([{"port": 8080, "targetPort": 8080, "protocol": "TCP"}]);
    merge(&mut live[1], json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1"}}));
    let (one, other) = (model(&manifest), model(&live));
    let expected = |release: &Release| -> Vec<_> {
        let resources = components(release).flat_map(|it| &it.resources);
        resources.map(|it| (it.labels.clone(), it.expected_spec.clone())).collect()
    };
    assert_eq!(expected(&one), expected(&other));
    assert_eq!(one.operators[0].recovery, other.operators[0].recovery);
    assert!(!expected(&one)[0].1.is_empty() && !expected(&one)[1].1.is_empty());
}

#[test]
fn replicas_that_an_autoscaler_sets_are_not_expected() {
    let autoscaler =
        json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let model = model(&[
        deployment("web", json!({})),
        deployment("api", json!({})),
        object("HorizontalPodAutoscaler", "web", autoscaler),
    ]);
    assert!(!component(&model, "web").resources[0].expected_spec.contains_key("replicas"));
    assert_eq!(component(&model, "api").resources[0].expected_spec["replicas"], 1);
}

#[test]
fn images_tell_what_reconciles_and_only_own_facts_are_specific() {
    let pods = |image: &str| json!({"serviceAccountName": "common", "initContainers": [{"name": "i", "image": image}]});
    let mut port = service("web", "web");
    port["spec"]["ports"] = json!([{"port": 9376}, {"port": 80}]);
    let model =
        model(&[deployment("web", pods("busybox")), port, deployment("api", pods("busybox:2")), service("api", "api")]);
    let web = component(&model, "web");
    assert_eq!(web.controller, "busybox,registry.example:5000/web");
    let specific: Vec<&str> = web.specific.iter().map(String::as_str).collect();
    assert_eq!(specific, ["image:registry.example:5000/web", "ports:80,9376"]);
}

#[test]
fn versions_come_from_labels_then_charts_then_images_then_content() {
    let version = |labels: Value, image: &str, settings: Settings| {
        let mut web = deployment("web", json!({"containers": [{"name": "c", "image": image}]}));
        web["metadata"]["labels"] = labels;
        derive(&given(&[web]), &settings).version
    };
    let none = Settings::default;
    let chart = json!({"helm.sh/chart": "web-2-server-4.11.3_build"});
    let mut labelled = chart.clone();
    labelled["app.kubernetes.io/version"] = json!("1.9.0");
    assert_eq!(version(labelled, "web:2", none()), "1.9.0");
    assert_eq!(version(chart, "web:2", none()), "4.11.3+build");
    assert_eq!(version(json!({}), "registry:5000/web:2@sha256:00", none()), "2");
    let named = Settings { version: "v7".to_owned(), ..none() };
    assert_eq!(version(json!({}), "registry:5000/web", named), "v7");
    let (one, other) = (version(json!({}), "a", none()), version(json!({}), "b", none()));
    assert!(one.starts_with("sha-") && one != other);
    assert_eq!(one, version(json!({}), "a", none()));
}

#[test]
fn an_app_is_several_operators_only_where_its_workloads_say_so() {
    let part = |name: &str, of: &str| {
        let mut workload = deployment(name, json!({}));
        workload["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": of});
        workload
    };
    let names = |objects: &[Value], app: &str| {
        let release = derive(&given(objects), &Settings { app: app.to_owned(), ..Settings::default() });
        let named = |it: &Operator| {
            let components: Vec<&str> = it.components.iter().map(|component| component.name.as_str()).collect();
            format!("{}: {}", it.name, components.join(" "))
        };
        release.operators.iter().map(named).collect::<Vec<_>>()
    };
    let bare = deployment("api", json!({}));
    assert_eq!(names(&[part("web", "shop"), bare.clone()], "app"), ["app: api web"]);
    assert_eq!(names(&[part("web", "shop"), bare.clone()], ""), ["shop: api web"]);
    assert_eq!(names(&[part("web", "shop"), part("db", "data"), bare], "app"), ["app: api", "data: db", "shop: web"]);
}

#[test]
fn workloads_of_one_name_get_names_of_their_own() {
    let mut elsewhere = deployment("web", json!({}));
    elsewhere["metadata"]["namespace"] = json!("test");
    let twin = object("StatefulSet", "db", json!({"spec": {"template": {}}}));
    let model = model(&[deployment("web", json!({})), elsewhere, deployment("db", json!({})), twin]);
    let names: Vec<&str> = components(&model).map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["db", "db-statefulset", "prod/web", "test/web"]);
    assert_eq!(model.operators[0].namespace, "prod");
}

#[test]
fn the_namespace_of_objects_that_name_none_is_given_away_by_bindings() {
    let mut homeless = [
        deployment("web", json!({"serviceAccountName": "web"})),
        object("ServiceAccount", "web", json!({})),
        object("ClusterRole", "web", json!({})),
        object(
            "ClusterRoleBinding",
            "web",
            json!({
                "roleRef": {"kind": "ClusterRole", "name": "web"},
                "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "argocd"}]
            }),
        ),
    ];
    homeless.iter_mut().filter_map(|it| it["metadata"].as_object_mut()).for_each(|it| {
        it.remove("namespace");
    });
    let model = model(&homeless);
    assert_eq!(model.operators[0].namespace, "argocd");
    assert_eq!(component(&model, "web").resources.len(), 4);
    assert_eq!(component(&model, "web").resources[0].object.namespace, "", "as written");
}

#[test]
fn checks_ask_what_their_objects_can_answer() {
    let set = object("StatefulSet", "db", json!({"spec": {"template": {}}}));
    let model = model(&[deployment("web", json!({})), set, object("ConfigMap", "a", json!({}))]);
    let kinds: Vec<_> = components(&model).flat_map(|it| &it.steady_state.checks).map(|it| it.kind.clone()).collect();
    assert_eq!(kinds, [CheckKind::AllReady, CheckKind::ConditionTrue { condition: "Available".to_owned() }]);
}

#[test]
fn a_derived_model_knows_what_it_cannot_see() {
    let finalized = object("ConfigMap", "a", json!({"metadata": {"finalizers": ["example.com/b", "example.com/a"]}}));
    let model = model(&[finalized]);
    assert_eq!(model.origin, Origin::Derived);
    assert!(model.unobserved.contains(&FactClass::Finalizers));
    assert_eq!(component(&model, "shop-shared").finalizers, ["example.com/a", "example.com/b"]);
}

#[test]
fn recovery_takes_as_long_as_the_slowest_deployment_says() {
    let with = |seconds: Value| {
        let mut web = deployment("web", json!({}));
        web["spec"]["progressDeadlineSeconds"] = seconds;
        model(&[web, deployment("api", json!({}))]).operators[0].recovery.reconcile_timeout_seconds
    };
    assert_eq!((with(json!(900)), with(json!(600)), with(json!(-1)), with(json!(null))), (900, 300, 300, 300));
}
