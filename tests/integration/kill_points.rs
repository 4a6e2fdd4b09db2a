//! A run that is killed after any of its writes leaves nothing behind that a later run does not know of.

use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use crate::support::proxy::{Fault, FaultProxy, writes};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_first_apply_killed_after_any_write_is_finished_by_the_next,
        ApiServer: an_update_with_a_prune_killed_after_any_write_is_finished_by_the_next,
        ApiServer: a_deletion_killed_after_any_write_is_finished_by_the_next,
    ]
}

const FIRST: &str = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {step: '1'}}
---
{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: one}}
";

const SECOND: &str = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {step: '2'}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: c}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: two}}
";

const LAST: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {step: '3'}}";

/// Runs the binary through a proxy and kills it when its write number `last` has had its effect.
/// Whether it came so far.
fn killed_after(last: usize, cluster: &TestCluster, place: &Pushback, arguments: &[&str]) -> bool {
    let (reached, told) = channel();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    proxy.on(writes().nth(last), Fault::stall().with_effect());
    proxy.after(writes().nth(last), move |_| {
        let _ = reached.send(());
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_pushback"))
        .args(arguments)
        .current_dir(place.directory())
        .env_clear()
        .env("KUBECONFIG", proxy.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    loop {
        if told.recv_timeout(Duration::from_millis(20)).is_ok() {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
            return true;
        }
        if let Some(status) = child.try_wait().expect("it runs or has ended") {
            // The last write may have been answered with silence just as it ended.
            assert!(status.success() || told.try_recv().is_ok(), "{status}");
            return false;
        }
    }
}

fn apply<'a>(namespace: &'a str, file: &'a str) -> Vec<&'a str> {
    vec!["apply", "-a", "app", "-n", namespace, "-f", file, "--yes", "--wait=false"]
}

fn delete(namespace: &str) -> Vec<&str> {
    vec!["delete", "-a", "app", "-n", namespace, "--yes", "--wait=false"]
}

/// Everything that is in a namespace and was put there: `kind/name`.
fn everything(cluster: &TestCluster, namespace: &str) -> Vec<String> {
    let mut found = Vec::new();
    for plural in ["configmaps", "secrets", "services", "serviceaccounts"] {
        let objects = cluster.api().list(&format!("/api/v1/namespaces/{namespace}/{plural}"));
        let names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
        let ours = names.filter(|name| !matches!(*name, "kube-root-ca.crt" | "default"));
        found.extend(ours.map(|name| format!("{plural}/{name}")));
    }
    found
}

fn without_bookkeeping(found: Vec<String>) -> Vec<String> {
    found.into_iter().filter(|name| !name.starts_with("configmaps/app")).collect()
}

/// Kills `killed` after each of its writes in turn, each time in a namespace where `before` was applied, then looks
/// whether `after` comes to an end, a smaller input prunes the rest, and deleting the app leaves nothing.
fn at_every_write(prefix: &str, before: &[&str], killed: &[&str], after: &[&str]) {
    let cluster = TestCluster::shared();
    let place = Pushback::with_kubeconfig(cluster.kubeconfig_path());
    for (name, text) in [("first.yaml", FIRST), ("second.yaml", SECOND), ("last.yaml", LAST)] {
        place.write(name, text);
    }
    let mut points = 0;
    loop {
        let namespace = cluster.namespace(prefix);
        let at = |arguments: &[&str]| -> Vec<String> {
            arguments.iter().map(|word| word.replace("NAMESPACE", &namespace)).collect()
        };
        let run = |arguments: &[&str]| {
            let arguments = at(arguments);
            place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
        };
        if !before.is_empty() {
            run(before);
        }
        let arguments = at(killed);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let came_so_far = killed_after(points + 1, cluster, &place, &arguments);
        run(after);
        if after[0] == "apply" {
            let wanted = if after.contains(&"first.yaml") {
                ["configmaps/a", "secrets/s", "services/b"]
            } else {
                ["configmaps/a", "secrets/s", "serviceaccounts/c"]
            };
            let found = without_bookkeeping(everything(cluster, &namespace));
            assert_eq!(found, wanted, "killed after write {}", points + 1);
            run(&apply("NAMESPACE", "last.yaml"));
            let found = without_bookkeeping(everything(cluster, &namespace));
            assert_eq!(found, ["configmaps/a"], "killed after write {}", points + 1);
            let stored = cluster.api().get(&format!("/api/v1/namespaces/{namespace}/configmaps/a")).ok();
            assert_eq!(stored["data"]["step"], Value::from("3"));
            run(&delete("NAMESPACE"));
        }
        assert_eq!(everything(cluster, &namespace), Vec::<String>::new(), "killed after write {}", points + 1);
        if !came_so_far {
            break;
        }
        points += 1;
    }
    assert!(points >= 4, "a run has more than {points} writes: the record twice, and objects");
}

fn a_first_apply_killed_after_any_write_is_finished_by_the_next() {
    let apply = apply("NAMESPACE", "first.yaml");
    at_every_write("kill-first", &[], &apply, &apply);
}

fn an_update_with_a_prune_killed_after_any_write_is_finished_by_the_next() {
    let second = apply("NAMESPACE", "second.yaml");
    at_every_write("kill-update", &apply("NAMESPACE", "first.yaml"), &second, &second);
}

fn a_deletion_killed_after_any_write_is_finished_by_the_next() {
    let delete = delete("NAMESPACE");
    at_every_write("kill-delete", &apply("NAMESPACE", "first.yaml"), &delete, &delete);
}
