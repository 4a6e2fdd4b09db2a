//! Each write is compared with its dry run: admission that changes real writes only is reported, for every object.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::{SOON, unfinished};
use crate::support::apply::TestApp;
use crate::support::case::show;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Options, Pushback, Ran, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: policy_for_real_writes_is_reported_with_both_values,
        ApiServer: secret_stored_otherwise_is_reported_without_its_values,
        ApiServer: sidecar_of_real_writes_is_judged_by_the_expressions_of_the_policy,
        ApiServer: fields_that_the_server_allocates_are_not_differences,
        ApiServer: object_written_before_it_is_refused_counts_as_written,
        ApiServer: upgrades_of_the_four_apps_store_what_was_announced,
    ]
}

fn deployment(namespace: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "main", "image": image},
            ]}},
        },
    })
}

/// The findings of rule `server`: object, path, judged and stored value.
fn differences(ran: &Ran) -> Vec<Value> {
    let events = ran.events_of("finding");
    let events = events.iter().map(|event| &event["finding"]);
    let differing = events.filter(|finding| finding["check"] == "differs");
    differing.map(|it| json!([it["object"]["name"], it["path"], it["old"], it["new"]])).collect()
}

fn policy_for_real_writes_is_reported_with_both_values() {
    let cluster = TestCluster::shared();
    let (namespace, api) = (cluster.namespace("real-writes"), cluster.api());
    let app = TestApp::new("web", &namespace);
    let no_wait = ["--wait=false"];
    app.apply(&deployment(&namespace, "x:1").to_string(), &no_wait).expect(0);
    let expression =
        "[JSONPatch{op: \"replace\", path: \"/spec/template/spec/containers/0/image\", value: \"evil:latest\"}]";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                    "operations": ["CREATE", "UPDATE"],
                }],
            },
            "matchConditions": [{"name": "real", "expression": "!has(request.dryRun) || !request.dryRun"}],
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": namespace}, "spec": {"policyName": namespace},
    });
    api.apply(&policy).ok();
    api.apply(&binding).ok();
    let mut probe = deployment(&namespace, "probe:1");
    probe["metadata"]["name"] = json!("probe");
    wait_until("the policy is in force", SOON, || {
        let stored = api.apply(&probe).ok();
        (stored["spec"]["template"]["spec"]["containers"][0]["image"] == "evil:latest").then_some(())
    });
    let mut created = deployment(&namespace, "y:1");
    created["metadata"]["name"] = json!("other");
    let updated = app.apply(&deployment(&namespace, "x:2").to_string(), &no_wait);
    let created = app.apply(&format!("{}\n---\n{created}", deployment(&namespace, "x:1")), &no_wait);
    app.pushback.write("app.yaml", deployment(&namespace, "x:3").to_string());
    let plain = ["apply", "-a", "web", "-n", &namespace, "-f", "app.yaml", "--yes", "--wait=false"];
    let plain = app.pushback.run(&plain);
    for object in [&binding, &policy] {
        drop(api.request("DELETE", &api.path_of(object), None, None));
    }
    const IMAGE: &str = "spec.template.spec.containers[0].image";
    let updated = updated.expect(20);
    assert_eq!(differences(&updated), [json!(["web", IMAGE, "x:2", "evil:latest"])], "{}", updated.stdout);
    let message = unfinished(&updated, "web").1;
    assert!(message.contains("\"evil:latest\" instead of \"x:2\""), "{message}");
    assert_eq!(updated.end()["done"]["update"], 1, "{}", updated.stdout);
    assert!(differences(&created.expect(20)).contains(&json!(["other", IMAGE, "y:1", "evil:latest"])));
    let plain = plain.expect(20);
    assert!(!plain.stdout.contains("nothing written") && !plain.stderr.contains("nothing written"), "{}", plain.stdout);
}

/// An app in a namespace with a webhook that changes real writes only.
fn two_faced(prefix: &str, patch: Value) -> (TestApp, Webhook, crate::support::webhook::Registration<'static>) {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace(prefix);
    let webhook = Webhook::start(&[], move |request| {
        let is_record = request["object"]["metadata"]["labels"]["kapp.k14s.io/is-app"].is_string()
            || request["object"]["metadata"]["labels"]["kapp.k14s.io/is-app-change"].is_string();
        match request["dryRun"] == true || is_record || request["kind"]["kind"] == "Pod" {
            true => Verdict::Allow,
            false => Verdict::Patch(patch.clone()),
        }
    });
    let registration = webhook.register(cluster, Form::Mutating, &namespace, json!({}));
    (TestApp::new("web", &namespace), webhook, registration)
}

fn secret_stored_otherwise_is_reported_without_its_values() {
    let patch = json!([{"op": "replace", "path": "/data/key", "value": "ZXZpbC12YWx1ZQ=="}]);
    let (app, _webhook, _registered) = two_faced("real-secret", patch);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": "mine-value"}});
    let ran = app.apply(&secret.to_string(), &["--report=html=report.html"]).expect(20);
    assert_eq!(differences(&ran), [json!(["keys", "data.key", "(secret #1)", "(secret #2)"])], "{}", ran.stdout);
    let told = format!("{}{}{}", ran.stdout, ran.stderr, app.pushback.read("report.html"));
    for value in ["mine-value", "bWluZS12YWx1ZQ==", "ZXZpbC12YWx1ZQ==", "evil-value"] {
        assert!(!told.contains(value), "{value}");
    }
}

fn sidecar_of_real_writes_is_judged_by_the_expressions_of_the_policy() {
    let container = json!({"name": "side", "image": "evil:latest"});
    let patch = json!([{"op": "add", "path": "/spec/template/spec/containers/-", "value": container}]);
    let (app, _webhook, _registered) = two_faced("real-sidecar", patch);
    let rules = "\
apiVersion: kapp.k14s.io/v1alpha1
kind: Config
preflightRules:
- name: NoLatestTag
  cel: object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))
  resourceMatchers:
  - apiVersionKindMatcher: {apiVersion: apps/v1, kind: Deployment}
";
    app.pushback.write("policy.yaml", rules);
    let policy = ["--wait=false", "--config", "policy.yaml"];
    let ran = app.apply(&deployment(&app.namespace, "x:1").to_string(), &policy).expect(20);
    assert!(ran.events_of("finding").iter().any(|event| event["finding"]["rule"] == "NoLatestTag"), "{}", ran.stdout);
    assert_eq!(ran.end()["done"]["create"], 1, "{}", ran.stdout);
}

fn object_written_before_it_is_refused_counts_as_written() {
    let (app, _webhook, _registered) =
        two_faced("real-map", json!([{"op": "replace", "path": "/data/key", "value": "other"}]));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"key": "mine"}});
    app.pushback.write("app.yaml", map.to_string());
    let ran = app.pushback.run(&["apply", "-a", "web", "-n", &app.namespace, "-f", "app.yaml", "--yes"]).expect(20);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("1 created") && !told.contains("nothing written"), "{told}");
}

fn fields_that_the_server_allocates_are_not_differences() {
    let cluster = TestCluster::shared();
    let app = TestApp::new("allocated", &cluster.namespace("allocated"));
    let services = (0..5).map(|number| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("web-{number}")},
            "spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIP": "",
                "selector": {"app": "web"}, "ports": [{"port": 80, "nodePort": 0}]}})
    });
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x:1"}]}}}});
    let objects: Vec<String> = services.chain([job]).map(|object| object.to_string()).collect();
    app.apply(&objects.join("\n---\n"), &["--wait=false"]).expect(0);
}

fn upgrades_of_the_four_apps_store_what_was_announced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/apps");
    let read = |path: &str| {
        let mut text = String::new();
        let file = std::fs::File::open(folder.join(path)).expect("the release");
        GzDecoder::new(file).read_to_string(&mut text).expect("text");
        text
    };
    let apps = [
        ("argo-cd", "v2.14.21", "v3.5.1"),
        ("strimzi", "0.48.0", "1.0.0"),
        ("kube-prometheus", "v0.15.0", "v0.18.0"),
        ("prometheus-operator", "v0.90.1", "v0.93.0"),
    ];
    for (name, old, new) in apps {
        let cluster = TestCluster::start(&Options::default());
        let pushback = Pushback::on(&cluster);
        let mut writes = 0;
        for release in [old, new] {
            pushback.write("app.yaml", read(&format!("{name}/{release}.yaml.gz")));
            let arguments = ["apply", "-a", name, "-n", "default", "-f", "app.yaml", "--yes", "-o", "json"];
            let ran =
                pushback.run(&[&arguments[..], &["--preflight=none", "--storage=bridge", "--wait=false"]].concat());
            assert_eq!(differences(&ran), [Value::Null; 0], "{name} {release}: {}", ran.stdout);
            let end = ran.end();
            assert_eq!(end["exitCode"], 0, "{name} {release}: {}", ran.stdout);
            writes += ["create", "update", "replace"]
                .map(|word| end["done"][word].as_u64().unwrap_or_default())
                .iter()
                .sum::<u64>();
        }
        show(&format!("{name}: {writes} writes compared, 0 differ"));
    }
}
