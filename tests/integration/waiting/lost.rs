//! What a watch does not show, shows wrongly, or shows in another way than one would think.

use std::time::Duration;

use serde_json::{Value, json};

use super::{App, SOON, config_map, end, is_waiting, rights, running_deployment, stuck_deployment, unfinished};
use crate::support::proxy::{Fault, FaultProxy, Verb, WatchFault, matching};
use crate::support::{Pushback, TestCase, cases, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: an_object_that_loses_the_apps_label_is_not_taken_for_deleted,
        Controllers: a_held_object_that_loses_the_apps_label_is_not_taken_for_gone,
        Controllers: an_object_that_is_created_anew_by_somebody_else_is_said_to_be,
        Controllers: a_job_that_removes_itself_has_ended_as_it_ended,
        Controllers: an_evicted_pod_fails_where_nobody_replaces_it,
        Controllers: what_may_not_be_watched_is_listed_again_and_again,
        Controllers: a_watch_that_fails_in_any_way_holds_up_nothing,
        Controllers: a_webhook_configuration_is_ready_once_somebody_answers_for_it,
        ApiServer: a_write_that_hangs_does_not_outlast_the_run_for_long,
        ApiServer: time_that_is_up_before_anything_is_waited_for_is_no_defect,
    ]
}

fn without_label(app: &App, path: &str) {
    let patch = json!({"metadata": {"labels": {"kapp.k14s.io/app": null}}});
    app.cluster.api().merge_patch(&app.path(path), &patch).ok();
}

/// Lets the Pods of [`stuck_deployment`] run.
fn unstick(app: &App, name: &str) {
    let selector = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
    app.cluster.api().merge_patch(&app.path(&format!("deployments/{name}")), &selector).ok();
}

fn an_object_that_loses_the_apps_label_is_not_taken_for_deleted() {
    let app = App::new("label");
    app.write(&[stuck_deployment("web")]);
    let mut run = app.start(&["--wait-timeout", "5m"]);
    run.wait_for("the Deployment is waited for", is_waiting("web"));
    without_label(&app, "deployments/web");
    unstick(&app, "web");
    run.finish().expect(0);
}

fn a_held_object_that_loses_the_apps_label_is_not_taken_for_gone() {
    let app = App::new("label");
    app.write(&[config_map("kept"), config_map("held")]);
    app.apply(&[]).expect(0);
    let held = |finalizers: &[&str]| {
        app.cluster
            .api()
            .merge_patch(&app.path("configmaps/held"), &json!({"metadata": {"finalizers": finalizers}}))
            .ok();
    };
    held(&["example.com/one", "example.com/two"]);
    app.write(&[config_map("kept")]);
    let mut run = app.start(&[]);
    let going = |event: &Value| event["type"] == "wait.progress" && event["wanted"] == "deleted";
    run.wait_for("its deletion is waited for", going);
    without_label(&app, "configmaps/held");
    // What it waits for is told anew, so the run has seen the object since it lost the label.
    held(&["example.com/two"]);
    run.wait_for("it is still waited for", |event| going(event) && event["message"] == "finalizer example.com/two");
    held(&[]);
    run.finish().expect(0);
    assert!(!app.is_there("configmaps/held"));
}

fn an_object_that_is_created_anew_by_somebody_else_is_said_to_be() {
    let app = App::new("anew");
    let proxy = FaultProxy::start(app.cluster.kubeconfig_path());
    let app = App { place: Pushback::with_kubeconfig(&proxy.kubeconfig()), ..app };
    app.write(&[stuck_deployment("web")]);
    let mut run = app.start(&[]);
    run.wait_for("the Deployment is waited for", is_waiting("web"));
    let mut successor = stuck_deployment("web");
    successor["metadata"]["namespace"] = json!(app.namespace);
    let api = app.cluster.api();
    // Before the run looks whether the one that it waits for is really gone, another one has its name.
    proxy.before(matching(Verb::Get, "deployments").named("web").first(1), move |_| {
        api.apply(&successor).ok();
    });
    api.delete(&app.path("deployments/web")).ok();
    let ran = run.finish().expect(21);
    let [(what, why)] = &unfinished(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(what, "Deployment/web failed");
    let uid = app.get("deployments/web")["metadata"]["uid"].take();
    let uid = uid.as_str().expect("a uid");
    assert_eq!(why, &format!("somebody else deleted it while the run was waiting, and created it again (uid {uid})"));
}

fn a_job_that_removes_itself_has_ended_as_it_ended() {
    let app = App::new("ttl");
    let job = |name: &str, label: Value| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {
                "backoffLimit": 0, "ttlSecondsAfterFinished": 0,
                "template": {
                    "metadata": {"labels": label},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/job:1"}]},
                },
            },
        })
    };
    app.write(&[job("good", json!({}))]);
    let ran = app.apply(&["--wait-timeout", "5m"]).expect(0);
    assert!(ran.events_of("wait.done").iter().any(|event| event["outcome"] == "ok"), "{}", ran.stdout);
    wait_until("the Job has removed itself", SOON, || (!app.is_there("jobs/good")).then_some(()));

    app.write(&[job("bad", json!({"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}))]);
    let ran = app.apply(&["--wait-timeout", "5m"]).expect(21);
    let left = unfinished(&ran);
    assert_eq!(left[0].0, "Job/bad failed", "{left:?}");
    assert!(left[0].1.contains("BackoffLimitExceeded"), "{left:?}");
}

fn an_evicted_pod_fails_where_nobody_replaces_it() {
    let app = App::new("evicted");
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "single"},
        "spec": stuck_deployment("x")["spec"]["template"]["spec"],
    });
    pod["spec"]["restartPolicy"] = json!("Always");
    app.write(&[pod, stuck_deployment("web")]);
    let mut run = app.start(&["--exit-early-on-wait-error=false", "--wait-timeout", "5m"]);
    run.wait_for("the Pod is waited for", is_waiting("single"));
    run.wait_for("the Deployment is waited for", is_waiting("web"));
    let evicted =
        json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}});
    let replaced = wait_until("the Deployment has a Pod", SOON, || {
        let pods = app.cluster.api().list(&app.path("pods"));
        pods.into_iter().map(|pod| pod["metadata"]["name"].clone()).find(|name| name != "single")
    });
    for name in ["single", replaced.as_str().expect("a name")] {
        app.cluster.api().merge_patch(&app.path(&format!("pods/{name}/status")), &evicted).ok();
    }
    unstick(&app, "web");
    let ran = run.finish().expect(21);
    let left = unfinished(&ran);
    let [(what, why)] = &left[..] else { panic!("the Deployment comes up again: {left:?}") };
    assert_eq!(what, "Pod/single failed");
    assert!(why.contains("Evicted: The node was low on resource: memory."), "{why}");
}

fn what_may_not_be_watched_is_listed_again_and_again() {
    let app = App::new("unwatched");
    let all = ["get", "list", "create", "patch", "delete"];
    let app = app.by_user("narrow", &json!([rights("", "configmaps", &all), rights("apps", "deployments", &all)]));
    app.write(&[running_deployment("web")]);
    let ran = app.apply(&["--wait-timeout", "5m"]).expect(0);
    // Without its Pods nothing can be said about causes, and that is said once.
    let notes = ran.events_of("diagnostic");
    let unknown: Vec<_> = notes.iter().filter(|event| event["code"] == "reasons-unknown").collect();
    assert_eq!(unknown.len(), 1, "{}", ran.stdout);
    assert!(unknown[0]["message"].to_string().contains(&app.namespace));
    // Somebody else's deletion is seen that way too.
    app.write(&[stuck_deployment("web")]);
    let mut run = app.start(&[]);
    run.wait_for("the new Pod is waited for", |event| {
        is_waiting("web")(event) && event["message"].as_str().is_some_and(|message| !message.contains("generation"))
    });
    app.cluster.api().delete(&app.path("deployments/web")).ok();
    run.finish().expect(21);
}

fn a_watch_that_fails_in_any_way_holds_up_nothing() {
    let faults = [
        WatchFault::End,
        WatchFault::Break,
        WatchFault::Error(410),
        WatchFault::Error(500),
        WatchFault::Repeat,
        WatchFault::Reorder,
        WatchFault::Silence,
    ];
    let app = App::new("watches");
    let proxy = FaultProxy::start(app.cluster.kubeconfig_path());
    // Side by side: one of them takes half a minute until it is clear that nothing more comes.
    let runs: Vec<_> = (0..)
        .zip(faults)
        .map(|(number, fault)| {
            let name = format!("web-{number}");
            let label = format!("fault-{number}");
            let place = Pushback::with_kubeconfig(&proxy.kubeconfig_of(&label));
            // The first watches go wrong from their first event on, all later ones after some.
            for resource in ["deployments", "replicasets", "pods"] {
                let watches = || matching(Verb::Watch, resource).from(&label);
                proxy.on(watches().first(1), Fault::watch(fault, 0));
                if fault != WatchFault::Silence {
                    proxy.on(watches().after_first(1), Fault::watch(fault, 3));
                }
            }
            place.write("app.yaml", format!("{}\n", running_deployment(&name)));
            let arguments = [
                "apply",
                "-a",
                &name,
                "-n",
                &app.namespace,
                "-f",
                "app.yaml",
                "--yes",
                "--output",
                "json",
                "--wait-timeout",
                "5m",
            ];
            let run = crate::support::Running::start(place.command(&arguments));
            (place, run, fault)
        })
        .collect();
    for (_place, run, fault) in runs {
        let ran = run.finish_within(Duration::from_secs(300));
        assert_eq!(ran.code, 0, "{fault:?}: {}\n{}", ran.stdout, ran.stderr);
        assert_eq!(end(&ran)["outcome"], "succeeded", "{fault:?}");
    }
}

fn a_webhook_configuration_is_ready_once_somebody_answers_for_it() {
    let app = App::new("hook");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"selector": {"name": "hook"}, "ports": [{"port": 443}]},
    });
    let name = format!("{}.example.com", app.namespace);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"service": {"namespace": app.namespace, "name": "hook"}},
            // Nobody ever asks it.
            "rules": [{"apiGroups": [name], "apiVersions": ["v1"], "resources": ["nothing"], "operations": ["CREATE"]}],
        }],
    });
    // A new workload would have to be ready before the configuration is written.
    app.write(&[stuck_deployment("hook")]);
    app.apply(&["--wait=false"]).expect(0);
    app.write(&[service, stuck_deployment("hook"), configuration.clone()]);
    let mut run = app.start(&["--wait-timeout", "5m"]);
    let told = run.wait_for("it is waited for", |event| {
        event["type"] == "wait.progress" && event["object"]["kind"] == "ValidatingWebhookConfiguration"
    });
    let expected = format!("no endpoint of Service {}/hook is ready yet", app.namespace);
    assert_eq!(told["message"], *expected);
    unstick(&app, "hook");
    let ran = run.finish().expect(0);
    let is_ready =
        |event: &Value| event["object"]["kind"] == "ValidatingWebhookConfiguration" && event["outcome"] == "ok";
    assert!(ran.events_of("wait.done").iter().any(is_ready), "{}", ran.stdout);
    app.place.run(&app.arguments("delete", &[])).expect(0);
}

fn a_write_that_hangs_does_not_outlast_the_run_for_long() {
    let app = App::new("hangs");
    let proxy = FaultProxy::start(app.cluster.kubeconfig_path());
    proxy.on(matching(Verb::Apply, "configmaps").named("stuck"), Fault::stall());
    let place = Pushback::with_kubeconfig(&proxy.kubeconfig());
    let app = App { place, ..app };
    app.write(&[config_map("first"), config_map("stuck")]);
    // By itself such a request is repeated for two minutes.
    let ran = app.start(&["--wait-timeout", "3s"]).finish_within(Duration::from_secs(60)).expect(20);
    assert_eq!(unfinished(&ran)[0].0, "ConfigMap/stuck unknown", "{}", ran.stdout);
    assert_eq!((end(&ran)["outcome"].as_str(), app.lock()), (Some("timed out"), Value::Null));
    proxy.clear();
    app.apply(&[]).expect(0);
    assert!(app.is_there("configmaps/stuck"));
}

fn time_that_is_up_before_anything_is_waited_for_is_no_defect() {
    let app = App::new("late");
    let mut missing = config_map("missing");
    missing["metadata"]["annotations"] = json!({"kapp.k14s.io/exists": ""});
    missing.as_object_mut().expect("an object").remove("data");
    app.write(&[missing]);
    let ran = app.apply(&["--wait-timeout", "3s"]).expect(22);
    let left = unfinished(&ran);
    assert_eq!(left[0].0, "ConfigMap/missing not ready", "{left:?}");
    assert!(left[0].1.contains("kapp.k14s.io/exists"), "{left:?}");
    assert_eq!(app.lock(), Value::Null);
}
