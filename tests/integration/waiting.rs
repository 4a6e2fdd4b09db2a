//! Waiting on a real cluster: what is not ready and why, what fails, what goes away, signals, and the run after.

mod failing;
mod going;
mod lost;
mod names;
mod observed;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Options, Pushback, Ran, Running, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<TestCase> {
    let own = cases![
        Controllers: a_deployment_whose_image_never_starts_times_out_with_the_reason,
        Controllers: a_pod_that_no_node_takes_is_named_with_the_reason,
        Controllers: a_failed_job_fails_the_run,
        Controllers: an_object_that_somebody_deletes_is_not_waited_for,
        Controllers: what_is_not_to_be_waited_for_is_not,
        Controllers: an_interrupted_run_releases_the_app_and_the_next_one_goes_on,
        ApiServer: signals_end_a_run_whose_server_hangs,
        ApiServer: the_time_limit_of_a_run_ends_it_wherever_it_is,
        Controllers: a_claim_that_nobody_uses_is_ready_at_the_end,
        Controllers: an_object_of_somebody_else_is_waited_for,
        Controllers: what_may_not_be_listed_is_looked_at_one_by_one,
        ApiServer: a_failing_condition_fails_only_after_its_time,
    ];
    [own, failing::tests(), going::tests(), lost::tests(), names::tests(), observed::tests()].concat()
}

/// An app of its own in a namespace of its own.
struct App {
    cluster: &'static TestCluster,
    namespace: String,
    place: Pushback,
}

impl App {
    fn new(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let place = Pushback::new().with("KUBECONFIG", cluster.kubeconfig_path());
        Self { cluster, namespace: cluster.namespace(prefix), place }
    }

    fn write(&self, objects: &[Value]) -> &Self {
        let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
        self.place.write("app.yaml", text);
        self
    }

    fn arguments<'a>(&'a self, command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec![command, "-a", "shop", "-n", &self.namespace, "--yes", "--output", "json"];
        if command == "apply" {
            arguments.extend(["-f", "app.yaml"]);
        }
        arguments.extend(more);
        arguments
    }

    fn apply(&self, more: &[&str]) -> Ran {
        self.place.run(&self.arguments("apply", more))
    }

    fn start(&self, more: &[&str]) -> Running {
        Running::start(self.place.command(&self.arguments("apply", more)))
    }

    /// The path of an object in the namespace, `configmaps/settings`.
    fn path(&self, resource: &str) -> String {
        let group = match resource.split('/').next() {
            Some("deployments") => "/apis/apps/v1",
            Some("jobs") => "/apis/batch/v1",
            _ => "/api/v1",
        };
        format!("{group}/namespaces/{}/{resource}", self.namespace)
    }

    fn get(&self, resource: &str) -> Value {
        self.cluster.api().get(&self.path(resource)).ok()
    }

    fn is_there(&self, resource: &str) -> bool {
        self.cluster.api().get(&self.path(resource)).status == 200
    }

    fn lock(&self) -> Value {
        self.get("configmaps/shop")["data"]["pushback-lock"].take()
    }

    /// Pods that controllers have made, once there is one.
    fn pod(&self) -> Value {
        wait_until("there is a Pod", SOON, || self.cluster.api().list(&self.path("pods")).into_iter().next())
    }

    /// The same app, in the hands of a user who has these rights in its namespace and no others.
    fn by_user(self, user: &str, rules: &Value) -> Self {
        let group = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role",
            "metadata": {"namespace": self.namespace, "name": user}, "rules": rules,
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"namespace": self.namespace, "name": user},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        });
        self.cluster.api().apply(&role).ok();
        self.cluster.api().apply(&binding).ok();
        let place = Pushback::with_kubeconfig(&self.cluster.kubeconfig_once_allowed(user, &self.namespace));
        Self { place, ..self }
    }
}

/// A rule of a Role.
fn rights(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

#[track_caller]
fn end(ran: &Ran) -> Value {
    let last = ran.events().last().cloned().unwrap_or_default();
    assert_eq!(last["type"], "run.end", "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(last["exitCode"], ran.code, "{}", ran.stdout);
    last
}

/// The objects that a run has left, as `Kind/name state`, with message and reasons.
fn unfinished(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = end(ran)["unfinished"].as_array().cloned().unwrap_or_default();
    lines
        .iter()
        .map(|line| {
            let what =
                format!("{}/{} {}", text(&line["object"]["kind"]), text(&line["object"]["name"]), text(&line["state"]));
            let reasons = line["reasons"].as_array().into_iter().flatten().map(text);
            (what, std::iter::once(text(&line["message"])).chain(reasons).collect::<Vec<_>>().join("\n"))
        })
        .collect()
}

fn is_waiting(name: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == "wait.progress" && event["object"]["name"] == name
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}})
}

/// No node has this label, so its Pods stay pending until the test says otherwise.
fn stuck_deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"name": name}},
            "template": {
                "metadata": {"labels": {"name": name}},
                "spec": {
                    "nodeSelector": {"example.com/disk": "fast"},
                    "containers": [{"name": "main", "image": "registry.example/web:1"}],
                },
            },
        },
    })
}

fn running_deployment(name: &str) -> Value {
    let mut deployment = stuck_deployment(name);
    deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "linux"});
    deployment
}

fn a_deployment_whose_image_never_starts_times_out_with_the_reason() {
    let app = App::new("image");
    app.write(&[config_map("settings"), stuck_deployment("web")]);
    let mut run = app.start(&["--wait-timeout", "10s"]);
    run.wait_for("the Deployment is waited for", is_waiting("web"));
    // The test is the kubelet of this Pod, which no node has taken.
    let pod = app.pod();
    let path = app.path(&format!("pods/{}/status", pod["metadata"]["name"].as_str().expect("a name")));
    let waiting = json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image"});
    let status = json!({"status": {"containerStatuses": [{
        "name": "main", "image": "registry.example/web:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": waiting},
    }]}});
    app.cluster.api().merge_patch(&path, &status).ok();
    run.wait_for("the reason is told while it waits", |event| {
        event["type"] == "wait.progress" && event["reasons"].to_string().contains("ImagePullBackOff")
    });

    let ran = run.finish().expect(22);
    let [(what, why)] = &unfinished(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(what, "Deployment/web not ready");
    assert!(why.contains("0/1 available") && why.contains("ImagePullBackOff (image registry.example/web:1)"), "{why}");
    assert_eq!(app.lock(), Value::Null);

    // What people see: the last lines name the object, its state and the reason.
    let ran = app.place.run(&[
        "apply",
        "-a",
        "shop",
        "-n",
        &app.namespace,
        "-f",
        "app.yaml",
        "--yes",
        "--output",
        "plain",
        "--wait-timeout",
        "2s",
    ]);
    assert_eq!(ran.code, 22, "{}", ran.stderr);
    let tail = ran.stderr.split("error: ").nth(1).unwrap_or_default();
    assert!(tail.starts_with("waiting timed out\n"), "{}", ran.stderr);
    assert!(tail.contains("Deployment") && tail.contains("waiting"), "{tail}");
    assert!(tail.contains("web") && tail.contains("ImagePullBackOff"), "{tail}");
}

fn a_pod_that_no_node_takes_is_named_with_the_reason() {
    let app = App::new("unschedulable");
    // A label of its own: other tests rely on theirs being on no node.
    let label = format!("example.com/{}", app.namespace);
    let mut deployment = stuck_deployment("web");
    deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({label.as_str(): "yes"});
    app.write(&[deployment]);
    let mut run = app.start(&["--wait-timeout", "60s"]);
    let told = run.wait_for("the reason is told", |event| {
        event["type"] == "wait.progress" && event["reasons"].to_string().contains("didn't match Pod's node")
    });
    assert_eq!(told["object"]["name"], "web");

    // Somebody repairs it from outside, and the run sees that.
    let repair = json!({"metadata": {"labels": {label.as_str(): "yes"}}});
    app.cluster.api().merge_patch("/api/v1/nodes/node-0", &repair).ok();
    assert_eq!(end(&run.finish().expect(0))["outcome"], "succeeded");
}

fn a_failed_job_fails_the_run() {
    let app = App::new("job");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "migrate", "annotations": {"kapp.k14s.io/change-group": "example.com/migration"}},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/migrate:1"}]},
            },
        },
    });
    let mut after = config_map("after");
    after["metadata"]["annotations"] =
        json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/migration"});
    app.write(&[job, after]);
    let ran = app.apply(&[]).expect(21);
    let left = unfinished(&ran);
    assert_eq!(left[0].0, "Job/migrate failed", "{left:?}");
    assert!(left[0].1.contains("BackoffLimitExceeded"), "{left:?}");
    assert_eq!(left[1].0, "ConfigMap/after not applied", "{left:?}");
    assert!(left[1].1.contains("it waits for Job") && left[1].1.contains("migrate"), "{left:?}");
    assert!(!app.is_there("configmaps/after"));
    assert_eq!(app.lock(), Value::Null);

    // The next run sees the same without writing the Job again, and goes on once the cause is gone.
    app.apply(&[]).expect(21);
    app.write(&[config_map("after")]);
    app.apply(&[]).expect(0);
    assert!(app.is_there("configmaps/after") && !app.is_there("jobs/migrate"));
}

fn an_object_that_somebody_deletes_is_not_waited_for() {
    let app = App::new("deleted");
    app.write(&[stuck_deployment("web")]);
    let mut run = app.start(&[]);
    run.wait_for("the Deployment is waited for", is_waiting("web"));
    app.cluster.api().delete(&app.path("deployments/web")).ok();
    let ran = run.finish().expect(21);
    let expected = "somebody else deleted it while the run was waiting";
    assert_eq!(unfinished(&ran), [("Deployment/web failed".to_owned(), expected.to_owned())]);

    app.write(&[running_deployment("web")]);
    app.apply(&[]).expect(0);
}

fn what_is_not_to_be_waited_for_is_not() {
    let app = App::new("unwaited");
    app.write(&[stuck_deployment("web")]);
    let ran = app.apply(&["--wait=false"]).expect(0);
    assert_eq!(ran.events_of("wait.progress"), Vec::<Value>::new());

    let mut deployment = stuck_deployment("web");
    deployment["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-wait": ""});
    app.write(&[deployment]);
    let ran = app.apply(&[]).expect(0);
    assert_eq!(ran.events_of("wait.progress"), Vec::<Value>::new());
    // Without the annotation an unchanged object is waited for as well.
    app.write(&[stuck_deployment("web")]);
    app.apply(&["--wait=false"]).expect(0);
    let ran = app.apply(&["--wait-resource-timeout", "1s"]).expect(22);
    assert_eq!(unfinished(&ran)[0].0, "Deployment/web not ready");
}

fn an_interrupted_run_releases_the_app_and_the_next_one_goes_on() {
    let signals = [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM"), (Signal::HUP, 143, "SIGHUP")];
    for (signal, code, name) in signals {
        let app = App::new("interrupted");
        let mut web = stuck_deployment("web");
        web["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "example.com/web"});
        let mut after = config_map("after");
        after["metadata"]["annotations"] =
            json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/web"});
        app.write(&[web, after.clone()]);
        let mut run = app.start(&[]);
        run.wait_for("the Deployment is waited for", is_waiting("web"));
        run.signal(signal);
        let ran = run.finish_within(Duration::from_secs(5)).expect(code);
        let end = end(&ran);
        assert_eq!(
            (end["outcome"].as_str(), end["error"].as_str()),
            (Some("interrupted"), Some(&*format!("stopped by {name}")))
        );
        let left = unfinished(&ran);
        let states: Vec<&str> = left.iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(states, ["Deployment/web not ready", "ConfigMap/after not applied"]);
        assert_eq!(app.lock(), Value::Null, "the lock is released");

        let mut web = running_deployment("web");
        web["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "example.com/web"});
        app.write(&[web, after]);
        app.apply(&["--lock-wait", "0s"]).expect(0);
        assert!(app.is_there("configmaps/after"));
    }
}

fn signals_end_a_run_whose_server_hangs() {
    let cluster = TestCluster::start(&Options::default());
    let namespace = cluster.namespace("hanging");
    let place = Pushback::new().with("KUBECONFIG", cluster.kubeconfig_path());
    let annotations = json!({"kapp.k14s.io/exists": ""});
    let gate =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate", "annotations": annotations}});
    place.write("app.yaml", format!("{gate}\n---\n{}\n", config_map("first")));
    let arguments = ["apply", "-a", "shop", "-n", &namespace, "-f", "app.yaml", "--yes", "--output", "json"];
    let server = std::fs::read_to_string(cluster.directory().join("kube-apiserver.pid")).expect("the process id");
    let server = server.trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
    let hanging = || {
        let mut run = Running::start(place.command(&arguments));
        // Far enough that some time passes before the gate is asked for again.
        run.wait_for("the gate is waited for", |event| event["type"] == "retry" && event["attempt"] == 4);
        kill_process(server, Signal::STOP).expect("the API server runs");
        run.signal(Signal::INT);
        run.wait_for("the signal is heard", |event| event["outcome"] == "skipped");
        run
    };

    // The first signal gives the server some time for the record, but not for ever.
    let ran = hanging().finish_within(Duration::from_secs(30));
    kill_process(server, Signal::CONT).expect("the API server runs");
    let ran = ran.expect(130);
    assert_eq!(end(&ran)["outcome"], "interrupted");
    assert_eq!(ran.events_of("warning")[0]["code"], "record", "{}", ran.stdout);

    // The second one gives nothing any more. The run has something to write: awake, the server may have taken what the
    // first one sent it last, and left nothing to do.
    place.write("app.yaml", format!("{gate}\n---\n{}\n", config_map("second")));
    let run = hanging();
    run.signal(Signal::INT);
    let ran = run.finish_within(Duration::from_secs(30));
    kill_process(server, Signal::CONT).expect("the API server runs");
    assert_eq!(ran.expect(130).events_of("run.end"), Vec::<Value>::new());
}

fn the_time_limit_of_a_run_ends_it_wherever_it_is() {
    let app = App::new("limit");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "app:1"}]}});
    app.write(&[config_map("a"), pod]);
    let mut first = app.start(&["--wait-timeout=60s"]);
    first.wait_for("the wait", |line| line["type"] == "wait.progress");

    // While it waits for another run.
    let kept_out = app.apply(&["--timeout=2s", "--lock-wait=60s"]).expect(22);
    assert_eq!(end(&kept_out)["outcome"], "timed out");
    assert_eq!(end(&kept_out)["error"], "the run's time limit has passed before anything was written");
    first.signal(Signal::INT);
    first.finish().expect(130);

    // While it waits for an object: what it has written stays recorded, and the app is free.
    app.write(&[
        config_map("b"),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "app:1"}]}}),
    ]);
    let late = app.apply(&["--timeout=10s"]).expect(22);
    assert_eq!(end(&late)["error"], "the run's time limit (--timeout) has passed");
    assert_eq!(end(&late)["done"]["create"], 1);
    assert_eq!(unfinished(&late).len(), 1, "{:?}", unfinished(&late));
    let next = app.apply(&["--wait=false", "--lock-wait=0s", "--timeout=60s"]).expect(0);
    assert_eq!((&end(&next)["outcome"], &end(&next)["done"]["create"]), (&json!("unchanged"), &json!(0)));
}

fn a_claim_that_nobody_uses_is_ready_at_the_end() {
    let app = App::new("claims");
    let class = format!("late-{}", app.namespace);
    let storage_class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer",
    });
    app.cluster.api().apply(&storage_class).ok();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    app.write(&[claim.clone(), running_deployment("web")]);
    let ran = app.apply(&["--wait-timeout", "60s"]).expect(0);
    let place_of = |name: &str| {
        ran.events().iter().position(|event| event["type"] == "wait.done" && event["object"]["name"] == name)
    };
    assert!(place_of("data") > place_of("web"), "a consumer could have come until the end: {}", ran.stdout);

    // With a consumer it is waited for, and nobody provides it here.
    let mut deployment = running_deployment("web");
    deployment["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    app.write(&[claim, deployment]);
    let ran = app.apply(&["--wait-timeout", "5s"]).expect(22);
    let states: Vec<String> = unfinished(&ran).into_iter().map(|(what, _)| what).collect();
    assert_eq!(states, ["PersistentVolumeClaim/data not ready", "Deployment/web not ready"]);
    app.cluster.api().delete(&format!("/apis/storage.k8s.io/v1/storageclasses/{class}")).ok();
}

fn an_object_of_somebody_else_is_waited_for() {
    let app = App::new("elsewhere");
    // Neither the watch for the app's label nor its lists show this Deployment.
    let mut foreign = stuck_deployment("foreign");
    foreign["spec"]["paused"] = json!(true);
    foreign["metadata"]["annotations"] =
        json!({"kapp.k14s.io/exists": "", "kapp.k14s.io/change-group": "example.com/foreign"});
    let mut after = config_map("after");
    after["metadata"]["annotations"] =
        json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/foreign"});
    app.write(&[foreign, after]);
    let mut run = app.start(&[]);
    run.wait_for("it is missed", |event| {
        event["type"] == "retry"
            && event["reason"].as_str().is_some_and(|reason| reason.contains("kapp.k14s.io/exists"))
    });
    assert!(!app.is_there("configmaps/after"));
    let mut created = running_deployment("foreign");
    created["metadata"]["namespace"] = json!(app.namespace);
    app.cluster.api().apply(&created).ok();
    run.finish().expect(0);
    assert!(app.is_there("configmaps/after"));
    let foreign = app.get("deployments/foreign");
    assert_eq!(foreign["metadata"]["labels"], Value::Null, "it is not the app's");
}

fn what_may_not_be_listed_is_looked_at_one_by_one() {
    let app = App::new("unlisted");
    let app = app.by_user(
        "one-by-one",
        &json!([
            rights("", "configmaps", &["get", "list", "create", "patch", "delete"]),
            rights("apps", "deployments", &["get", "create", "patch", "delete"]),
        ]),
    );
    app.write(&[running_deployment("web")]);
    let ran = app.apply(&["--wait-timeout", "60s"]).expect(0);
    assert!(ran.events_of("wait.done").iter().any(|event| event["outcome"] == "ok"), "{}", ran.stdout);
    // Somebody else's deletion is seen that way too.
    app.write(&[stuck_deployment("web")]);
    let mut run = app.start(&[]);
    run.wait_for("the new Pod is waited for", |event| {
        is_waiting("web")(event) && event["message"].as_str().is_some_and(|message| !message.contains("generation"))
    });
    app.cluster.api().delete(&app.path("deployments/web")).ok();
    run.finish().expect(21);
}

fn a_failing_condition_fails_only_after_its_time() {
    let app = App::new("rules");
    let group = format!("{}.example.com", app.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let config = json!({
        "apiVersion": "kapp.k14s.io/v1alpha1", "kind": "Config",
        "waitRules": [{
            "conditionMatchers": [
                {"type": "Ready", "status": "False", "failure": true, "timeout": "3s"},
                {"type": "Ready", "status": "True", "success": true},
            ],
            "resourceMatchers": [{"apiVersionKindMatcher": {"apiVersion": format!("{group}/v1"), "kind": "Widget"}}],
        }],
    });
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1},
    });
    app.write(&[config, definition, widget]);
    let mut run = app.start(&[]);
    run.wait_for("the Widget is waited for", is_waiting("one"));
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/one/status", app.namespace);
    let set = |status: &str| {
        let condition = json!({"type": "Ready", "status": status, "reason": "Test", "message": "no disk"});
        app.cluster.api().merge_patch(&path, &json!({"status": {"conditions": [condition]}})).ok();
    };
    // It fails, recovers for a moment, and fails again: each time the clock starts anew.
    set("False");
    run.wait_for("the condition is told", |event| {
        event["type"] == "wait.progress" && event["message"].as_str().is_some_and(|message| message.contains("no disk"))
    });
    set("Unknown");
    run.wait_for("the recovery is told", |event| {
        event["type"] == "wait.progress"
            && event["message"].as_str().is_some_and(|message| message.starts_with("no failing"))
    });
    set("False");
    let ran = run.finish().expect(21);
    let [(what, why)] = &unfinished(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(what, "Widget/one failed");
    assert!(why.contains("no disk") && why.ends_with("for 3 s"), "{why}");

    // The cause is repaired, and the unchanged object is judged by the next run.
    set("True");
    app.apply(&[]).expect(0);
    app.place.run(&app.arguments("delete", &[])).expect(0);
}
