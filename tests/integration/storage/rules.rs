//! Rule StoredVersions on a real API server: what it refuses, and that its commands, carried out literally, make the
//! finding go and bring no other.

use serde_json::{Value, json};

use crate::storage::crd::{DEADLINE, TestCrd, Version, size, without_clients};
use crate::support::apply::TestApp;
use crate::support::{TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_removed_version_is_told_once_and_its_commands_lead_to_a_passing_check,
        ApiServer: a_version_that_the_status_invents_goes_with_the_command,
        ApiServer: what_is_left_in_an_old_version_is_told_until_it_is_moved,
        ApiServer: the_policy_that_a_remedy_names_leads_to_a_passing_check,
        ApiServer: field_owners_at_a_version_that_goes_are_moved_by_the_command,
        ApiServer: a_real_release_without_its_stored_version_passes_with_the_remedy,
    ]
}

/// The findings and the exit code of a check.
struct Judged {
    code: i32,
    findings: Vec<Value>,
}

impl Judged {
    /// Rule, check, severity, version, number of objects.
    fn lines(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = |finding: &Value| {
            let [rule, check, severity, version] =
                ["rule", "check", "severity", "version"].map(|key| text(&finding[key]));
            let also: Vec<String> = finding["also"].as_array().into_iter().flatten().map(text).collect();
            let objects =
                finding["liveObjects"]["affected"].as_u64().map_or(String::new(), |count| format!(" of {count}"));
            let also = if also.is_empty() { String::new() } else { format!(" (also {})", also.join(", ")) };
            format!("{rule}/{check} {severity} {version}{objects}{also}")
        };
        self.findings.iter().map(line).collect()
    }

    /// The commands that the remedy of a finding quotes, in their order.
    #[track_caller]
    fn commands(&self, check: &str) -> Vec<Vec<String>> {
        let found = self.findings.iter().find(|finding| finding["check"] == check).expect("a finding");
        let remedy = found["remedy"].as_str().expect("a remedy");
        let quoted = remedy.split('`').skip(1).step_by(2);
        quoted
            .filter_map(|quoted| quoted.strip_prefix("pushback "))
            .map(|command| command.split(' ').map(str::to_owned).collect())
            .collect()
    }
}

fn check(app: &TestApp, manifest: &Value, rules: &Value) -> Judged {
    let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules});
    app.pushback.write("config.yaml", config.to_string());
    app.pushback.write("app.yaml", manifest.to_string());
    let arguments =
        ["-f", "app.yaml", "--config", "config.yaml", "--dangerous-override-ownership-of-existing-resources"];
    let ran = app.run("check", &arguments);
    Judged { code: ran.code, findings: ran.json()["findings"].as_array().expect("findings").clone() }
}

fn both() -> Value {
    json!([{"name": "CRDUpgradeSafety"}, {"name": "StoredVersions"}])
}

fn app(crd: &TestCrd) -> TestApp {
    TestApp::of(crd.pushback(), "stored", &crd.namespace)
}

/// Runs commands of a remedy; a person would confirm those that take something away.
#[track_caller]
fn carry_out(app: &TestApp, commands: &[Vec<String>]) {
    assert!(!commands.is_empty());
    for command in commands {
        let mut command: Vec<&str> = command.iter().map(String::as_str).collect();
        if !command.contains(&"migrate") {
            command.push("--yes");
        }
        app.pushback.run(&command).expect(0);
    }
}

fn flipped(prefix: &str, objects: usize) -> TestCrd {
    let crd = TestCrd::new(prefix);
    crd.put(&[("v1", true, true, size())]);
    crd.create("v1", objects);
    crd.put(&[("v1", true, false, size()), ("v2", true, true, size())]);
    crd
}

fn a_removed_version_is_told_once_and_its_commands_lead_to_a_passing_check() {
    let crd = flipped("rule-removed", 3);
    let (app, new) = (app(&crd), crd.manifest(&[("v2", true, true, size())]));
    let judged = check(&app, &new, &both());
    assert_eq!(judged.code, 10);
    assert_eq!(
        judged.lines(),
        [
            "CRDUpgradeSafety/storedVersionRemoval error v1 of 3 (also CRDUpgradeSafety/servedVersionRemoval, StoredVersions/storedVersionRemoval, server/immutable)"
        ]
    );
    // Without the other rule, and where it only warns, this one says it.
    let alone = check(&app, &new, &json!([{"name": "StoredVersions"}]));
    assert_eq!(alone.lines(), ["StoredVersions/storedVersionRemoval error v1 of 3 (also server/immutable)"]);

    carry_out(&app, &judged.commands("storedVersionRemoval"));
    let judged = check(&app, &new, &both());
    assert_eq!((judged.code, judged.lines()), (0, Vec::new()));
    assert_eq!(crd.in_etcd(), "v2: 3");
}

fn a_version_that_the_status_invents_goes_with_the_command() {
    let crd = flipped("rule-invented", 2);
    crd.force_stored_versions(&["v1", "v2", "v9"]);
    let versions = [("v1", true, false, size()), ("v2", true, true, size()), ("v3", true, false, size())];
    let (app, new) = (app(&crd), crd.manifest(&versions));
    let judged = check(&app, &new, &both());
    assert_eq!(
        judged.lines(),
        [
            "CRDUpgradeSafety/storedVersionRemoval error v9 of 2 (also StoredVersions/storedVersionRemoval, server/immutable)",
            "StoredVersions/debt warning v2",
        ]
    );
    carry_out(&app, &judged.commands("storedVersionRemoval"));
    let judged = check(&app, &new, &both());
    assert_eq!((judged.code, judged.lines()), (0, Vec::new()));
}

fn what_is_left_in_an_old_version_is_told_until_it_is_moved() {
    let crd = flipped("rule-debt", 2);
    let versions = [("v1", true, false, size()), ("v2", true, true, size()), ("v3", true, false, size())];
    let (app, new) = (app(&crd), crd.manifest(&versions));
    let judged = check(&app, &new, &both());
    assert_eq!((judged.code, judged.lines()), (0, vec!["StoredVersions/debt warning v2".to_owned()]));
    let message = judged.findings[0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("up to 2 Cog objects may be stored there"), "{message}");
    carry_out(&app, &judged.commands("debt"));
    let judged = check(&app, &new, &both());
    assert_eq!((judged.code, judged.lines()), (0, Vec::new()));
}

/// The other way of a remedy: the flag, copied out of the text.
fn the_policy_that_a_remedy_names_leads_to_a_passing_check() {
    let old = || vec![("v1", true, true, size()), ("v2", true, false, size())];
    let both_versions = || vec![("v1", true, false, size()), ("v2", true, true, size())];
    let only_new = || vec![("v2", true, true, size())];
    for (prefix, before, then, code, policy) in [
        ("policy-flip", old(), both_versions(), 0, "--storage=migrate"),
        ("policy-removed", both_versions(), only_new(), 10, "--storage=migrate"),
        ("policy-storage", old(), only_new(), 10, "--storage=bridge"),
    ] {
        let crd = TestCrd::new(prefix);
        let app = app(&crd);
        let apply =
            |versions: &[Version], arguments: &[&str]| app.apply(&crd.manifest(versions).to_string(), arguments);
        apply(&[("v1", true, true, size())], &[]).expect(0);
        crd.await_version("v1", true);
        crd.create("v1", 3);
        apply(&before, &[]).expect(0);
        let judged = check(&app, &crd.manifest(&then), &both());
        assert_eq!(judged.code, code, "{prefix}: {:?}", judged.lines());
        let remedies: Vec<&str> = judged.findings.iter().filter_map(|finding| finding["remedy"].as_str()).collect();
        let flag = remedies.iter().flat_map(|remedy| remedy.split('`')).find(|word| word.starts_with("--storage="));
        assert_eq!(flag, Some(policy), "{prefix}: {remedies:?}");
        let accepted = format!("{}\n---\n{}", crd.manifest(&then), without_clients());
        app.apply(&accepted, &[policy]).expect(0);
        let judged = check(&app, &crd.manifest(&then), &both());
        assert_eq!((judged.code, judged.lines()), (0, Vec::new()), "{prefix}");
        assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 3", json!(["v2"])), "{prefix}");
    }
}

fn field_owners_at_a_version_that_goes_are_moved_by_the_command() {
    let crd = TestCrd::new("rule-owners");
    crd.put(&[("v1", true, false, size()), ("v2", true, true, size())]);
    crd.api().apply_with(&crd.object("v1", "cog-0", &json!({"size": 1})), "fieldManager=owner&force=true").ok();
    assert_eq!(crd.in_etcd(), "v2: 1");
    let (app, new) = (app(&crd), crd.manifest(&[("v2", true, true, size())]));
    let rules = json!([{"name": "StoredVersions"}]);
    let judged = check(&app, &new, &rules);
    assert_eq!((judged.code, judged.lines()), (0, vec!["StoredVersions/managedFields warning v1 of 1".to_owned()]));
    assert!(judged.findings[0]["message"].as_str().unwrap_or_default().contains("owned at it by owner"));
    carry_out(&app, &judged.commands("managedFields"));
    assert_eq!(check(&app, &new, &rules).lines(), Vec::<String>::new());
}

/// A release of Strimzi has only a version that the one before does not have.
fn a_real_release_without_its_stored_version_passes_with_the_remedy() {
    let namespace = TestCluster::shared().namespace("rule-strimzi");
    let group = format!("{namespace}.example.com");
    let real = |release: &str| -> Value {
        let path = format!("{}/tests/data/crds/strimzi-{release}-kafkatopics.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("test data").replace("kafka.strimzi.io", &group);
        serde_json::from_str(&text).expect("JSON")
    };
    let (old, new) = (real("0.48.0"), real("1.0.0"));
    let api = TestCluster::shared().api();
    let app = TestApp::new("strimzi", &namespace);
    app.apply(&old.to_string(), &[]).expect(0);
    let topic = json!({
        "apiVersion": format!("{group}/v1beta2"), "kind": "KafkaTopic",
        "metadata": {"name": "orders", "namespace": namespace, "labels": {"strimzi.io/cluster": "main"}},
        "spec": {"partitions": 3, "replicas": 2, "config": {"retention.ms": 7_200_000}},
    });
    let path = |version: &str| format!("/apis/{group}/{version}/namespaces/{namespace}/kafkatopics/orders");
    wait_until("topics are served", DEADLINE, || (api.apply(&topic).status < 300).then_some(()));
    let judged = check(&app, &new, &both());
    assert_eq!(judged.code, 10);
    let told = "CRDUpgradeSafety/storedVersionRemoval error v1beta2 of 1 (also CRDUpgradeSafety/servedVersionRemoval, StoredVersions/storedVersionRemoval, server/immutable)";
    assert!(judged.lines().iter().any(|line| line == told), "{:#?}", judged.lines());
    let removal =
        judged.findings.iter().find(|finding| finding["check"] == "storedVersionRemoval").expect("it is told");
    let remedy = removal["remedy"].as_str().expect("a remedy");
    assert!(remedy.starts_with("apply with `--storage=bridge`"), "{remedy}");
    app.apply(&format!("{new}\n---\n{}", without_clients()), &["--storage=bridge"]).expect(0);
    let judged = check(&app, &new, &both());
    assert_eq!((judged.code, judged.lines()), (0, Vec::new()));
    assert_eq!(api.get(&path("v1")).ok()["spec"], topic["spec"]);
}
