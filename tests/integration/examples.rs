//! The examples are valid for a real API server: no unknown field, no value that it refuses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::support::binaries::Binaries;
use crate::support::pushback::example;
use crate::support::{Options, Pushback, TestCase, TestCluster, cases, kapp, poll, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_example_is_tested_and_has_a_readme,
        Nothing: the_server_of_the_webhook_reads_the_files_beside_it,
        Nothing: rules_of_your_own_refuse_what_they_name,
        Nothing: kubeconform_is_a_rule_where_it_is_given,
        ApiServer: a_server_takes_every_example,
        ApiServer: an_app_of_kapp_is_taken_over_as_its_example_says,
        ApiServer: a_release_of_helm_is_taken_over_as_its_example_says,
        ApiServer: what_kustomize_prints_is_what_is_checked_in,
    ]
}

const EXAMPLES: [&str; 16] = [
    "conversion",
    "conversion-webhook",
    "from-helm",
    "from-kapp",
    "judge",
    "kustomize",
    "operator",
    "operator-upgrade-bad",
    "operator-upgrade-fixed",
    "own-rules",
    "policy-repository",
    "release-pipeline",
    "release-train",
    "storage-migration",
    "upgrade-models",
    "web-app",
];

fn directory(example: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).join(example)
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = directory.read_dir().expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// The objects of an example; what others stand on comes first.
fn objects(example: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for name in names(&directory(example)).iter().filter(|name| name.ends_with(".yaml")) {
        let text = std::fs::read_to_string(directory(example).join(name)).expect("a manifest");
        let documents: Vec<Value> = serde_yaml::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        objects.extend(documents);
    }
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        Some("Backup") => 3,
        _ => 2,
    });
    objects
}

/// Applies objects; the server's refusals.
fn refusals(cluster: &TestCluster, objects: Vec<Value>) -> Vec<String> {
    let mut refused = Vec::new();
    for object in objects {
        // A schema is served a moment after its CRD was written.
        let patience = if object["kind"] == "Backup" { Duration::from_secs(30) } else { Duration::ZERO };
        let mut last = String::new();
        let taken = poll(patience, || {
            if !cluster.api().serves(&object) {
                "the kind is not served".clone_into(&mut last);
                return None;
            }
            let answer = cluster.api().apply(&object);
            answer.message().clone_into(&mut last);
            matches!(answer.status, 200 | 201).then_some(())
        });
        if taken.is_none() {
            refused.push(format!("{} {}: {last}", object["kind"], object["metadata"]["name"]));
        }
    }
    refused
}

fn every_example_is_tested_and_has_a_readme() {
    let mut found = names(&directory(""));
    assert!(found.remove("README.md"), "a list of all");
    assert_eq!(found, EXAMPLES.map(str::to_owned).into());
    for example in EXAMPLES {
        assert!(names(&directory(example)).contains("README.md"), "{example} has no README.md");
    }
}

/// The ConfigMap of the example holds its definition and its plan.
fn the_server_of_the_webhook_reads_the_files_beside_it() {
    let objects = objects("conversion-webhook");
    let plans = objects.iter().find(|object| object["kind"] == "ConfigMap").expect("a ConfigMap");
    for name in ["crd.yaml", "plan.yaml"] {
        let text = std::fs::read_to_string(directory("conversion-webhook").join(name)).expect("a file");
        assert_eq!(plans["data"][name], text.as_str(), "{name}");
    }
    let pushback = Pushback::new();
    let [crd, plan] = ["crd.yaml", "plan.yaml"].map(|name| example(&format!("conversion-webhook/{name}")));
    let gadget = r#"{"apiVersion": "shop.example.com/v1", "kind": "Gadget", "metadata": {"name": "a"},
        "spec": {"host": "h", "port": "80", "comment": "c"}}"#;
    let arguments = ["storage", "convert", "--crd", &crd, "--plan", &plan, "--to", "v2", "-"];
    let converted = pushback.run_with_input(&arguments, gadget.as_bytes()).expect(0).stdout;
    let converted: Value = serde_yaml::from_str(&converted).expect("YAML");
    assert_eq!(converted["spec"], serde_json::json!({"server": {"host": "h", "port": 80}}));
}

/// Files of the example, with another text for the manifest.
fn own_rules(manifest: impl Fn(&str) -> String) -> Pushback {
    let text = std::fs::read_to_string(directory("own-rules").join("web.yaml")).expect("a manifest");
    let pushback = Pushback::new();
    pushback.write("web.yaml", manifest(&text)).write("live/.keep", "");
    pushback
}

fn check_by(pushback: &Pushback, policy: &str, code: i32) -> String {
    let arguments = ["check", "-f", "web.yaml", "--cluster", "dir:live", "--new-base", "--config", policy];
    let ran = pushback.run(&arguments).expect(code);
    ran.stdout + &ran.stderr
}

fn rules_of_your_own_refuse_what_they_name() {
    let policy = example("own-rules/policy.yaml");
    let check = |manifest: &dyn Fn(&str) -> String, code| check_by(&own_rules(manifest), &policy, code);
    check(&|text| text.to_owned(), 0);
    let told = check(&|text| text.replace(":1.2.3", ":latest"), 10);
    assert!(told.contains("without a version: web"), "{told}");
    for (from, to) in [("128Mi", "4Gi"), ("limits", "requests")] {
        let told = check(&|text| text.replace(from, to), 10);
        assert!(told.contains("a container has no memory limit, or one of more than 2Gi"), "{told}");
    }
    let shrunk = own_rules(|text| text.replace("replicas: 3", "replicas: 1"));
    shrunk.write("live/web.yaml", std::fs::read(directory("own-rules").join("web.yaml")).expect("a manifest"));
    assert!(check_by(&shrunk, &policy, 0).contains("ReplicasShrinkSlowly warned"));
}

/// With the program itself, where `PUSHBACK_KUBECONFORM` says where it is.
fn kubeconform_is_a_rule_where_it_is_given() {
    let Some(program) = std::env::var_os("PUSHBACK_KUBECONFORM") else {
        crate::support::case::show("left out: PUSHBACK_KUBECONFORM does not name kubeconform");
        return;
    };
    let policy = std::fs::read_to_string(directory("own-rules").join("schemas.yaml")).expect("a policy");
    let adapter = directory("own-rules").join("rules/kubeconform");
    let command = format!("[{}, {}]", adapter.display(), Path::new(&program).display());
    let policy = policy.replace("[./rules/kubeconform]", &command);
    let check = |manifest: &dyn Fn(&str) -> String, code| {
        let pushback = own_rules(manifest);
        pushback.write("policy.yaml", &policy);
        check_by(&pushback, "policy.yaml", code)
    };
    check(&|text| text.to_owned(), 0);
    let told = check(&|text| text.replace("replicas: 3", "replicas: 1"), 10);
    assert!(told.contains("Schemas/schema") && told.contains("web.yaml:7:"), "{told}");
}

fn a_server_takes_every_example() {
    let cluster = TestCluster::start(&Options::default());
    // What cert-manager and pushback itself read is not for this server.
    let is_its = |object: &Value| {
        let group = object["apiVersion"].as_str().unwrap_or_default();
        !group.starts_with("cert-manager.io/") && !group.starts_with("pushback.dev/")
    };
    let refused = refusals(&cluster, objects("conversion-webhook").into_iter().filter(is_its).collect());
    assert!(refused.is_empty(), "conversion-webhook: {refused:#?}");
    // The bad upgrade is valid by itself, and this leaves nothing behind.
    for example in ["web-app", "operator-upgrade-bad", "storage-migration"] {
        let refused = refusals(&cluster, objects(example));
        assert!(refused.is_empty(), "{example}: {refused:#?}");
    }
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/backups.backup.example.com";
    cluster.api().delete(definition).ok();
    wait_until("the CRD is gone", Duration::from_secs(30), || {
        (cluster.api().get(definition).status == 404).then_some(())
    });

    let refused = refusals(&cluster, objects("operator"));
    assert!(refused.is_empty(), "operator: {refused:#?}");
    // The server sees one of its faults, and that only once objects are stored.
    let mut definitions = objects("operator-upgrade-bad");
    definitions.retain(|object| object["kind"] == "CustomResourceDefinition");
    let refused = refusals(&cluster, definitions);
    assert!(refused.len() == 1 && refused[0].contains("storedVersions"), "{refused:#?}");
    let refused = refusals(&cluster, objects("operator-upgrade-fixed"));
    assert!(refused.is_empty(), "operator-upgrade-fixed: {refused:#?}");
}

fn an_app_of_kapp_is_taken_over_as_its_example_says() {
    let app = std::fs::read_to_string(directory("from-kapp").join("app.yaml")).expect("a manifest");
    assert_eq!(app, kapp::input("01-plain", 1, &[]), "what kapp was given when its app was recorded");
    let namespace = TestCluster::shared().namespace("from-kapp");
    kapp::revive_with_managers("01-plain", &[("kd-a", &namespace)]);
    let pushback = Pushback::on(TestCluster::shared());
    let run = |arguments: &[&str], code: i32| {
        pushback.run(&[arguments, &["-a", "shop", "-n", &namespace]].concat()).expect(code).stdout
    };
    assert!(pushback.run(&["list", "-n", &namespace]).expect(0).stdout.contains("shop"));
    pushback.write("app.yaml", &app);
    let told = run(&["diff", "-f", "app.yaml"], 0);
    assert!(
        told.contains("continues the work of kapp") && told.contains("4 unchanged") && !told.contains("spec"),
        "{told}"
    );
    pushback.write("app.yaml", app.replace("web:1.0", "web:1.1"));
    let told = run(&["apply", "-f", "app.yaml", "--yes"], 0);
    assert!(told.contains("registry.example/web:1.1") && told.contains("Plan: 1 to update, 3 unchanged"), "{told}");
    run(&["diff", "-f", "app.yaml", "--diff-exit-status"], 2);
    assert_eq!(run(&["history"], 0).lines().count(), 3, "kapp's change and this one, below a heading");
}

fn what_kustomize_prints_is_what_is_checked_in() {
    let kubectl = Binaries::get(true).and_then(|binaries| binaries.command("kubectl")).expect("kubectl");
    let mut command = std::process::Command::new(&kubectl[0]);
    command.args(&kubectl[1..]).arg("kustomize").arg(directory("kustomize").join("overlays/production"));
    let printed = command.output().expect("kubectl runs");
    let checked_in = std::fs::read_to_string(directory("kustomize").join("production.yaml")).expect("a manifest");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), checked_in);
}

/// What Helm has set and the chart no longer sets stays, and so does its memory.
fn a_release_of_helm_is_taken_over_as_its_example_says() {
    let namespace = TestCluster::shared().namespace("from-helm");
    let api = TestCluster::shared().api();
    let there = |text: &str| text.replace("namespace: shop", &format!("namespace: {namespace}"));
    let live = std::fs::read_to_string(directory("from-helm").join("live/shop.yaml")).expect("manifests");
    let installed: Vec<Value> = serde_yaml::from_multiple(&there(&live)).expect("YAML");
    for object in installed.iter().filter(|object| object["kind"] != "Namespace") {
        let path = api.path_of(object);
        let (collection, _) = path.rsplit_once('/').expect("a collection");
        api.post(&format!("{collection}?fieldManager=helm"), object).ok();
    }
    let uid = |object: &Value| api.get(&api.path_of(object)).body["metadata"]["uid"].clone();
    let before: Vec<Value> = installed.iter().skip(1).map(uid).collect();
    let rendered = std::fs::read_to_string(directory("from-helm").join("rendered.yaml")).expect("manifests");
    let pushback = Pushback::on(TestCluster::shared());
    pushback.write("rendered.yaml", there(&rendered));
    let apply = ["apply", "-a", "shop", "-n", &namespace, "-f", "rendered.yaml", "--yes"];
    let told = pushback.run(&apply).expect(0).stdout;
    assert!(told.contains("registry.example/web:1.5.0") && told.contains("Plan: 2 to update"), "{told}");
    assert_eq!(installed.iter().skip(1).map(uid).collect::<Vec<_>>(), before, "nothing was made anew");
    let deployment = api.get(&api.path_of(&installed[1])).body;
    assert_eq!(deployment["metadata"]["annotations"]["meta.helm.sh/release-name"], "shop");
}
