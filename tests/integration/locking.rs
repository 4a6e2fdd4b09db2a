//! One run at a time writes an app: runs that are killed, runs that lose touch, runs that must wait. Many of them at
//! once are in `races`.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::proxy::{Fault, FaultProxy, Verb, matching};
use crate::support::{Options, Pushback, Ran, Running, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_killed_run_is_taken_over_at_once_on_its_own_host,
        ApiServer: the_lock_of_a_run_on_another_host_is_waited_for_until_it_expires,
        ApiServer: a_locked_app_is_refused_with_the_name_of_the_holder,
        ApiServer: an_outage_longer_than_the_lease_fails_nothing_that_nobody_else_could_write,
        ApiServer: a_run_out_of_touch_writes_nothing_and_ends_once_another_has_taken_over,
        ApiServer: a_run_whose_lock_was_taken_over_writes_nothing_more,
        ApiServer: a_record_that_somebody_else_edits_does_not_cost_the_lock,
        ApiServer: a_lock_is_renewed_past_hundreds_of_writes_that_queue,
        ApiServer: rights_in_one_namespace_are_enough,
    ]
}

fn pushback(cluster: &TestCluster) -> Pushback {
    Pushback::new().with("KUBECONFIG", cluster.kubeconfig_path())
}

fn config_map(name: &str, writer: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"writer": writer}})
}

/// A ConfigMap that somebody else is to create: it holds a run up for as long as a test wants.
fn gate() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate", "annotations": {
        "kapp.k14s.io/exists": "", "kapp.k14s.io/change-group": "example.com/gate",
    }}})
}

/// A ConfigMap that is written after the gate.
fn behind_the_gate(name: &str) -> Value {
    let mut object = config_map(name, "late");
    object["metadata"]["annotations"] = json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/gate"});
    object
}

fn manifest(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn names(cluster: &TestCluster, namespace: &str) -> BTreeSet<String> {
    let objects = cluster.api().list(&format!("{}?labelSelector=kapp.k14s.io%2Fapp", config_maps(namespace)));
    objects.iter().filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The lock in the record of app `shop`; null where nobody holds it.
fn lock(cluster: &TestCluster, namespace: &str) -> Value {
    let record = cluster.api().get(&format!("{}/shop", config_maps(namespace)));
    let text = record.body["data"]["pushback-lock"].as_str().unwrap_or("null").to_owned();
    serde_json::from_str(&text).expect("a lock entry")
}

fn apply<'a>(namespace: &'a str, file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["apply", "-a", "shop", "-n", namespace, "-f", file, "--yes", "--output", "json"], more].concat()
}

#[track_caller]
fn end(ran: &Ran) -> Value {
    let events = ran.events();
    let last = events.last().cloned().unwrap_or_default();
    assert_eq!(last["type"], "run.end", "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(last["exitCode"], ran.code, "{}", ran.stdout);
    last
}

/// Starts a run that has written `first` and waits for the gate before it writes `last`.
fn held_up(cluster: &TestCluster, place: &Pushback, namespace: &str, more: &[&str]) -> Running {
    place.write("app.yaml", manifest(&[config_map("first", "early"), gate(), behind_the_gate("last")]));
    let mut run = Running::start(place.command(&apply(namespace, "app.yaml", more)));
    run.wait_for("the first object is written", |event| {
        event["type"] == "change.done" && event["object"]["name"] == "first"
    });
    run.wait_for("the gate is waited for", |event| {
        event["type"] == "retry" && event["request"].as_str().is_some_and(|request| request.contains("gate"))
    });
    assert_eq!(lock(cluster, namespace)["process"], run.id());
    run
}

fn open_the_gate(cluster: &TestCluster, namespace: &str) {
    cluster.api().post(&config_maps(namespace), &config_map("gate", "somebody else")).ok();
}

fn a_killed_run_is_taken_over_at_once_on_its_own_host() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("killed");
    let place = pushback(cluster);
    let run = held_up(cluster, &place, &namespace, &[]);
    run.signal(Signal::KILL);
    run.finish();
    assert_ne!(lock(cluster, &namespace), Value::Null, "a killed process releases nothing");

    open_the_gate(cluster, &namespace);
    // Without `first`: what the killed run has made is known, and is pruned.
    place.write("app.yaml", manifest(&[gate(), behind_the_gate("last")]));
    place.run(&apply(&namespace, "app.yaml", &["--lock-wait", "0s"])).expect(0);
    assert_eq!(names(cluster, &namespace), BTreeSet::from(["last".to_owned()]));
    assert_eq!(lock(cluster, &namespace), Value::Null);
}

/// Makes the lock that of a process on another machine, of which nothing is known from here.
fn move_lock_elsewhere(cluster: &TestCluster, namespace: &str) {
    let mut entry = lock(cluster, namespace);
    entry["host"] = json!("elsewhere");
    entry["boot"] = json!("another boot");
    let patch = json!({"data": {"pushback-lock": entry.to_string()}});
    cluster.api().merge_patch(&format!("{}/shop", config_maps(namespace)), &patch).ok();
}

fn the_lock_of_a_run_on_another_host_is_waited_for_until_it_expires() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("expired");
    let place = pushback(cluster);
    let run = held_up(cluster, &place, &namespace, &["--lock-lease", "2s"]);
    run.signal(Signal::KILL);
    run.finish();
    move_lock_elsewhere(cluster, &namespace);
    open_the_gate(cluster, &namespace);

    let refused = place.run(&apply(&namespace, "app.yaml", &["--lock-wait", "0s"])).expect(12);
    let error = end(&refused)["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("tester on elsewhere"), "{error}");
    assert!(!names(cluster, &namespace).contains("last"));

    // The same command again, as a pipeline would run it.
    let ran = place.run(&apply(&namespace, "app.yaml", &["--lock-lease", "2s"])).expect(0);
    let waited = ran.events_of("diagnostic").into_iter().find(|event| event["code"] == "lock-waiting");
    let message = waited.expect("it says that it waits")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("tester on elsewhere"), "{message}");
    assert_eq!(names(cluster, &namespace), BTreeSet::from(["first".to_owned(), "last".to_owned()]));
    assert_eq!(lock(cluster, &namespace), Value::Null);
}

fn a_locked_app_is_refused_with_the_name_of_the_holder() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("locked");
    let place = pushback(cluster);
    let holder = held_up(cluster, &place, &namespace, &[]);
    let entry = lock(cluster, &namespace);
    let (host, since) = (entry["host"].as_str().unwrap_or_default(), entry["since"].as_str().unwrap_or_default());

    place.write("other.yaml", manifest(&[config_map("other", "two")]));
    let refused = place.run(&apply(&namespace, "other.yaml", &["--lock-wait", "0s"])).expect(12);
    let end = end(&refused);
    let since = since.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ");
    let expected = format!(
        "another run holds the lock of app shop: tester on {host} (process {}, run {}), since {since} UTC",
        holder.id(),
        entry["run"].as_str().unwrap_or_default()
    );
    assert_eq!((end["error"].as_str(), end["outcome"].as_str()), (Some(expected.as_str()), Some("locked")));
    assert_eq!(names(cluster, &namespace), BTreeSet::from(["first".to_owned()]));

    // Neither is the app deleted under the run's hands.
    let delete = ["delete", "-a", "shop", "-n", &namespace, "--yes", "--lock-wait", "0s"];
    let refused = place.run(&delete).expect(12);
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);

    open_the_gate(cluster, &namespace);
    assert_eq!(holder.finish().expect(0).events().last().map(|end| end["outcome"].clone()), Some(json!("succeeded")));
    assert_eq!(names(cluster, &namespace), BTreeSet::from(["first".to_owned(), "last".to_owned()]));
}

/// Stops or continues a component's process, with every connection kept: the worst way to lose touch.
fn signal_component(cluster: &TestCluster, component: &str, signal: Signal) {
    let pid = std::fs::read_to_string(cluster.directory().join(format!("{component}.pid"))).expect("the process id");
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the component runs");
}

/// The run says that it does not know whether the lock is still its own.
fn is_uncertain(event: &Value) -> bool {
    event["type"] == "warning" && event["code"] == "lock"
}

fn an_outage_longer_than_the_lease_fails_nothing_that_nobody_else_could_write() {
    let cluster = TestCluster::start(&Options::default());
    let place = pushback(&cluster);
    let objects: Vec<Value> = (0..300).map(|number| config_map(&format!("object-{number}"), "us")).collect();
    place.write("app.yaml", manifest(&objects));
    for component in ["kube-apiserver", "etcd"] {
        let namespace = cluster.namespace(component);
        // No flag for the lease or a timeout: this is what everybody runs.
        let mut run = Running::start(place.command(&apply(&namespace, "app.yaml", &["--preflight=none"])));
        run.wait_for("writing has begun", |event| event["type"] == "change.done");
        signal_component(&cluster, component, Signal::STOP);
        run.wait_for("the lease is over", is_uncertain);
        signal_component(&cluster, component, Signal::CONT);
        let ran = run.finish().expect(0);
        assert_eq!(names(&cluster, &namespace).len(), objects.len(), "{component}");
        assert_eq!(lock(&cluster, &namespace), Value::Null);
        let done: Vec<Value> = ran.events_of("change.done").into_iter().map(|event| event["outcome"].clone()).collect();
        assert_eq!(done, vec![json!("ok"); objects.len()], "{component}");
        assert_eq!(ran.events().into_iter().filter(is_uncertain).count(), 1, "it is said once");
    }
}

fn a_run_out_of_touch_writes_nothing_and_ends_once_another_has_taken_over() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("out-of-touch");
    let place = pushback(cluster);
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let away = Pushback::with_kubeconfig(&proxy.kubeconfig());
    let mut run = held_up(cluster, &away, &namespace, &["--lock-lease", "2s"]);
    proxy.pause();
    run.wait_for("the lease is over", is_uncertain);
    open_the_gate(cluster, &namespace);
    place.write("other.yaml", manifest(&[config_map("first", "early"), config_map("other", "two")]));
    place.run(&apply(&namespace, "other.yaml", &["--lock-lease", "2s"])).expect(0);

    // What the first run had sent arrives now, and hits nothing.
    proxy.resume();
    let ran = run.finish().expect(20);
    let end = end(&ran);
    assert!(end["error"].as_str().is_some_and(|error| error.starts_with("the lock was lost")), "{end}");
    let unfinished: Vec<&Value> =
        end["unfinished"].as_array().into_iter().flatten().map(|line| &line["object"]["name"]).collect();
    assert_eq!(unfinished, ["gate", "last"], "{end}");
    assert_eq!(names(cluster, &namespace), BTreeSet::from(["first".to_owned(), "other".to_owned()]));
}

fn a_run_whose_lock_was_taken_over_writes_nothing_more() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("taken-over");
    let place = pushback(cluster);
    // A process that stands still looks dead to others once its lease is over.
    let slow = held_up(cluster, &place, &namespace, &["--lock-lease", "2s"]);
    slow.signal(Signal::STOP);
    place.write("other.yaml", manifest(&[config_map("other", "two")]));
    place.run(&apply(&namespace, "other.yaml", &["--lock-lease", "2s"])).expect(0);
    open_the_gate(cluster, &namespace);
    slow.signal(Signal::CONT);

    let ran = slow.finish().expect(20);
    assert!(end(&ran)["error"].as_str().is_some_and(|error| error.starts_with("the lock was lost")));
    assert_eq!(names(cluster, &namespace), BTreeSet::from(["other".to_owned()]));
    let record = cluster.api().get(&format!("{}/shop", config_maps(&namespace))).ok();
    let inventory = record["data"]["pushback-inventory"].as_str().unwrap_or_default();
    assert!(inventory.contains("other") && !inventory.contains("first"), "{inventory}");
}

fn a_record_that_somebody_else_edits_does_not_cost_the_lock() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("edited");
    let place = pushback(cluster);
    let run = held_up(cluster, &place, &namespace, &["--lock-lease", "2s"]);
    let path = format!("{}/shop", config_maps(&namespace));
    cluster.api().merge_patch(&path, &json!({"metadata": {"annotations": {"example.com/note": "seen"}}})).ok();
    let renewals = |cluster: &TestCluster| lock(cluster, &namespace)["renewals"].as_u64().unwrap_or_default();
    let before = renewals(cluster);
    wait_until("the lock is renewed all the same", SOON, || (renewals(cluster) > before + 1).then_some(()));
    cluster.api().merge_patch(&path, &json!({"metadata": {"annotations": {"example.com/note": "again"}}})).ok();
    open_the_gate(cluster, &namespace);

    let ran = run.finish().expect(0);
    assert_eq!(ran.events_of("warning"), Vec::<Value>::new());
    let record = cluster.api().get(&path).ok();
    assert_eq!(record["metadata"]["annotations"]["example.com/note"], "again");
    assert_eq!(lock(cluster, &namespace), Value::Null);
}

fn a_lock_is_renewed_past_hundreds_of_writes_that_queue() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("queue");
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let place = Pushback::with_kubeconfig(&proxy.kubeconfig());
    let objects: Vec<Value> = (0..400).map(|number| config_map(&format!("object-{number}"), "us")).collect();
    place.write("app.yaml", manifest(&objects));
    // All are written at once, and so slowly that a lease passes before the last has its turn.
    proxy.on(matching(Verb::Apply, "configmaps"), Fault::Delay(Duration::from_secs(2)));
    let arguments = ["apply", "-a", "shop", "-n", &namespace, "-f", "app.yaml", "--yes", "--lock-lease=6s"];
    place.run(&arguments).expect(0);
    assert_eq!(names(cluster, &namespace).len(), objects.len());
}

fn rights_in_one_namespace_are_enough() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("restricted");
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"namespace": namespace, "name": "deployer"},
        "rules": [{
            "apiGroups": ["", "apps"], "resources": ["configmaps", "services", "deployments"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }],
    });
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
        "metadata": {"namespace": namespace, "name": "deployer"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "deployer"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "deployer"}],
    });
    cluster.api().apply(&role).ok();
    cluster.api().apply(&binding).ok();
    let place = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed("deployer", &namespace));
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 0, "paused": true, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
            },
        },
    });
    place.write("app.yaml", manifest(&[config_map("first", "one"), config_map("gone", "one"), service.clone()]));
    place.run(&apply(&namespace, "app.yaml", &[])).expect(0);
    let again = place.run(&apply(&namespace, "app.yaml", &[])).expect(0);
    assert_eq!(end(&again)["outcome"], "unchanged");

    place.write("app.yaml", manifest(&[config_map("first", "two"), service, deployment]));
    let changed = place.run(&apply(&namespace, "app.yaml", &["--wait=false"])).expect(0);
    let done = end(&changed)["done"].take();
    assert_eq!((&done["create"], &done["update"], &done["delete"]), (&json!(1), &json!(1), &json!(1)), "{done}");

    place.run(&["delete", "-a", "shop", "-n", &namespace, "--yes"]).expect(0);
    assert_eq!(names(cluster, &namespace), BTreeSet::new());
    assert_eq!(cluster.api().get(&format!("{}/shop", config_maps(&namespace))).status, 404);
}
