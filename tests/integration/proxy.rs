//! The proxy that other tests script does what its script says, and its record is right.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::{BodyDataStream, BodyExt as _};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::support::api::{ApiClient, block_on};
use crate::support::proxy::{
    Fault, FaultProxy, Verb, WatchFault, any, dry_runs, in_group, later_pages, matching, reads, writes,
};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: requests_are_read_counted_and_told_apart,
        ApiServer: users_of_a_proxy_keep_their_own_rights,
        ApiServer: a_scripted_answer_takes_the_place_of_the_servers,
        ApiServer: a_lost_answer_leaves_its_effect_and_a_closed_connection_none,
        ApiServer: answers_are_cut_truncated_and_stalled_as_scripted,
        ApiServer: a_continue_token_expires_as_scripted,
        ApiServer: groups_vanish_from_discovery_or_are_stale,
        ApiServer: a_watch_passes_through_as_it_comes,
        ApiServer: a_watch_goes_wrong_as_scripted,
        ApiServer: latency_pauses_and_actions_come_between,
        ApiServer: nothing_passes_after_the_end,
        ApiServer: the_end_is_told_where_the_last_request_comes_to_nothing,
        ApiServer: the_product_works_through_the_proxy,
    ]
}

/// No answer within this time: there will be none.
const NEVER: Duration = Duration::from_secs(3);
/// A busy machine takes its time.
const SOON: Duration = Duration::from_secs(60);

/// A client that repeats nothing.
struct Client(kube::Client);

/// What came: status, headers and body, or that nothing did.
#[derive(Debug)]
enum Came {
    Answer(u16, http::HeaderMap, Bytes),
    Broken,
    Nothing,
}

impl Came {
    #[track_caller]
    fn status(&self) -> u16 {
        let Self::Answer(status, ..) = self else { panic!("no answer: {self:?}") };
        *status
    }

    #[track_caller]
    fn json(&self) -> Value {
        let Self::Answer(_, _, body) = self else { panic!("no answer: {self:?}") };
        serde_json::from_slice(body).unwrap_or_default()
    }
}

impl Client {
    fn new(kubeconfig: &Path) -> Self {
        Self(block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a config");
            config.default_retry = false;
            kube::Client::try_from(config).expect("a client")
        }))
    }

    fn send(&self, method: &str, path: &str, content_type: &str, body: &Value, patience: Duration) -> Came {
        let mut request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        if path == "/apis" {
            let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
            request = request.header("accept", aggregated);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(Body::from(body)).expect("a request");
        let client = self.0.clone();
        block_on(async {
            let exchange = async {
                let Ok(response) = client.send(request).await else { return Came::Broken };
                let (parts, body) = response.into_parts();
                match body.collect().await {
                    Ok(body) => Came::Answer(parts.status.as_u16(), parts.headers, body.to_bytes()),
                    Err(_) => Came::Broken,
                }
            };
            tokio::time::timeout(patience, exchange).await.unwrap_or(Came::Nothing)
        })
    }

    fn get(&self, path: &str) -> Came {
        self.send("GET", path, "", &Value::Null, SOON)
    }

    fn apply(&self, namespace: &str, name: &str, value: &str) -> Came {
        let path = format!("{}/{name}?fieldManager=test&force=true", collection(namespace));
        self.send("PATCH", &path, "application/apply-patch+yaml", &config_map(name, value), SOON)
    }

    /// The next events of a watch, each with the value of its object, until the watch ends or says nothing more.
    fn watch(&self, path: &str, patience: Duration) -> Vec<String> {
        let request = http::Request::get(path).body(Body::empty()).expect("a request");
        let client = self.0.clone();
        block_on(async {
            let Ok(response) = client.send(request).await else { return vec!["(broken)".to_owned()] };
            let mut chunks = BodyDataStream::new(response.into_body());
            let (mut text, mut end) = (String::new(), None);
            while end.is_none() {
                // The first event may take its time; the others were there with it.
                let patience = if text.is_empty() { SOON } else { patience };
                match tokio::time::timeout(patience, chunks.next()).await {
                    Ok(Some(Ok(chunk))) => text.push_str(std::str::from_utf8(&chunk).expect("UTF-8")),
                    Ok(Some(Err(_))) => end = Some("(broken)"),
                    Ok(None) => end = Some("(end)"),
                    Err(_) => end = Some("(silence)"),
                }
            }
            let event = |line: &str| {
                let event: Value = serde_json::from_str(line).expect("an event");
                let told = &event["object"];
                let what = told["data"]["key"].as_str().map_or_else(|| told["code"].to_string(), str::to_owned);
                format!("{} {what}", event["type"].as_str().unwrap_or_default())
            };
            text.lines().map(event).chain(end.map(str::to_owned)).collect()
        })
    }
}

fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

/// A proxy, a client of it, and a namespace.
fn proxied(prefix: &str) -> (FaultProxy, Client, String, &'static ApiClient) {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let client = Client::new(&proxy.kubeconfig());
    (proxy, client, cluster.namespace(prefix), cluster.api())
}

fn requests_are_read_counted_and_told_apart() {
    let (proxy, client, namespace, _) = proxied("proxy-record");
    let other = Client::new(&proxy.kubeconfig_of("other"));
    let one = format!("{}/one", collection(&namespace));
    assert_eq!(client.apply(&namespace, "one", "1").status(), 201);
    assert_eq!(client.apply(&namespace, "one", "2").status(), 200);
    let dry = format!("{one}?fieldManager=test&force=true&dryRun=All");
    client.send("PATCH", &dry, "application/apply-patch+yaml", &config_map("one", "3"), SOON);
    let stored = other.get(&one).json();
    let (uid, version) = (&stored["metadata"]["uid"], &stored["metadata"]["resourceVersion"]);
    client.get(&format!("{}?limit=1", collection(&namespace)));
    client.get("/version");
    client.get("/apis/apps/v1");
    client.get(&format!("/api/v1/namespaces/{namespace}"));
    client.send("POST", &collection(&namespace), "application/json", &config_map("two", "1"), SOON);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    client.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", &review, SOON);
    let guarded = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    client.send("DELETE", &one, "application/json", &guarded, SOON);
    let counts = proxy.counts();
    let counted: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    assert_eq!(
        counted,
        [
            "apply configmaps: 2",
            "create configmaps: 1",
            "create selfsubjectaccessreviews: 1",
            "delete configmaps: 1",
            "discovery: 2",
            "dry-run apply configmaps: 1",
            "get configmaps: 1",
            "get namespaces: 1",
            "list configmaps: 1",
        ]
    );
    assert_eq!(proxy.count(&any().from("other")), 1);
    assert_eq!(proxy.count(&writes()) + proxy.count(&reads()), proxy.requests().len());
    assert_eq!(proxy.count(&in_group("apps")), 1);
    assert_eq!(proxy.count(&dry_runs("configmaps")), 1);
    let requests = proxy.requests();
    let accepted: Vec<String> = requests
        .iter()
        .filter(|exchange| exchange.accepted())
        .map(|exchange| format!("{} {}", exchange.request.object(), if exchange.created() { "new" } else { "" }))
        .collect();
    let object = |name: &str, new: &str| format!("configmaps {namespace}/{name} {new}");
    assert_eq!(accepted, [object("one", "new"), object("one", ""), object("two", "new"), object("one", "")]);
    let last = requests.last().expect("requests");
    assert_eq!(last.request.number, requests.len());
    let (of_uid, of_version) = last.request.preconditions();
    assert_eq!((of_uid.as_deref(), of_version.as_deref()), (uid.as_str(), version.as_str()));
    assert_eq!(requests[1].stored()["metadata"]["resourceVersion"], *version);
    assert!(last.answered_at.expect("an answer") >= last.request.at);
}

fn users_of_a_proxy_keep_their_own_rights() {
    let (proxy, client, namespace, _) = proxied("proxy-users");
    let nobody = TestCluster::shared().kubeconfig_for("nobody-in-particular", &[]);
    let nobody = Client::new(&proxy.kubeconfig_as("nobody", &nobody));
    assert_eq!(client.get(&collection(&namespace)).status(), 200);
    assert_eq!(nobody.get(&collection(&namespace)).status(), 403);
    proxy.on(any().from("nobody"), Fault::status(500));
    assert_eq!(nobody.get(&collection(&namespace)).status(), 500);
    assert_eq!(client.get(&collection(&namespace)).status(), 200);
}

fn a_scripted_answer_takes_the_place_of_the_servers() {
    let (proxy, client, namespace, api) = proxied("proxy-status");
    let applies = || matching(Verb::Apply, "configmaps");
    proxy.on(applies().nth(2), Fault::status(429).retry_after(7));
    proxy.on(applies().nth(3), Fault::status(503).with_effect());
    assert_eq!(client.apply(&namespace, "one", "1").status(), 201);
    let busy = client.apply(&namespace, "one", "2");
    assert_eq!((busy.status(), &busy.json()["reason"]), (429, &json!("TooManyRequests")));
    let Came::Answer(_, headers, _) = busy else { unreachable!() };
    assert_eq!(headers["retry-after"], "7");
    let value = || api.get(&format!("{}/one", collection(&namespace))).ok()["data"]["key"].clone();
    assert_eq!(value(), "1");
    assert_eq!(client.apply(&namespace, "one", "3").status(), 503);
    assert_eq!(value(), "3", "it had its effect");
    assert_eq!(client.apply(&namespace, "one", "4").status(), 200);
    let faults: Vec<_> = proxy.requests().into_iter().map(|exchange| (exchange.fault, exchange.status)).collect();
    assert_eq!(
        faults,
        [
            (None, Some(201)),
            (Some("429".to_owned()), None),
            (Some("503, with effect".to_owned()), Some(200)),
            (None, Some(200)),
        ]
    );
    proxy.clear().on(any().first(2), Fault::status(500));
    let statuses: Vec<_> = (0..3).map(|_| client.get(&collection(&namespace)).status()).collect();
    assert_eq!(statuses, [500, 500, 200]);
    proxy.clear().on(any().in_namespace(&namespace).after_first(1), Fault::status(409));
    proxy.on_each(|request| (request.path == "/version").then(|| Fault::status(503)));
    let statuses: Vec<_> = (0..2).map(|_| client.get(&collection(&namespace)).status()).collect();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(client.get("/version").status(), 503);
}

fn a_lost_answer_leaves_its_effect_and_a_closed_connection_none() {
    let (proxy, client, namespace, api) = proxied("proxy-lost");
    proxy.on(writes().named("lost"), Fault::close().with_effect()).on(writes().named("closed"), Fault::close());
    proxy.on(writes().named("stalled"), Fault::Stall { with_effect: true });
    assert!(matches!(client.apply(&namespace, "lost", "1"), Came::Broken));
    assert!(matches!(client.apply(&namespace, "closed", "1"), Came::Broken));
    let path = |name: &str| format!("{}/{name}", collection(&namespace));
    let apply = format!("{}?fieldManager=test&force=true", path("stalled"));
    let stalled = client.send("PATCH", &apply, "application/apply-patch+yaml", &config_map("stalled", "1"), NEVER);
    assert!(matches!(stalled, Came::Nothing));
    wait_until("the stalled request has its effect", SOON, || (api.get(&path("stalled")).status == 200).then_some(()));
    let there = ["lost", "closed"].map(|name| api.get(&path(name)).status == 200);
    assert_eq!(there, [true, false]);
}

fn answers_are_cut_truncated_and_stalled_as_scripted() {
    let (proxy, client, namespace, _) = proxied("proxy-cut");
    client.apply(&namespace, "one", "1");
    let lists = || matching(Verb::List, "configmaps");
    proxy.on(lists().nth(1), Fault::Cut(20)).on(lists().nth(2), Fault::Truncate(20));
    proxy.on(lists().nth(3), Fault::StallInside(20)).on(lists().nth(4), Fault::CloseAfter);
    proxy.on(lists().nth(5), Fault::stall());
    let path = collection(&namespace);
    assert!(matches!(client.get(&path), Came::Broken));
    let Came::Answer(200, _, truncated) = client.get(&path) else { panic!("an answer") };
    assert_eq!(truncated.len(), 20);
    assert!(matches!(client.send("GET", &path, "", &Value::Null, NEVER), Came::Nothing));
    let Came::Answer(200, headers, _) = client.get(&path) else { panic!("an answer") };
    assert_eq!(headers["connection"], "close");
    assert!(matches!(client.send("GET", &path, "", &Value::Null, NEVER), Came::Nothing));
    assert_eq!(client.get(&path).status(), 200);
}

fn a_continue_token_expires_as_scripted() {
    let (proxy, client, namespace, _) = proxied("proxy-continue");
    for name in ["one", "two", "three"] {
        client.apply(&namespace, name, "1");
    }
    proxy.on(later_pages("configmaps").nth(1), Fault::status(410));
    let path = format!("{}?limit=1", collection(&namespace));
    let first = client.get(&path).json();
    let token = first["metadata"]["continue"].as_str().expect("a token").to_owned();
    let second = client.get(&format!("{path}&continue={token}"));
    assert_eq!((second.status(), &second.json()["reason"]), (410, &json!("Expired")));
    assert_eq!(client.get(&format!("{path}&continue={token}")).status(), 200);
}

fn groups_vanish_from_discovery_or_are_stale() {
    let (proxy, client, ..) = proxied("proxy-groups");
    let group = |name: &str| {
        let groups = client.get("/apis").json()["items"].take();
        groups.as_array().expect("groups").iter().find(|group| group["metadata"]["name"] == name).cloned()
    };
    assert_eq!(group("apps").expect("it is there")["versions"][0]["freshness"], "Current");
    proxy.break_group("apps");
    assert_eq!(group("apps").expect("it is there")["versions"][0]["freshness"], "Stale");
    assert_eq!(client.get("/apis/apps/v1/deployments").status(), 503);
    assert_eq!(group("batch").expect("it is there")["versions"][0]["freshness"], "Current");
    proxy.clear().hide_group("apps");
    assert_eq!(group("apps"), None);
    assert_eq!(client.get("/apis/apps/v1/deployments").status(), 200);
}

/// The watch of a namespace's ConfigMaps with the name `one`, from its start.
fn watched(namespace: &str) -> String {
    format!("{}?watch=1&fieldSelector=metadata.name%3Done&resourceVersion=", collection(namespace))
}

fn a_watch_passes_through_as_it_comes() {
    let (proxy, client, namespace, api) = proxied("proxy-watch");
    let before = client.apply(&namespace, "one", "1").json();
    let path = watched(&namespace) + before["metadata"]["resourceVersion"].as_str().expect("a version");
    let api = api.clone();
    let collection = collection(&namespace);
    // The change comes after the watch has been opened: it can only have come through the open connection.
    proxy.after(matching(Verb::Watch, "configmaps"), move |_| {
        let changed = api.merge_patch(&format!("{collection}/one"), &json!({"data": {"key": "2"}}));
        changed.ok();
    });
    assert_eq!(client.watch(&path, NEVER), ["MODIFIED 2", "(silence)"]);
}

fn a_watch_goes_wrong_as_scripted() {
    let (proxy, client, namespace, _) = proxied("proxy-watches");
    let before = client.apply(&namespace, "one", "1").json();
    let path = watched(&namespace) + before["metadata"]["resourceVersion"].as_str().expect("a version");
    for value in ["2", "3", "4"] {
        client.apply(&namespace, "one", value);
    }
    let with = |fault: Fault| {
        proxy.clear().on(matching(Verb::Watch, "configmaps"), fault);
        client.watch(&path, NEVER).join(", ")
    };
    let seen = [
        with(Fault::watch(WatchFault::End, 1)),
        with(Fault::watch(WatchFault::Break, 1)),
        with(Fault::watch(WatchFault::Silence, 1)),
        with(Fault::watch(WatchFault::Error(410), 2)),
        with(Fault::watch(WatchFault::Repeat, 1)),
        with(Fault::watch(WatchFault::Reorder, 1)),
    ];
    assert_eq!(
        seen,
        [
            "MODIFIED 2, (end)",
            "MODIFIED 2, (broken)",
            "MODIFIED 2, (silence)",
            "MODIFIED 2, MODIFIED 3, ERROR 410, (end)",
            "MODIFIED 2, MODIFIED 3, MODIFIED 3, MODIFIED 4, MODIFIED 4, (silence)",
            "MODIFIED 2, MODIFIED 3, MODIFIED 2, MODIFIED 4, MODIFIED 3, (silence)",
        ]
    );
}

fn latency_pauses_and_actions_come_between() {
    let (proxy, client, namespace, api) = proxied("proxy-time");
    let acted = Arc::new(AtomicUsize::new(0));
    let (api, path, counted) = (api.clone(), format!("{}/one", collection(&namespace)), Arc::clone(&acted));
    proxy.before(writes().named("one").first(1), move |_| {
        counted.fetch_add(usize::from(api.get(&path).status == 404), Ordering::SeqCst);
    });
    proxy.latency(Duration::from_millis(100)).on(any().nth(1), Fault::Delay(Duration::from_millis(100)));
    client.apply(&namespace, "one", "1");
    assert_eq!(acted.load(Ordering::SeqCst), 1, "the action came before the effect");
    let first = proxy.requests().remove(0);
    assert!(first.answered_at.expect("an answer") - first.request.at >= Duration::from_millis(150));
    proxy.pause();
    let paused = client.send("GET", &collection(&namespace), "", &Value::Null, NEVER);
    assert!(matches!(paused, Came::Nothing));
    proxy.resume();
    assert_eq!(client.get(&collection(&namespace)).status(), 200);
}

fn nothing_passes_after_the_end() {
    for answered in [true, false] {
        let (proxy, client, namespace, api) = proxied("proxy-end");
        let mut told = proxy.end_after(any().nth(2), answered);
        client.apply(&namespace, "one", "1");
        assert!(told.try_recv().is_err());
        let path = |name: &str| format!("{}/{name}?fieldManager=test", collection(&namespace));
        let apply = |name: &str, patience: Duration| {
            client.send("PATCH", &path(name), "application/apply-patch+yaml", &config_map(name, "1"), patience)
        };
        let mut is_told = || told.try_recv().ok();
        let last = apply("two", if answered { SOON } else { NEVER });
        assert_eq!(matches!(last, Came::Answer(..)), answered);
        if answered {
            assert!(is_told().is_none(), "whoever got an answer is expected to go on");
        } else {
            wait_until("the end is told", SOON, &mut is_told);
        }
        assert!(matches!(apply("three", NEVER), Came::Nothing));
        if answered {
            wait_until("the end is told", SOON, &mut is_told);
        }
        let there = ["two", "three"].map(|name| api.get(&path(name)).status == 200);
        assert_eq!(there, [true, false]);
    }
}

fn the_end_is_told_where_the_last_request_comes_to_nothing() {
    for fault in [Fault::status(500), Fault::close()] {
        let (proxy, client, namespace, _) = proxied("proxy-end-fails");
        proxy.on(any().nth(1), fault);
        let mut told = proxy.end_after(any().nth(1), false);
        client.send("GET", &collection(&namespace), "", &Value::Null, SOON);
        wait_until("the end is told", SOON, || told.try_recv().ok());
    }
}

fn the_product_works_through_the_proxy() {
    let (proxy, _, namespace, _) = proxied("proxy-product");
    let place = Pushback::with_kubeconfig(&proxy.kubeconfig());
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {key: '1'}}";
    let arguments = ["apply", "-a", "app", "-n", &namespace, "-f", "-", "--yes", "--output=json"];
    let ran = place.run_with_input(&arguments, manifest.as_bytes()).expect(0);
    assert_eq!(proxy.count(&writes().named("one")), 1);
    assert_eq!(ran.end()["requests"], proxy.requests().len());
}
