//! An app that has not changed is not written to, whatever the server, a webhook and an autoscaler have made of
//! its objects. Judged by the API server's own audit log: every request is in it.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::webhook::{Form, Registration, Verdict, Webhook};
use crate::support::{Options, Pushback, Ran, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
const APP: &str = include_str!("../data/unchanged/app.yaml");

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_second_apply_writes_to_no_object,
        Controllers: what_somebody_else_has_changed_is_put_right_and_nothing_else,
    ]
}

/// A cluster whose API server writes every request of the admin to its log.
fn audited() -> &'static TestCluster {
    static CLUSTER: OnceLock<TestCluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/unchanged/audit-policy.yaml");
        let flags = vec![format!("--audit-policy-file={policy}"), "--audit-log-path=-".to_owned()];
        TestCluster::start(&Options { api_server_flags: flags, ..Options::whole() })
    })
}

/// One app in one namespace, with a webhook that changes Deployments and ConfigMaps.
struct Scene {
    cluster: &'static TestCluster,
    namespace: String,
    pushback: Pushback,
    _webhook: (Webhook, Registration<'static>),
    /// Requests are told apart by who sends them, so one test runs at a time.
    _turn: MutexGuard<'static, ()>,
}

/// A run, and what the API server was asked by it.
struct Observed {
    ran: Ran,
    requests: Vec<Value>,
}

impl Scene {
    fn new(prefix: &str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = audited();
        let namespace = cluster.namespace(prefix);
        let webhook = Webhook::start(&[], |request| match request["kind"]["kind"].as_str() {
            Some("Deployment") => {
                let containers = request["object"]["spec"]["template"]["spec"]["containers"].as_array();
                let injected = containers.is_some_and(|all| all.iter().any(|one| one["name"] == "sidecar"));
                let sidecar = json!({"name": "sidecar", "image": "registry.example/sidecar:1"});
                let mut patch = vec![json!(
                    {"op": "add", "path": "/spec/template/metadata/annotations", "value": {"injected": "yes"}}
                )];
                if !injected {
                    let path = "/spec/template/spec/containers/-";
                    patch.push(json!({"op": "add", "path": path, "value": sidecar}));
                }
                Verdict::Patch(patch.into())
            }
            // A value that the manifest sets, too: the server's word stands.
            Some("ConfigMap") if request["object"]["data"]["mode"].is_string() => Verdict::Patch(json!([
                {"op": "add", "path": "/data/injected", "value": "yes"},
                {"op": "replace", "path": "/data/mode", "value": "webhook"},
            ])),
            _ => Verdict::Allow,
        });
        let registration = webhook.register(cluster, Form::Mutating, &namespace, json!({}));
        let pushback = Pushback::on(cluster);
        // A CRD has no namespace: each test has its own.
        pushback.write("app.yaml", APP.replace("unchanged.example.com", &format!("{namespace}.example.com")));
        Self { cluster, pushback, namespace, _webhook: (webhook, registration), _turn: turn }
    }

    fn apply(&self, further: &[&str]) -> Observed {
        let marker = format!("/api?before={}-{}", self.namespace, self.lines().len());
        self.cluster.api().get(&marker).ok();
        let mut arguments =
            vec!["apply", "-a", "unchanged", "-f", "app.yaml", "-n", &self.namespace, "--yes", "-o", "json"];
        arguments.extend(further);
        let ran = self.pushback.run(&arguments).expect(0);
        let count = usize::try_from(ran.end()["requests"].as_u64().expect("a number")).expect("a number");
        // A request's line may come a moment after its answer.
        let requests = wait_until("every request is in the audit log", SOON, || {
            let lines = self.lines();
            let start = lines.iter().position(|line| line["requestURI"] == marker.as_str())?;
            let mut requests = lines[start..].to_vec();
            requests.retain(|line| line["userAgent"].as_str().is_some_and(|agent| agent.starts_with("pushback/")));
            (requests.len() >= count).then_some(requests)
        });
        assert_eq!(requests.len(), count, "the run's own count is another than the server's");
        Observed { ran, requests }
    }

    fn lines(&self) -> Vec<Value> {
        let log = std::fs::read(self.cluster.directory().join("kube-apiserver.log")).expect("a log");
        let log = String::from_utf8_lossy(&log);
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn wait_for_the_autoscaler(&self) {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", self.namespace);
        wait_until("the autoscaler has scaled the Deployment", SOON, || {
            let deployment = self.cluster.api().get(&path).ok();
            (deployment["spec"]["replicas"] == 3 && deployment["status"]["readyReplicas"] == 3).then_some(())
        });
    }
}

impl Observed {
    fn of(&self, wanted: impl Fn(&Value) -> bool) -> Vec<String> {
        let requests = self.requests.iter().filter(|request| wanted(request));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut named: Vec<String> = requests
            .map(|request| {
                let object = &request["objectRef"];
                format!("{} {} {}", text(&request["verb"]), text(&object["resource"]), text(&object["name"]))
            })
            .collect();
        named.sort();
        named
    }

    /// Requests that write, by verb, resource and name.
    fn writes(&self) -> Vec<String> {
        self.of(|request| is_write(request) && !is_dry_run(request))
    }

    fn dry_runs(&self) -> Vec<String> {
        self.of(is_dry_run)
    }
}

/// Access reviews are questions, although they are posted.
fn is_write(request: &Value) -> bool {
    let verb = request["verb"].as_str().unwrap_or_default();
    !["get", "list", "watch"].contains(&verb) && request["objectRef"]["apiGroup"] != "authorization.k8s.io"
}

fn is_dry_run(request: &Value) -> bool {
    request["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All"))
}

fn a_second_apply_writes_to_no_object() {
    let scene = Scene::new("unchanged");
    let first = scene.apply(&[]);
    assert!(first.writes().contains(&"patch deployments web".to_owned()), "{:?}", first.writes());
    let settings = format!("/api/v1/namespaces/{}/configmaps/settings", scene.namespace);
    let settings = scene.cluster.api().get(&settings).ok();
    assert_eq!(settings["data"], json!({"mode": "webhook", "injected": "yes"}), "the webhook was not called");
    scene.wait_for_the_autoscaler();

    let second = scene.apply(&[]);
    assert_eq!(second.writes(), Vec::<String>::new());
    assert_eq!(second.ran.end()["outcome"], "unchanged");
    // Only the autoscaler's target differs from what was sent first; nothing else has to be asked about.
    assert_eq!(second.dry_runs(), ["patch deployments web"]);

    let third = scene.apply(&["--recheck"]);
    assert_eq!(third.writes(), Vec::<String>::new());
    assert_eq!(third.dry_runs().len(), 15, "{:?}", third.dry_runs());
}

fn what_somebody_else_has_changed_is_put_right_and_nothing_else() {
    let scene = Scene::new("drifted");
    scene.apply(&[]);
    scene.wait_for_the_autoscaler();
    let service = format!("/api/v1/namespaces/{}/services/web", scene.namespace);
    let api = scene.cluster.api();
    // A field of nobody's concern, and one of the app's.
    api.merge_patch(&service, &json!({"metadata": {"annotations": {"somebody": "else"}}})).ok();
    let second = scene.apply(&[]);
    assert_eq!(second.writes(), Vec::<String>::new());

    api.merge_patch(&service, &json!({"spec": {"ports": [{"port": 80, "targetPort": 9090}]}})).ok();
    let third = scene.apply(&[]);
    let mut objects = third.writes();
    // Who the user is, is asked, and written nowhere but in the history.
    objects.retain(|write| !write.contains(" configmaps ") && !write.contains(" selfsubjectreviews "));
    assert_eq!(objects, ["patch services web"]);
    let after = api.get(&service).ok();
    assert_eq!(
        (&after["spec"]["ports"][0]["targetPort"], &after["metadata"]["annotations"]["somebody"]),
        (&json!(8080), &json!("else"))
    );
    assert_eq!(scene.apply(&[]).writes(), Vec::<String>::new());
}
