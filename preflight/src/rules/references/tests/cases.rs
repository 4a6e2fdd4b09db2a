//! Parts of a target, what is made at run time, selectors, settings, and what the cluster is asked.

use serde_json::{Value, json};

use super::*;
use crate::judge::RuleOutcome;

const NONE: [&str; 0] = [];

fn reads_key(kind: &str, key: &str, optional: bool) -> Value {
    let source = json!({"name": "it", "key": key, "optional": optional});
    deployment("web", container(json!({"env": [{"name": "A", "valueFrom": {kind: source}}]})))
}

#[test]
fn a_key_that_a_config_map_or_secret_lacks_is_named_and_no_value_ever() {
    let of =
        |reader: Value, target: Value, side| Trial { side, ..Trial::of(vec![create(reader), create(target)]) }.lines();
    for side in [ClusterSide::Server, ClusterSide::Directory] {
        assert_eq!(
            of(reads_key("configMapKeyRef", "mode", false), config_map("it", json!({"other": "x"})), side),
            ["key Deployment shop/web: ConfigMap shop/it has no key \"mode\""]
        );
        assert_eq!(
            of(reads_key("secretKeyRef", "password", false), secret("it", json!({"user": "aHVudGVyMg=="})), side),
            ["key Deployment shop/web: Secret shop/it has no key \"password\""]
        );
        assert_eq!(of(reads_key("secretKeyRef", "user", false), secret("it", json!({"user": "eA=="})), side), NONE);
        assert_eq!(of(reads_key("secretKeyRef", "password", true), secret("it", json!({"user": "eA=="})), side), NONE);
        // One that is empty is filled in at run time.
        assert_eq!(of(reads_key("secretKeyRef", "password", false), secret("it", json!({})), side), NONE);
    }
    let token = object("v1", "Secret", "it", json!({"type": "kubernetes.io/service-account-token", "data": {"a": ""}}));
    assert_eq!(of(reads_key("secretKeyRef", "token", false), token, ClusterSide::Server), NONE);
    let binary = object("v1", "ConfigMap", "it", json!({"data": {"a": "x"}, "binaryData": {"mode": "eA=="}}));
    assert_eq!(of(reads_key("configMapKeyRef", "mode", false), binary, ClusterSide::Server), NONE);
}

#[test]
fn a_key_is_looked_for_in_an_object_on_the_cluster_as_well() {
    let of = |data: Value| {
        let changes = vec![create(reads_key("secretKeyRef", "password", false))];
        Trial { cluster: vec![secret("it", data)], ..Trial::of(changes) }.lines()
    };
    assert_eq!(of(json!({"user": "x"})), ["key Deployment shop/web: Secret shop/it has no key \"password\""]);
    assert_eq!(of(json!({"password": "x"})), NONE);
}

#[test]
fn keys_that_others_have_added_to_a_live_object_count_on_a_server() {
    let update = || change(Some(config_map("it", json!({"mode": "a"}))), Some(config_map("it", json!({"other": "b"}))));
    let of = |side| {
        let reader = create(reads_key("configMapKeyRef", "mode", false));
        Trial { side, ..Trial::of(vec![reader, update()]) }.lines().len()
    };
    // A folder's file is replaced as a whole.
    assert_eq!((of(ClusterSide::Server), of(ClusterSide::Directory)), (0, 1));
}

#[test]
fn a_port_is_found_by_number_and_by_name_and_its_loss_is_told_with_what_is_there() {
    let ingress = |port: Value| {
        let backend = json!({"service": {"name": "it", "port": port}});
        create(object("networking.k8s.io/v1", "Ingress", "web", json!({"spec": {"defaultBackend": backend}})))
    };
    let of = |port: Value| Trial::of(vec![ingress(port), create(service("it", 80))]).lines();
    assert_eq!(of(json!({"number": 80})), NONE);
    assert_eq!(of(json!({"name": "http"})), NONE);
    assert_eq!(
        of(json!({"number": 8080})),
        ["port Ingress shop/web: Service shop/it has no port 8080; it has 80, http"]
    );
    assert_eq!(
        of(json!({"name": "grpc"})),
        ["port Ingress shop/web: Service shop/it has no port grpc; it has 80, http"]
    );
    let external = object("v1", "Service", "it", json!({"spec": {"type": "ExternalName", "externalName": "ex.com"}}));
    assert_eq!(Trial::of(vec![ingress(json!({"number": 1})), create(external)]).lines(), NONE);
}

#[test]
fn a_webhook_whose_port_goes_is_found_on_a_folder() {
    let called = json!({"service": {"namespace": "shop", "name": "it", "port": 9443}});
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "web"}, "webhooks": [{"clientConfig": called}],
    });
    let port = change(Some(service("it", 9443)), Some(service("it", 443)));
    let trial = Trial { side: ClusterSide::Directory, ..Trial::of(vec![change(Some(hook.clone()), Some(hook)), port]) };
    assert_eq!(
        trial.lines(),
        ["port ValidatingWebhookConfiguration web: Service shop/it has no port 9443; it has 443, http"]
    );
}

#[test]
fn optional_references_may_lead_nowhere() {
    let optional = |source: Value| create(deployment("web", source));
    for spec in [
        container(json!({"envFrom": [{"configMapRef": {"name": "it", "optional": true}}]})),
        json!({"volumes": [{"secret": {"secretName": "it", "optional": true}}]}),
        json!({"volumes": [{"projected": {"sources": [{"configMap": {"name": "it", "optional": true}}]}}]}),
    ] {
        let went = Trial::of(vec![optional(spec.clone()), delete(secret("it", json!({"a": ""})))]).run();
        assert!(went.report.findings.is_empty() && went.asked.is_empty(), "{spec}");
    }
}

#[test]
fn what_every_cluster_has_is_not_asked_for() {
    let binding = |kind: &str, name: &str, namespace: &str| {
        let role = json!({"kind": kind, "name": name});
        let subject = json!({"kind": "ServiceAccount", "name": "hpa", "namespace": "kube-system"});
        let mut binding = object(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "web",
            json!({"roleRef": role, "subjects": [subject]}),
        );
        binding["metadata"]["namespace"] = namespace.into();
        binding
    };
    for object in [
        deployment("web", json!({"serviceAccountName": "default", "priorityClassName": "system-node-critical"})),
        deployment(
            "web",
            json!({"volumes": [{"projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}]}),
        ),
        deployment("web", json!({"volumes": [{"secret": {"secretName": "web-token-x7k2p"}}]})),
        binding("ClusterRole", "view", "shop"),
        binding("ClusterRole", "system:auth-delegator", "shop"),
        binding("Role", "extension-apiserver-authentication-reader", "kube-system"),
    ] {
        let went = Trial::of(vec![create(object.clone())]).run();
        assert!(went.report.findings.is_empty() && went.asked.is_empty(), "{object}");
    }
}

fn custom(kind: &str, name: &str, spec: Value) -> Value {
    object(
        &format!("{}/v1", if kind == "Certificate" { "cert-manager.io" } else { "ex.com" }),
        kind,
        name,
        json!({"spec": spec}),
    )
}

fn job(arguments: Value) -> Value {
    let spec = json!({"containers": [{"args": arguments}]});
    object("batch/v1", "Job", "prepare", json!({"spec": {"template": {"spec": spec}}}))
}

#[test]
fn names_that_are_made_at_run_time_raise_no_alarm() {
    let role = |rules: Value| object("rbac.authorization.k8s.io/v1", "Role", "web", json!({"rules": rules}));
    let named = json!({"resources": ["secrets"], "resourceNames": ["it"], "verbs": ["get"]});
    let creates = json!({"resources": ["secrets"], "verbs": ["create"]});
    let mut issued = object("networking.k8s.io/v1", "Ingress", "web", json!({"spec": {"tls": [{"secretName": "it"}]}}));
    issued["metadata"]["annotations"] = json!({"cert-manager.io/cluster-issuer": "letsencrypt"});
    let mut serving = service("web", 443);
    serving["metadata"]["annotations"] = json!({"service.beta.openshift.io/serving-cert-secret-name": "it"});
    for maker in [
        custom("Certificate", "web", json!({"secretName": "it"})),
        custom("ExternalSecret", "it", json!({})),
        custom("ExternalSecret", "web", json!({"target": {"name": "it"}})),
        job(json!(["create", "--secret-name=it"])),
        job(json!(["--secret-name", "it"])),
        job(json!(["--secret=shop/it"])),
        role(json!([named, creates])),
        issued,
        serving,
    ] {
        let went = Trial::of(vec![create(needs_secret("it")), create(maker.clone())]).run();
        assert!(went.report.findings.is_empty() && went.asked.is_empty(), "{maker}: {:?}", went.report.findings);
    }
    for stranger in [
        custom("Certificate", "web", json!({"secretName": "other"})),
        job(json!(["--config=/etc/it", "/it", "--its=it-2"])),
        role(json!([{"resources": ["secrets"], "resourceNames": ["it"], "verbs": ["get"]}])),
        role(json!([{"resources": ["secrets"], "verbs": ["create"]}])),
        object("monitoring.coreos.com/v1", "ServiceMonitor", "it", json!({"spec": {"secret": "it"}})),
    ] {
        let lines = Trial::of(vec![create(needs_secret("it")), create(stranger.clone())]).lines();
        assert_eq!(
            lines,
            ["missing Deployment shop/web: Secret shop/it is neither in the input nor on the cluster"],
            "{stranger}"
        );
    }
}

#[test]
fn objects_of_a_custom_resources_name_are_made_by_its_controller() {
    let kafka = || create(custom("Kafka", "events", json!({})));
    let needs = |name: &str| Trial::of(vec![create(needs_secret(name)), kafka()]).lines().len();
    assert_eq!((needs("events-cluster-ca-cert"), needs("eventsourcing")), (0, 1));
    // A StatefulSet makes its claims.
    let set = object(
        "apps/v1",
        "StatefulSet",
        "db",
        json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}),
    );
    let backup = |claim: &str| {
        let volume = json!({"volumes": [{"persistentVolumeClaim": {"claimName": claim}}]});
        Trial::of(vec![create(deployment("backup", volume)), create(set.clone())]).lines().len()
    };
    assert_eq!((backup("data-db-0"), backup("data-db-x"), backup("data-db")), (0, 1, 1));
}

#[test]
fn many_names_of_a_namespace_are_one_question_and_each_object_one_finding() {
    let many = (0..30).map(|number| {
        let from = json!({"envFrom": [{"secretRef": {"name": format!("s{number}")}}]});
        create(deployment(&format!("web-{number}"), container(from)))
    });
    let went = Trial::of(many.collect()).run();
    assert_eq!((went.asked.len(), went.report.findings.len()), (1, 30));
    let keys = json!([
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "it", "key": "a"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "it", "key": "b"}}},
    ]);
    let went = Trial::of(vec![create(deployment("web", container(json!({"env": keys}))))]).run();
    assert_eq!((went.asked.len(), went.report.findings.len()), (1, 1));
}

#[test]
fn facts_that_may_not_be_read_skip_the_rule_and_make_it_unable_where_it_must_judge() {
    let trial = |config: Value| Trial {
        config,
        forbidden: Some("failed to read Secret shop/it: forbidden"),
        ..Trial::of(vec![create(needs_secret("it"))])
    };
    let skipped = trial(Value::Null).run().report.rules.remove(0);
    assert_eq!((skipped.outcome, skipped.skipped.as_deref()), (RuleOutcome::Skipped, trial(Value::Null).forbidden));
    assert_eq!(trial(json!({})).run().report.rules[0].outcome, RuleOutcome::Unable);
    // What is found all the same is told, with what could not be read.
    let lost = vec![
        create(needs_secret("it")),
        create(reads_key("configMapKeyRef", "k", false)),
        delete(config_map("it", json!({}))),
    ];
    let mixed = Trial { changes: lost, ..trial(Value::Null) }.run().report.rules.remove(0);
    assert_eq!((mixed.outcome, mixed.unable.len()), (RuleOutcome::Warned, 1));
}

#[test]
fn a_rule_that_nobody_asks_for_warns_and_one_that_is_named_refuses() {
    let of =
        |config: Value| Trial { config, ..Trial::of(vec![create(needs_secret("it"))]) }.run().report.rules[0].outcome;
    assert_eq!(of(Value::Null), RuleOutcome::Warned);
    assert_eq!(of(json!({})), RuleOutcome::Failed);
    assert_eq!(of(json!({"mode": "warn"})), RuleOutcome::Warned);
}

#[test]
fn what_is_to_be_ignored_is_neither_asked_for_nor_told() {
    for (pattern, asks) in
        [("Secret shop/it", 0), ("Secret *", 0), ("*", 0), ("Secret other/*", 1), ("ConfigMap shop/it", 1)]
    {
        let config = json!({"ignore": [pattern]});
        let went = Trial { config, ..Trial::of(vec![create(needs_secret("it"))]) }.run();
        assert_eq!((went.asked.len(), went.report.findings.len()), (asks, asks), "{pattern}");
    }
}

fn selecting(kind: &str, selector: Value) -> Value {
    let (version, selector) = match kind {
        "Service" => ("v1", selector["matchLabels"].clone()),
        _ => ("policy/v1", selector),
    };
    object(version, kind, "web", json!({"spec": {"selector": selector, "ports": [{"port": 80}]}}))
}

#[test]
fn a_selector_that_selects_nothing_is_told_once_the_cluster_has_no_pod_either() {
    let label = |app: &str| json!({"matchLabels": {"app": app}});
    let pods = || create(deployment("web", json!({})));
    for kind in ["Service", "PodDisruptionBudget"] {
        let of = |selector: Value| Trial::of(vec![create(selecting(kind, selector)), pods()]);
        let found = of(label("web")).run();
        assert!(found.report.findings.is_empty() && found.asked.is_empty(), "{kind}");
        let says =
            format!("selectsNothing {kind} shop/web: it selects no Pod, neither of the input nor on the cluster");
        assert_eq!(of(label("wbe")).lines(), [says.as_str()]);
        let pod = object("v1", "Pod", "a", json!({}));
        assert_eq!(Trial { cluster: vec![pod], ..of(label("wbe")) }.lines(), NONE, "{kind}");
        assert_eq!(Trial { side: ClusterSide::Directory, ..of(label("wbe")) }.lines(), NONE, "{kind}");
        // An operator makes Pods for its custom resources.
        let mut with_operator = of(label("prometheus"));
        with_operator.changes.push(create(custom("Prometheus", "k8s", json!({}))));
        assert_eq!(with_operator.lines(), NONE, "{kind}");
    }
    let expressions = |operator: &str, values: Value| {
        let selector = json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
        Trial::of(vec![create(selecting("PodDisruptionBudget", selector)), pods()]).lines().len()
    };
    assert_eq!([expressions("In", json!(["web", "api"])), expressions("In", json!(["api"]))], [0, 1]);
    assert_eq!([expressions("NotIn", json!(["web"])), expressions("NotIn", json!(["api"]))], [1, 0]);
    assert_eq!([expressions("Exists", json!([])), expressions("DoesNotExist", json!([]))], [0, 1]);
}

#[test]
fn a_selector_that_loses_its_pods_is_told_on_a_folder_and_beside_an_operator() {
    let web = |app: &str| selecting("Service", json!({"matchLabels": {"app": app}}));
    let says = ["selectsNothing Service shop/web: it selects none of the app's Pods any more"];
    let stays = || change(Some(deployment("web", json!({}))), Some(deployment("web", json!({}))));
    let operator = || create(custom("Prometheus", "k8s", json!({})));
    for side in [ClusterSide::Server, ClusterSide::Directory] {
        let other_selector = vec![change(Some(web("web")), Some(web("wbe"))), stays(), operator()];
        assert_eq!(Trial { side, ..Trial::of(other_selector) }.lines(), says);
        let pods_go =
            vec![change(Some(web("web")), Some(web("web"))), delete(deployment("web", json!({}))), operator()];
        assert_eq!(Trial { side, ..Trial::of(pods_go) }.lines(), says);
    }
}

#[test]
fn selectors_that_select_nothing_on_purpose_are_left_alone() {
    for spec in [
        json!({"type": "ExternalName", "externalName": "ex.com", "selector": {"app": "x"}}),
        json!({"ports": [{"port": 80}]}),
        json!({"selector": {}, "ports": [{"port": 80}]}),
    ] {
        assert_eq!(Trial::of(vec![create(object("v1", "Service", "web", json!({"spec": spec})))]).lines(), NONE);
    }
}

#[test]
fn labels_that_only_the_live_object_has_count() {
    let selector = selecting("Service", json!({"matchLabels": {"app": "web", "kapp.k14s.io/app": "1"}}));
    let mut live = deployment("web", json!({}));
    live["spec"]["template"]["metadata"]["labels"]["kapp.k14s.io/app"] = "1".into();
    let pods = change(Some(live), Some(deployment("web", json!({}))));
    assert_eq!(Trial::of(vec![create(selector), pods]).lines(), NONE);
}

#[test]
fn the_ways_out_keep_create_or_ignore() {
    let remedies = |changes: Vec<Change>| Trial::of(changes).run().report.findings[0].remedies.clone();
    let deleted = remedies(vec![create(needs_secret("it")), delete(secret("it", json!({"a": ""})))]);
    assert_eq!(
        deleted[0].commands,
        ["kubectl annotate secrets it kapp.k14s.io/delete-strategy=orphan -n shop", "pushback apply"]
    );
    let account = remedies(vec![create(deployment("web", json!({"serviceAccountName": "it"})))]);
    assert_eq!(account[0].commands, ["kubectl create serviceaccount it -n shop", "pushback apply"]);
    let ignored = deleted.iter().find_map(|remedy| remedy.config.clone()).expect("a setting");
    // The default set comes first, so that the other rules run on.
    assert_eq!(ignored["preflightRules"][0], json!({"name": "default"}));
    let config = ignored["preflightRules"][1]["config"].clone();
    let changes = vec![create(needs_secret("it")), delete(secret("it", json!({"a": ""})))];
    assert_eq!(Trial { config, ..Trial::of(changes) }.lines(), NONE);
}
