//! The example of a migration as a Job: its roles are those that the tool prints and are enough, and its commands do it.

use std::path::Path;

use serde_json::Value;

use super::crd::DEADLINE;
use super::migrate::flipped;
use crate::support::pushback::example;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_commands_of_the_example_migrate_with_its_rights_alone,
    ]
}

const DEFINITION: &str = "backups.backup.example.com";
const NAMESPACE: &str = "storage-migration";

/// The documents of a file of the example, with names of the test's own.
fn documents(file: &str, names: &[(&str, &str)]) -> Vec<Value> {
    let path = Path::new(&example("storage-migration")).join(file);
    let text = std::fs::read_to_string(path).expect("a file of the example");
    let text = names.iter().fold(text, |text, (from, to)| text.replace(from, to));
    serde_yaml::from_multiple(&text).expect("YAML")
}

fn the_commands_of_the_example_migrate_with_its_rights_alone() {
    let crd = flipped("storage-job", 30);
    let (name, namespace) = (crd.name(), crd.namespace.as_str());
    let names = [
        (DEFINITION, name.as_str()),
        ("backup.example.com", &crd.group),
        ("[backups", "[cogs"),
        (NAMESPACE, namespace),
    ];
    let printed: Vec<Value> =
        serde_json::from_str(&crd.pushback().run(&["storage", "role", &name, "-o", "json"]).expect(0).stdout)
            .expect("JSON");
    let access = documents("access.yaml", &names);
    let rules: Vec<&Value> = access.iter().map(|object| &object["rules"]).filter(|rules| !rules.is_null()).collect();
    assert_eq!(rules, printed.iter().map(|role| &role["rules"]).collect::<Vec<_>>());
    for object in &access {
        crd.api().apply(object).ok();
    }
    let command = |job: &Value| {
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["command"], serde_json::json!(["sh", "-c"]));
        // The rights do not tell how many servers there are; here it is one.
        let line = container["args"][0].as_str().expect("a line of the shell");
        line.strip_prefix("exec pushback ").map(|rest| format!("exec \"$0\" {rest} --settle 0s")).expect("the tool")
    };
    let jobs: Vec<Value> = documents("jobs.yaml", &names);
    let (migrate, verify) = (command(&jobs[0]), command(&jobs[1]));
    let kubeconfig = TestCluster::shared()
        .kubeconfig_for(&format!("system:serviceaccount:{namespace}:{namespace}"), &["system:serviceaccounts"]);
    let pod = |index: u64| Pushback::with_kubeconfig(&kubeconfig).with("JOB_COMPLETION_INDEX", index.to_string());
    let indexes = jobs[0]["spec"]["completions"].as_u64().expect("a number");
    for index in 0..indexes {
        let ran = wait_until("the roles count", DEADLINE, || {
            let ran = pod(index).run_in_shell(&migrate);
            (ran.code != 13).then_some(ran)
        });
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.contains("proved: "), index + 1 == indexes, "{}", ran.stdout);
    }
    let ran = pod(0).run_in_shell(&verify).expect(0);
    assert!(ran.stdout.contains("proved: "), "{}", ran.stdout);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 30", serde_json::json!(["v2"])));
}
