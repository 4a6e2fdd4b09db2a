//! The logs of an app's Pods: from a server that answers as a kubelet does, through the real API server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::TestApp;
use crate::support::https::{HttpsServer, Request};
use crate::support::poll::wait_until;
use crate::support::pushback::{Pushback, Ran};
use crate::support::running::Running;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_logs_of_all_containers_are_shown_without_secrets_and_control_characters,
        ApiServer: a_log_is_followed_to_its_end_and_a_new_pod_too,
        ApiServer: what_a_failing_container_wrote_last_stands_with_its_failure,
        ApiServer: without_the_right_to_read_logs_the_failure_says_so_and_stays_the_same,
        ApiServer: logs_of_pods_that_ask_for_it_are_told_while_the_app_is_applied,
        ApiServer: kapp_tells_logs_between_its_lines,
        Nothing: a_wrong_annotation_about_logs_is_an_error_with_its_place,
        Nothing: a_folder_has_no_logs,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(name: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(name))
}

fn logs(app: &TestApp, arguments: &[&str]) -> Ran {
    app.pushback.run(&[&["logs", "-a", "shop", "-n", &app.namespace][..], arguments].concat()).expect(0)
}

/// A node whose kubelet is a server of the test; it is gone when this value is dropped.
struct Node {
    name: String,
    asked: Arc<Mutex<Vec<String>>>,
    _kubelet: HttpsServer,
}

impl Node {
    fn start(name: &str, log: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        let kubelet = HttpsServer::start(&[], move |request: &Request| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.target.clone());
            log(&request.target)
        });
        // Nothing is scheduled there, no DaemonSet either: other tests use the same cluster.
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {
            "unschedulable": true, "taints": [{"key": "logs.test/only", "effect": "NoSchedule"}]}});
        let made = api().post("/api/v1/nodes", &node);
        assert_eq!(made.status, 201, "{}", made.body);
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port()}}}});
        let told = api().merge_patch(&format!("/api/v1/nodes/{name}/status"), &status);
        assert_eq!(told.status, 200, "{}", told.body);
        Self { name: name.to_owned(), asked, _kubelet: kubelet }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        api().delete(&format!("/api/v1/nodes/{}", self.name));
    }
}

fn pod(name: &str, node: &str, containers: &[&str]) -> String {
    let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name, "image": "app:1"})).collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": containers}});
    format!("---\n{pod}\n")
}

fn the_logs_of_all_containers_are_shown_without_secrets_and_control_characters() {
    let app = app("logs");
    let node = Node::start(&format!("{}-node", app.namespace), |target| match target {
        target if target.contains("/side") => (400, json!("container \"side\" is waiting to start")),
        _ => (200, json!("  indented\npassword is hunter2-and-more\n\u{1b}[2Jcleared\nlast")),
    });
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: hunter2-and-more}\n";
    let web = pod("web", &node.name, &["main", "side"]);
    app.apply(&format!("{secret}{web}"), &["--wait=false"]).expect(0);
    insta::assert_snapshot!(logs(&app, &["--lines=3"]).stdout.trim_end(), @r#"
    # starting tailing 'web > main' logs
    web > main |   indented
    web > main | password is ***
    web > main | \u{1b}[2Jcleared
    web > main | last
    # ending tailing 'web > main' logs
    # no logs of 'web > side': container "side" is waiting to start
    "#);
    let asked = node.asked.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    assert!(asked.contains("/web/main?tailLines=3"), "{asked}");
    let one = logs(&app, &["-c", "main", "--container-tag=false", "--lines=-1"]).stdout;
    assert!(one.contains("\n  indented\n") && !one.contains("side"), "{one}");
    let lines = logs(&app, &["-c", "main", "-o", "json"]).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines.len(), &lines[0]["line"], &lines[0]["pod"]), (4, &json!("  indented"), &json!("web")));
}

fn a_log_is_followed_to_its_end_and_a_new_pod_too() {
    let app = app("follow");
    let node = Node::start(&format!("{}-node", app.namespace), |target| {
        let pod = if target.contains("/first/") { "first" } else { "second" };
        (200, json!(format!("hello from {pod}\n")))
    });
    let (first, second) = (pod("first", &node.name, &["main"]), pod("second", &node.name, &["main"]));
    app.apply(&first, &["--wait=false"]).expect(0);
    begin(&app, "first");
    let follow = ["logs", "-a", "shop", "-n", &app.namespace, "--follow", "-o", "json"];
    let mut followed = Running::start(app.pushback.command(&follow));
    followed.wait_for("the first log", |line| line["line"] == "hello from first");
    app.apply(&format!("{first}{second}"), &["--wait=false"]).expect(0);
    begin(&app, "second");
    followed.wait_for("the second log", |line| line["line"] == "hello from second");
    assert!(!followed.has_ended());
}

/// The kubelet says that the container runs.
fn begin(app: &TestApp, pod: &str) {
    let path = format!("/api/v1/namespaces/{}/pods/{pod}", app.namespace);
    let status = json!({"status": {"containerStatuses": [{"name": "main", "image": "app:1", "imageID": "", "ready": true,
        "restartCount": 0, "state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}}]}});
    let told = api().merge_patch(&format!("{path}/status"), &status);
    assert_eq!(told.status, 200, "{}", told.body);
}

fn a_folder_has_no_logs() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    pushback.run(&["apply", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--yes"]).expect(0);
    let told = pushback.run(&["logs", "-a", "shop", "--cluster", "dir:live"]).expect(1).complaints();
    insta::assert_snapshot!(told, @r"
    error: dir:live has no Pods, and no logs
    hint: name an API server: --cluster kube
    ");
}

/// The status of a Pod whose container keeps crashing.
fn crash(app: &TestApp, pod: &str) {
    let path = format!("/api/v1/namespaces/{}/pods/{pod}", app.namespace);
    let status = json!({"status": {"phase": "Running", "containerStatuses": [{"name": "main", "image": "app:1",
        "imageID": "", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}});
    let told = api().merge_patch(&format!("{path}/status"), &status);
    assert_eq!(told.status, 200, "{}", told.body);
}

fn what_a_failing_container_wrote_last_stands_with_its_failure() {
    let app = app("failing");
    let node = Node::start(&format!("{}-node", app.namespace), |target| match target {
        target if target.contains("previous=true") => {
            (200, json!("starting\npassword is hunter2-and-more\n\u{1b}[2Jpanic: no database\n"))
        }
        _ => (200, json!("of a run that has just begun\n")),
    });
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: hunter2-and-more}\n";
    let input = format!("{secret}{}", pod("web", &node.name, &["main"]));
    app.apply(&input, &["--wait=false"]).expect(0);
    crash(&app, "web");
    let short = "--wait-timeout=2s";
    let end = app.apply(&input, &[short, "--failure-log-lines=2"]).expect(22).end();
    assert_eq!(
        end["unfinished"][0]["containers"],
        json!([{"namespace": app.namespace, "pod": "web", "container": "main", "reason": "CrashLoopBackOff",
            "exitCode": 3, "previous": true, "lines": ["password is ***", "\u{1b}[2Jpanic: no database"]}])
    );
    let asked = node.asked.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    assert!(asked.contains("previous=true") && asked.contains("tailLines=2"), "{asked}");

    let apply = ["apply", "-a", "shop", "-n", &app.namespace, "-f", "app.yaml", "--yes", short];
    let told = app.pushback.run(&apply).expect(22);
    let lines: Vec<&str> = told.stderr.lines().skip_while(|line| !line.contains("log of")).take(4).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
          log of pod web, container main (CrashLoopBackOff, exit 3, before its last restart):
            | starting
            | password is ***
            | \u{1b}[2Jpanic: no database
    ");
    let none = app.pushback.run(&[&apply[..], &["--failure-log-lines=0"]].concat()).expect(22);
    assert!(!none.stderr.contains("log of"), "{}", none.stderr);

    // What kapp does not print is not among what scripts read.
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp");
    kapp.write("app.yaml", &input);
    let told = kapp.run(&["deploy", "-a", "shop", "-n", &app.namespace, "-f", "app.yaml", "--yes", short]).expect(1);
    assert!(told.stderr.contains("\n  | password is ***\n"), "{}", told.stderr);
    assert!(!told.stdout.contains("panic"), "{}", told.stdout);
}

fn without_the_right_to_read_logs_the_failure_says_so_and_stays_the_same() {
    let app = app("forbidden");
    let node = Node::start(&format!("{}-node", app.namespace), |_| (200, json!("secret\n")));
    let input = [pod("web", &node.name, &["main"]), pod("worker", &node.name, &["main"])].concat();
    let user = format!("{}-user", app.namespace);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "deployer"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "configmaps", "events"], "verbs": ["*"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "deployer"}, "subjects": [{"kind": "User", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"}});
    let group = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", app.namespace);
    api().post(&format!("{group}/roles"), &role).ok();
    api().post(&format!("{group}/rolebindings"), &binding).ok();
    let pushback = Pushback::with_kubeconfig(&TestCluster::shared().kubeconfig_once_allowed(&user, &app.namespace));
    let app = TestApp::of(pushback, "shop", &app.namespace);
    app.apply(&input, &["--wait=false"]).expect(0);
    crash(&app, "web");
    crash(&app, "worker");
    let unfinished = app.apply(&input, &["--wait-timeout=2s"]).expect(22).end()["unfinished"].clone();
    let logs: Vec<&Value> =
        unfinished.as_array().into_iter().flatten().filter_map(|line| line.get("containers")).collect();
    assert_eq!(logs.len(), 1, "{unfinished}");
    assert_eq!(logs[0][0]["missing"], "it may not be read (that takes `get` on `pods/log`)");
}

/// A Pod with annotations of kapp about its logs.
fn telling_pod(name: &str, node: &str, containers: &[&str], annotations: &Value) -> String {
    let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name, "image": "app:1"})).collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": node, "containers": containers}});
    format!("---\n{pod}\n")
}

/// The kubelet says that these containers of a Pod run, and whether they are ready.
fn report(app: &TestApp, pod: &str, containers: &[&str], is_ready: bool) {
    let path = format!("/api/v1/namespaces/{}/pods/{pod}", app.namespace);
    let of = |name: &&str| {
        json!({"name": name, "image": "app:1", "imageID": "", "ready": is_ready,
        "restartCount": 0, "state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}})
    };
    let statuses: Vec<Value> = containers.iter().map(of).collect();
    let ready = if is_ready { "True" } else { "False" };
    let status = json!({"status": {"phase": "Running", "containerStatuses": statuses,
        "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": ready}]}});
    let told = api().merge_patch(&format!("{path}/status"), &status);
    assert_eq!(told.status, 200, "{}", told.body);
}

fn logs_of_pods_that_ask_for_it_are_told_while_the_app_is_applied() {
    let app = app("deploy-logs");
    let node =
        Node::start(&format!("{}-node", app.namespace), |_| (200, json!("password is hunter2-and-more\nhello\n")));
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: hunter2-and-more}\n";
    let asks = json!({"kapp.k14s.io/deploy-logs": "", "kapp.k14s.io/deploy-logs-container-names": "main"});
    let web = telling_pod("web", &node.name, &["main", "side"], &asks);
    let old = telling_pod("old", &node.name, &["main"], &json!({"kapp.k14s.io/deploy-logs": "for-existing"}));
    let input = format!("{secret}{web}{old}{}", pod("quiet", &node.name, &["main"]));
    app.pushback.write("app.yaml", &input);
    let apply = ["apply", "-a", "shop", "-n", &app.namespace, "-f", "app.yaml", "--yes", "-o", "json"];

    let mut running = Running::start(app.pushback.command(&apply));
    for pod in ["web", "old", "quiet"] {
        running.wait_for("the write", |line| line["type"] == "change.done" && line["object"]["name"] == pod);
        report(&app, pod, if pod == "web" { &["main", "side"] } else { &["main"] }, false);
    }
    running.wait_for("the log", |line| line["type"] == "log" && line["line"] == "hello");
    for pod in ["web", "old", "quiet"] {
        report(&app, pod, if pod == "web" { &["main", "side"] } else { &["main"] }, true);
    }
    let ran = running.finish().expect(0);
    let told = |ran: &Ran| -> Vec<String> {
        let logs = ran.events_of("log");
        logs.iter().map(|log| format!("{} {} {}", log["pod"], log["container"], log["line"]).replace('"', "")).collect()
    };
    assert_eq!(told(&ran), ["web main password is ***", "web main hello"]);

    // Those that were there are another matter, and everybody's are told only on demand.
    report(&app, "old", &["main"], false);
    let mut running = Running::start(app.pushback.command(&apply));
    running.wait_for("the log", |line| line["type"] == "log" && line["line"] == "hello");
    report(&app, "old", &["main"], true);
    assert_eq!(told(&running.finish().expect(0)), ["old main password is ***", "old main hello"]);
    report(&app, "quiet", &["main"], false);
    let mut running = Running::start(app.pushback.command(&[&apply[..], &["--logs-all"]].concat()));
    running.wait_for("the log", |line| line["type"] == "log" && line["pod"] == "quiet");
    report(&app, "quiet", &["main"], true);
    running.finish().expect(0);
    let asked = node.asked.lock().unwrap_or_else(PoisonError::into_inner).len();
    app.pushback.run(&[&apply[..], &["--logs=false"]].concat()).expect(0);
    assert_eq!(node.asked.lock().unwrap_or_else(PoisonError::into_inner).len(), asked);
}

fn kapp_tells_logs_between_its_lines() {
    let app = app("kapp-logs");
    let node = Node::start(&format!("{}-node", app.namespace), |_| (200, json!("hello\n")));
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp");
    kapp.write("app.yaml", telling_pod("web", &node.name, &["main"], &json!({"kapp.k14s.io/deploy-logs": "for-new"})));
    let running =
        Running::start(kapp.command(&["deploy", "-a", "shop", "-n", &app.namespace, "-f", "app.yaml", "--yes"]));
    let soon = Duration::from_secs(60);
    let is_told = |line: &str| running.stdout().lines().any(|told| told == line).then_some(());
    wait_until("the Pod", soon, || is_told("logs | # waiting for 'web > main' logs to become available..."));
    report(&app, "web", &["main"], false);
    wait_until("the log", soon, || is_told("logs | web > main | hello"));
    report(&app, "web", &["main"], true);
    let told = running.finish().expect(0).stdout;
    let told: Vec<&str> = told.lines().filter(|line| line.starts_with("logs | ")).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    logs | # waiting for 'web > main' logs to become available...
    logs | # starting tailing 'web > main' logs
    logs | web > main | hello
    logs | # ending tailing 'web > main' logs
    ");
}

fn a_wrong_annotation_about_logs_is_an_error_with_its_place() {
    let pushback = Pushback::new();
    let template = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    \
                    metadata:\n      annotations:\n        kapp.k14s.io/deploy-logs: always\n";
    pushback.write("app.yaml", template).write("live/.keep", "");
    let told = pushback.run(&["diff", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live"]).expect(1).complaints();
    insta::assert_snapshot!(told, @r#"error: app.yaml:8:9: annotation kapp.k14s.io/deploy-logs is "always", expected "", "for-new", "for-existing", "for-new-or-existing""#);
}
