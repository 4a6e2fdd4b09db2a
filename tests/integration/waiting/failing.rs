//! Rollouts that fail: what ends each of them, and what its last lines say.

use std::time::Duration;

use serde_json::{Value, json};

use super::{App, SOON, running_deployment, stuck_deployment};
use crate::support::{Ran, Running, TestCase, cases, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: an_image_that_is_never_pulled_ends_the_rollout_once_nothing_moves,
        Controllers: what_is_below_an_object_does_not_count_where_its_annotation_says_so,
        Controllers: a_crash_loop_ends_the_rollout_and_the_exit_code_of_the_container_is_told,
        Controllers: a_pod_that_asks_for_more_than_any_node_has_is_waited_for_to_the_end,
        Controllers: pods_that_a_quota_refuses_end_the_rollout_with_the_words_of_the_quota,
        Controllers: what_a_stateful_set_may_not_create_is_told_by_its_events,
        Controllers: pods_that_a_quota_refuses_end_the_wait_for_each_kind,
        Controllers: a_missing_config_map_ends_the_rollout_and_a_missing_volume_is_told_by_its_events,
        Controllers: a_claim_without_a_storage_class_is_named_with_the_pod_that_waits_for_it,
        Controllers: a_job_that_used_up_its_attempts_is_told_with_the_exit_code_of_its_pods,
        Controllers: an_image_name_that_is_wrong_ends_the_wait_long_before_its_time,
    ]
}

/// Starts a run that writes a log.
fn start(app: &App, more: &[&str]) -> Running {
    let mut arguments =
        vec!["apply", "-a", "shop", "-n", &app.namespace, "-f", "app.yaml", "--yes", "--output", "plain"];
    arguments.extend(more);
    Running::start(app.place.command(&arguments))
}

/// What a run says last: from its error on, times and generated names taken out.
fn last_lines(ran: &Ran) -> String {
    let (_, tail) = ran.stderr.split_once("\nerror: ").unwrap_or_else(|| panic!("no error: {}", ran.stderr));
    if std::env::var_os("PUSHBACK_SHOW").is_some() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "exit {}\nerror: {tail}", ran.code);
    }
    tail.to_owned()
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not said in:\n{text}");
    }
}

/// The test is the kubelet of the app's Pods, which no node has taken: it says what their containers wait for.
fn set_status(app: &App, pod: &Value, status: &Value) {
    let name = pod["metadata"]["name"].as_str().expect("a name");
    app.cluster.api().merge_patch(&app.path(&format!("pods/{name}/status")), &json!({"status": status})).ok();
}

fn container(rest: &Value) -> Value {
    let mut container = json!({
        "name": "main", "image": "registry.example/web:1", "imageID": "", "ready": false, "restartCount": 0,
    });
    for (key, value) in rest.as_object().cloned().unwrap_or_default() {
        container[key] = value;
    }
    json!({"conditions": [{"type": "PodScheduled", "status": "True"}], "containerStatuses": [container]})
}

fn waiting(reason: &str, message: &str) -> Value {
    container(&json!({"state": {"waiting": {"reason": reason, "message": message}}}))
}

fn an_image_that_is_never_pulled_ends_the_rollout_once_nothing_moves() {
    let app = App::new("image");
    app.write(&[stuck_deployment("web")]);
    let run = start(&app, &["--wait-failure-timeout", "3s"]);
    set_status(&app, &app.pod(), &waiting("ImagePullBackOff", "Back-off pulling image \"registry.example/web:1\""));
    let tail = last_lines(&run.finish().expect(21));
    assert_says(
        &tail,
        &[
            "an object has failed and will not become ready\n  failed  Deployment  ",
            "0/1 available; Pods have been failing for 3 s with no progress (--wait-failure-timeout)\n",
            ": ImagePullBackOff (image registry.example/web:1)\n",
            ", but 1 failed: 1 created.\n",
        ],
    );
}

fn what_is_below_an_object_does_not_count_where_its_annotation_says_so() {
    let app = App::new("image");
    let mut deployment = stuck_deployment("web");
    deployment["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-associated-resources-wait": ""});
    app.write(&[deployment]);
    let run = start(&app, &["--wait-failure-timeout", "1s", "--wait-timeout", "6s"]);
    set_status(&app, &app.pod(), &waiting("ImagePullBackOff", "Back-off pulling image \"registry.example/web:1\""));
    let tail = last_lines(&run.finish().expect(22));
    assert!(!tail.contains("ImagePullBackOff"), "{tail}");
}

fn a_crash_loop_ends_the_rollout_and_the_exit_code_of_the_container_is_told() {
    let app = App::new("crash");
    app.write(&[stuck_deployment("web")]);
    let run = start(&app, &["--wait-failure-timeout", "3s"]);
    let crashed = json!({
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1m20s restarting failed container"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    });
    set_status(&app, &app.pod(), &container(&crashed));
    let tail = last_lines(&run.finish().expect(21));
    assert_says(&tail, &["  failed  Deployment  ", ": CrashLoopBackOff (OOMKilled, exit 137, restart 4)\n"]);
}

fn a_pod_that_asks_for_more_than_any_node_has_is_waited_for_to_the_end() {
    let app = App::new("hungry");
    let mut deployment = running_deployment("web");
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "5000"}});
    app.write(&[deployment]);
    app.apply(&["--wait=false"]).expect(0);
    wait_until("the scheduler has found no node", SOON, || {
        let pods = app.cluster.api().list(&app.path("pods"));
        pods.iter().any(|pod| pod["status"]["conditions"].to_string().contains("Insufficient cpu")).then_some(())
    });
    // A failure that ends other rollouts does not end this one: nodes may come.
    let run = start(&app, &["--wait-timeout", "10s", "--wait-failure-timeout", "1s"]);
    let tail = last_lines(&run.finish().expect(22));
    assert_says(
        &tail,
        &[
            "waiting timed out\n  waiting  Deployment  ",
            ": Unschedulable: 0/",
            "Insufficient cpu",
            ", but 1 waiting: nothing written.\n",
        ],
    );
}

fn pods_that_a_quota_refuses_end_the_rollout_with_the_words_of_the_quota() {
    let app = App::new("quota");
    quota(&app);
    app.write(&[running_deployment("web")]);
    let run = start(&app, &["--wait-failure-timeout", "3s", "--preflight=none"]);
    let tail = last_lines(&run.finish().expect(21));
    assert_says(&tail, &["  failed  Deployment  ", "FailedCreate: pods \"web-", "exceeded quota: none"]);
}

/// No Pod may be created; waits until the server knows.
fn quota(app: &App) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"namespace": app.namespace, "name": "none"}, "spec": {"hard": {"pods": "0"}},
    });
    app.cluster.api().apply(&quota).ok();
    let path = app.path("resourcequotas/none");
    wait_until("the quota is counted", SOON, || {
        (app.cluster.api().get(&path).ok()["status"]["hard"]["pods"] == "0").then_some(())
    });
}

fn what_a_stateful_set_may_not_create_is_told_by_its_events() {
    let app = App::new("refused");
    quota(&app);
    let mut set = running_deployment("web");
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!("web");
    app.write(&[set]);
    // It has no condition for that. The first events are asked for after 5 seconds.
    let mut run = app.start(&["--wait-timeout", "5m", "--preflight=none"]);
    run.wait_for("the quota is named", |event| {
        event["type"] == "wait.progress" && event["reasons"].to_string().contains("exceeded quota: none")
    });
    // The quota goes, and the rollout comes to its end.
    app.cluster.api().delete(&app.path("resourcequotas/none")).ok();
    run.finish().expect(0);
}

fn pods_that_a_quota_refuses_end_the_wait_for_each_kind() {
    let app = App::new("refused");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"requests.memory": "1Gi"}},
        "metadata": {"namespace": app.namespace, "name": "memory-must-be-requested"},
    });
    app.cluster.api().apply(&quota).ok();
    wait_until("the quota is counted", SOON, || {
        let quota = app.cluster.api().get(&app.path("resourcequotas/memory-must-be-requested")).ok();
        quota["status"]["hard"].is_object().then_some(())
    });
    let template = |policy: &str| {
        json!({"metadata": {"labels": {"app": "w"}}, "spec": {
            "restartPolicy": policy, "containers": [{"name": "c", "image": "registry.example/w:1"}]}})
    };
    let selector = json!({"matchLabels": {"app": "w"}});
    let object = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": kind.to_lowercase()}, "spec": spec});
    let workload = json!({"selector": selector, "template": template("Always")});
    let mut set = workload.clone();
    set["serviceName"] = json!("w");
    app.write(&[
        object("apps/v1", "StatefulSet", set),
        object("apps/v1", "DaemonSet", workload.clone()),
        object("batch/v1", "Job", json!({"template": template("Never")})),
        object("apps/v1", "Deployment", workload),
    ]);
    let end = ["--wait-failure-timeout", "3s", "--exit-early-on-wait-error=false", "--preflight=none"];
    let ran = app.apply(&end).expect(21);
    let mut left = super::unfinished(&ran);
    left.sort();
    let names: Vec<&str> = left.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "DaemonSet/daemonset failed",
            "Deployment/deployment failed",
            "Job/job failed",
            "StatefulSet/statefulset failed"
        ]
    );
    for (name, said) in &left {
        // The end of the reason is what matters.
        assert!(said.contains("must specify requests.memory for: c") && !said.contains('…'), "{name}: {said}");
    }
}

fn a_missing_config_map_ends_the_rollout_and_a_missing_volume_is_told_by_its_events() {
    let app = App::new("missing");
    app.write(&[stuck_deployment("web")]);
    let mut run = app.start(&["--wait-failure-timeout", "3s"]);
    run.wait_for("it is waited for", super::is_waiting("web"));
    let pod = app.pod();
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedMount",
        "message": "MountVolume.SetUp failed for volume \"settings\" : configmap \"settings\" not found",
        "metadata": {"namespace": app.namespace, "name": "web.1"},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": app.namespace,
            "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"],
        },
    });
    app.cluster.api().post(&app.path("events"), &event).ok();
    set_status(&app, &pod, &waiting("ContainerCreating", ""));
    run.wait_for("the event is told", |event| {
        event["type"] == "wait.progress"
            && event["reasons"].to_string().contains("configmap \\\"settings\\\" not found")
    });

    set_status(&app, &pod, &waiting("CreateContainerConfigError", "configmap \"settings\" not found"));
    let ran = run.finish().expect(21);
    let left = super::unfinished(&ran);
    assert_eq!(left[0].0, "Deployment/web failed", "{left:?}");
    assert_says(&left[0].1, &["CreateContainerConfigError (configmap \"settings\" not found)"]);
    // How long it was waited for is told as well.
    assert!(super::end(&ran)["unfinished"][0]["elapsed"].as_u64().is_some_and(|millis| millis >= 3_000));

    let run = start(&app, &["--wait-failure-timeout", "3s"]);
    let tail = last_lines(&run.finish().expect(21));
    assert_says(
        &tail,
        &["  failed  Deployment  ", ": CreateContainerConfigError (configmap \"settings\" not found)\n"],
    );
}

fn a_claim_without_a_storage_class_is_named_with_the_pod_that_waits_for_it() {
    let app = App::new("claim");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let mut deployment = running_deployment("web");
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    app.write(&[claim, deployment]);
    app.apply(&["--wait=false"]).expect(0);
    wait_until("it is known that nothing can be bound", SOON, || {
        let said = |path: &str, words: &str| {
            app.cluster.api().list(&app.path(path)).iter().any(|object| object.to_string().contains(words))
        };
        (said("events", "FailedBinding") && said("pods", "unbound immediate")).then_some(())
    });
    let run = start(&app, &["--wait-timeout", "20s"]);
    let tail = last_lines(&run.finish().expect(22));
    assert_says(
        &tail,
        &[
            "  waiting  PersistentVolumeClaim  ",
            "FailedBinding: no persistent volumes available for this claim and no storage class is set\n",
            "  waiting  Deployment ",
            "unbound immediate PersistentVolumeClaims",
            ", but 2 waiting: nothing written.\n",
        ],
    );
}

fn a_job_that_used_up_its_attempts_is_told_with_the_exit_code_of_its_pods() {
    let app = App::new("job");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {
                    "labels": {"pod-container-running-failed.stage.kwok.x-k8s.io": "true"},
                    "annotations": {"pod-container-running-failed.stage.kwok.x-k8s.io/exit-code": "3"},
                },
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/migrate:1"}]},
            },
        },
    });
    app.write(&[job]);
    let tail = last_lines(&start(&app, &[]).finish().expect(21));
    assert_says(&tail, &["  failed  Job  ", "BackoffLimitExceeded", ": failed: container main ", "exit 3"]);
}

fn an_image_name_that_is_wrong_ends_the_wait_long_before_its_time() {
    let app = App::new("name");
    app.write(&[stuck_deployment("web")]);
    // Neither limit is near: it is known that this never heals.
    let run = start(&app, &["--wait-failure-timeout", "0s", "--wait-timeout", "15m"]);
    set_status(&app, &app.pod(), &waiting("InvalidImageName", "couldn't parse image name \"web:UPPER:1\""));
    let tail = last_lines(&run.finish_within(Duration::from_secs(120)).expect(21));
    assert_says(&tail, &[": InvalidImageName: couldn't parse image name \"web:UPPER:1\"\n"]);
}
