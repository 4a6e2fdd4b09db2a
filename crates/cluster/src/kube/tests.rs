//! The cluster as callers see it, against a server that fails in every way.

use std::io::ErrorKind as IoErrorKind;
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::testing::{Fake, Reply, config_map, secret};
use super::*;
use crate::{Notice, list_all};

#[cfg(unix)]
mod credentials;
mod hostile;

fn address() -> Address {
    Address::new(config_map(), "shop", "settings")
}

fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings", "uid": "1"}})
}

fn by_uid() -> DeleteOptions {
    DeleteOptions { uid: "1".to_owned(), ..DeleteOptions::default() }
}

fn retries(fake: &mut Fake) -> usize {
    fake.notices().iter().filter(|notice| matches!(notice, Notice::Retry { .. })).count()
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_until_the_server_answers_and_each_repetition_is_told() {
    let mut fake = Fake::script([
        Reply::Broken(IoErrorKind::ConnectionReset),
        Reply::status(503, "ServiceUnavailable", "apiserver not ready"),
        Reply::status(500, "InternalError", "etcdserver: leader changed"),
        Reply::Cut("{\"apiVersion\":".to_owned()),
        Reply::json(200, &object()),
    ]);
    assert_eq!(fake.cluster.get(&address()).await.unwrap().as_deref(), Some(&object()));
    let told = fake.notices();
    let attempts: Vec<u32> = told
        .iter()
        .filter_map(|notice| match notice {
            Notice::Retry { request, attempt, .. } if request == "get ConfigMap shop/settings" => Some(*attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert_eq!(fake.cluster.request_count(), 5);
    assert_eq!(fake.cluster.requests().get("get configmaps"), Some(&5));
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_asked_for_again_and_nonsense_is_not() {
    let answer = |text: &str| Reply::Answer(200, Vec::new(), vec![text.to_owned()]);
    let fake = Fake::script([answer("{\"apiVersion\":"), answer(""), Reply::json(200, &object())]);
    assert_eq!(fake.cluster.get(&address()).await.unwrap().as_deref(), Some(&object()));

    let fake = Fake::function(move |_| answer("{\"apiVersion\":"));
    assert_eq!(fake.cluster.get(&address()).await.unwrap_err().kind, ErrorKind::Protocol);
    assert_eq!(fake.asked().len(), 5);

    let fake = Fake::function(move |_| answer("<html>"));
    let error = fake.cluster.apply(&address(), &object(), ApplyOptions::default()).await.unwrap_err();
    assert_eq!((error.kind, error.ambiguous), (ErrorKind::Protocol, true));
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_tells_of_a_wrong_clock() {
    let options = ConnectOptions { now: || Timestamp::UNIX_EPOCH, ..ConnectOptions::default() };
    let fake = Fake::with_options(&options, |_| {
        Reply::status(401, "Unauthorized", "Unauthorized").with_header("date", "Thu, 01 Jan 1970 00:10:00 GMT")
    });
    let error = fake.cluster.get(&address()).await.unwrap_err();
    assert!(error.message.ends_with("clock is 600 s behind the server's, and tokens go by it"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_waited_for_as_long_as_it_asks() {
    let busy = Reply::status(429, "TooManyRequests", "please try again later").with_header("retry-after", "7");
    let fake = Fake::script([busy, Reply::json(201, &object())]);
    let began = Instant::now();
    assert!(fake.cluster.create(&address(), &object(), false).await.unwrap().created);
    let waited = began.elapsed();
    assert!((Duration::from_secs(7)..Duration::from_secs(9)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_create_that_may_have_happened_is_not_repeated() {
    for lost in [
        Reply::Broken(IoErrorKind::ConnectionReset),
        Reply::Cut("{".to_owned()),
        Reply::status(500, "InternalError", "etcdserver: request timed out"),
        Reply::status(503, "ServiceUnavailable", "unavailable"),
        Reply::status(504, "Timeout", "request did not complete within requested timeout"),
        Reply::Silence,
    ] {
        let fake = Fake::script([lost.clone()]);
        let error = fake.cluster.create(&address(), &object(), false).await.unwrap_err();
        assert!(error.ambiguous, "{lost:?}");
        assert_eq!(fake.asked().len(), 1, "{lost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_that_cannot_have_happened_is_repeated() {
    let fake = Fake::script([
        Reply::Broken(IoErrorKind::ConnectionRefused),
        Reply::status(429, "TooManyRequests", "busy"),
        Reply::status(503, "ServiceUnavailable", "shutting down").with_header("retry-after", "1"),
        Reply::json(201, &object()),
    ]);
    fake.cluster.create(&address(), &object(), false).await.unwrap();
    assert_eq!(fake.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_create_is_repeated_like_a_read() {
    let fake = Fake::script([Reply::Broken(IoErrorKind::ConnectionReset), Reply::json(201, &object())]);
    fake.cluster.create(&address(), &object(), true).await.unwrap();
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_after_a_lost_answer_says_that_it_may_be_our_own_doing() {
    let conflict = Reply::status(409, "Conflict", "the object has been modified");
    let fake = Fake::script([Reply::Broken(IoErrorKind::ConnectionReset), conflict.clone()]);
    let error = fake.cluster.apply(&address(), &object(), ApplyOptions::default()).await.unwrap_err();
    assert_eq!((error.kind, error.ambiguous), (ErrorKind::Conflict, true));

    let fake = Fake::script([conflict]);
    let error = fake.cluster.apply(&address(), &object(), ApplyOptions::default()).await.unwrap_err();
    assert_eq!((error.kind, error.ambiguous), (ErrorKind::Conflict, false));
}

#[tokio::test(start_paused = true)]
async fn a_create_by_apply_whose_answer_was_lost_is_still_a_create() {
    let answer = |made: &str| {
        let mut object = object();
        object["metadata"]["creationTimestamp"] = json!(made);
        object["metadata"]["managedFields"] = json!([{"manager": "pushback", "operation": "Apply"}]);
        Reply::json(200, &object).with_header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
    };
    for (made, created) in [("1994-11-06T08:49:37Z", true), ("1994-11-06T08:40:00Z", false)] {
        let fake = Fake::script([Reply::Broken(IoErrorKind::ConnectionReset), answer(made)]);
        let written = fake.cluster.apply(&address(), &object(), ApplyOptions::default()).await.unwrap();
        assert_eq!(written.created, created, "{made}");
    }
    let fake = Fake::script([answer("1994-11-06T08:49:37Z")]);
    assert!(!fake.cluster.apply(&address(), &object(), ApplyOptions::default()).await.unwrap().created);
}

#[tokio::test(start_paused = true)]
async fn what_a_repetition_cannot_cure_is_asked_once() {
    let cases = [
        (
            500,
            "failed to create typed patch object (shop/settings; /v1, Kind=ConfigMap): .x: field not declared",
            ErrorKind::Invalid,
        ),
        (
            500,
            "Internal error occurred: failed calling webhook \"a.b\": connection refused",
            ErrorKind::WebhookUnavailable,
        ),
        (422, "settings is invalid", ErrorKind::Invalid),
        (403, "configmaps is forbidden: User \"u\" cannot create resource", ErrorKind::Forbidden),
    ];
    for (code, message, kind) in cases {
        let mut fake = Fake::script([Reply::status(code, "", message)]);
        let error = fake.cluster.apply(&address(), &object(), ApplyOptions::default()).await.unwrap_err();
        assert_eq!((error.kind, error.ambiguous), (kind, false), "{message}");
        assert_eq!(retries(&mut fake), 0, "{message}");
    }
}

#[tokio::test]
async fn a_json_patch_whose_test_fails_is_a_conflict() {
    let refused = Reply::status(422, "Invalid", "the server rejected our request due to an error in our request");
    let fake = Fake::script([refused.clone(), refused]);
    let tested =
        Patch::Json(json!([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}]));
    assert_eq!(fake.cluster.patch(&address(), &tested, false).await.unwrap_err().kind, ErrorKind::Conflict);
    let plain = Patch::Json(json!([{"op": "remove", "path": "/data/a"}]));
    assert_eq!(fake.cluster.patch(&address(), &plain, false).await.unwrap_err().kind, ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_away_is_given_up_after_two_minutes() {
    let fake = Fake::function(|_| Reply::status(503, "ServiceUnavailable", "the server is currently unable"));
    let began = Instant::now();
    let error = fake.cluster.get(&address()).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ErrorKind::Server, 503));
    let waited = began.elapsed();
    assert!((Duration::from_secs(100)..Duration::from_secs(120)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_never_there_is_given_up_after_ten_seconds() {
    let fake = Fake::function(|_| Reply::Broken(IoErrorKind::ConnectionRefused));
    let began = Instant::now();
    let error = fake.cluster.get(&address()).await.unwrap_err();
    assert_eq!((error.kind, error.ambiguous), (ErrorKind::Unreachable, false));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(error.message.starts_with("no connection to https://test:6443: "), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_is_given_up_by_all_requests_together() {
    let gone = std::sync::atomic::AtomicBool::new(false);
    let concurrency = Concurrency { start: 4, min: 1, max: 4 };
    // Delays have jitter; with a fixed seed, the test counts the same attempts every time.
    let options = ConnectOptions { concurrency, seed: 1, ..ConnectOptions::default() };
    let fake = Fake::with_options(&options, move |_| {
        if gone.swap(true, std::sync::atomic::Ordering::SeqCst) {
            Reply::Broken(IoErrorKind::ConnectionRefused)
        } else {
            Reply::json(200, &object())
        }
    });
    let address = address();
    fake.cluster.get(&address).await.unwrap();
    let began = Instant::now();
    let all = futures::future::join_all((0..1000).map(|_| fake.cluster.get(&address))).await;
    assert!(all.iter().all(|answer| answer.as_ref().is_err_and(|error| error.kind == ErrorKind::Unreachable)));
    let waited = began.elapsed();
    assert!((Duration::from_secs(100)..Duration::from_secs(125)).contains(&waited), "{waited:?}");
    let asked = fake.asked().len();
    // Every request once, and the four in flight a few dozen times until the server is given up.
    assert!(asked < 1000 + 4 * 50, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_deadline_that_covers_the_body() {
    for stuck in [Reply::Silence, Reply::Stalled("{".to_owned())] {
        let options = ConnectOptions { request_timeout: Duration::from_secs(3), ..ConnectOptions::default() };
        let fake = Fake::with_options(&options, move |_| stuck.clone());
        let began = Instant::now();
        let error = fake.cluster.delete(&address(), &DeleteOptions::default()).await.unwrap_err();
        assert_eq!((error.kind, error.ambiguous), (ErrorKind::Timeout, true));
        assert_eq!(error.message, "no answer from https://test:6443 within 3 s");
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_a_uid_is_repeated_and_one_of_a_name_is_not() {
    let named = json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "configmaps \"settings\" not found",
        "details": {"name": "settings", "kind": "configmaps"}});
    let fake = Fake::script([Reply::Broken(IoErrorKind::ConnectionReset), Reply::json(404, &named)]);
    assert_eq!(fake.cluster.delete(&address(), &by_uid()).await.unwrap(), None);

    let fake = Fake::script([Reply::Broken(IoErrorKind::ConnectionReset)]);
    let error = fake.cluster.delete(&address(), &DeleteOptions::default()).await.unwrap_err();
    assert!(error.ambiguous);
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_delete_answers_with_the_object_even_where_the_server_sends_only_a_status() {
    let status = json!({"kind": "Status", "status": "Success", "details": {"name": "settings", "uid": "1"}});
    let fake = Fake::script([Reply::json(200, &status)]);
    let last = fake.cluster.delete(&address(), &by_uid()).await.unwrap().unwrap();
    assert_eq!(*last.object, object());
    let asked = fake.asked();
    assert_eq!(asked[0].method, Method::DELETE);
    assert!(asked[0].body.contains("\"preconditions\":{\"uid\":\"1\"}"), "{}", asked[0].body);
}

#[tokio::test]
async fn an_object_that_is_not_there_is_no_error_but_a_kind_that_is_not_there_is() {
    let missing = json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "configmaps \"settings\" not found",
        "details": {"name": "settings", "kind": "configmaps"}});
    let fake = Fake::script([
        Reply::json(404, &missing),
        Reply::status(404, "NotFound", "the server could not find the requested resource"),
        Reply::Answer(404, Vec::new(), vec!["404 page not found\n".to_owned()]),
    ]);
    assert_eq!(fake.cluster.get(&address()).await.unwrap(), None);
    assert_eq!(fake.cluster.get(&address()).await.unwrap_err().kind, ErrorKind::UnknownKind);
    assert_eq!(fake.cluster.get(&address()).await.unwrap_err().kind, ErrorKind::UnknownKind);
}

#[tokio::test]
async fn an_apply_says_what_it_is_and_hands_its_warnings_on() {
    let mut fake = Fake::script([Reply::json(201, &object())
        .with_header("warning", "299 - \"unknown field \\\"spec.x\\\"\"")
        .with_header("warning", "299 - \"deprecated\"")]);
    let options = ApplyOptions::DRY_RUN;
    let written = fake.cluster.apply(&address(), &object(), options).await.unwrap();
    assert!(written.created);
    assert_eq!(written.warnings, ["unknown field \"spec.x\"", "deprecated"]);
    assert_eq!(fake.notices(), []);
    let asked = fake.asked();
    assert_eq!(asked[0].method, Method::PATCH);
    assert_eq!(asked[0].path, "/api/v1/namespaces/shop/configmaps/settings");
    assert_eq!(asked[0].query, "fieldManager=pushback&force=true&fieldValidation=Strict&dryRun=All");
    assert_eq!(asked[0].headers["content-type"], "application/apply-patch+yaml");
    assert_eq!(serde_json::from_str::<Value>(&asked[0].body).unwrap(), object());
}

#[tokio::test]
async fn warnings_of_reads_are_told_once() {
    let mut fake =
        Fake::function(|_| Reply::json(200, &object()).with_header("warning", "299 - \"v1 Old is deprecated\""));
    for _ in 0..3 {
        fake.cluster.get(&address()).await.unwrap();
    }
    let request = "get ConfigMap shop/settings".to_owned();
    assert_eq!(fake.notices(), [Notice::Warning { request, message: "v1 Old is deprecated".to_owned() }]);
}

#[tokio::test]
async fn nothing_of_a_secret_gets_into_an_error_or_a_warning() {
    let status = json!({"kind": "Status", "code": 422, "reason": "Invalid",
        "message": "Secret \"db\" is invalid: data[password]: Invalid value: \"hunter2\": must be longer than hunter2",
        "details": {"name": "db", "kind": "Secret", "causes": [
            {"reason": "FieldValueInvalid", "field": "data[password]", "message": "Invalid value: \"hunter2\": must be longer"}]}});
    let body = json!({"kind": "Secret", "stringData": {"password": "hunter2"}});
    let fake = Fake::script([
        Reply::json(422, &status),
        Reply::json(200, &object()).with_header("warning", "299 - \"hunter2 is weak\""),
    ]);
    let address = Address::new(secret(), "shop", "db");
    let error = fake.cluster.apply(&address, &body, ApplyOptions::default()).await.unwrap_err();
    assert_eq!(error.message, "data[password]: Invalid value: ***: must be longer than ***");
    assert_eq!(error.causes[0].message, "Invalid value: ***: must be longer");
    let written = fake.cluster.apply(&address, &body, ApplyOptions::default()).await.unwrap();
    assert_eq!(written.warnings, ["*** is weak"]);
}

#[tokio::test]
async fn a_list_is_paged_stamped_and_started_anew_when_its_token_expires() {
    let fake = Fake::script([
        Reply::json(
            200,
            &json!({"metadata": {"continue": "t1", "resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]}),
        ),
        Reply::status(410, "Expired", "The provided continue parameter is too old"),
        Reply::json(
            200,
            &json!({"metadata": {"continue": "t2", "resourceVersion": "9"}, "items": [{"metadata": {"name": "a"}}]}),
        ),
        Reply::json(200, &json!({"metadata": {"resourceVersion": "9"}, "items": null})),
    ]);
    let query = ListQuery { limit: 1, ..ListQuery::new(config_map(), Some("shop"), "a=b") };
    let page = list_all(&fake.cluster, &query).await.unwrap();
    assert_eq!(page.resource_version, "9");
    assert_eq!(
        page.items.iter().map(|item| item.as_ref().clone()).collect::<Vec<_>>(),
        [json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})]
    );
    let queries: Vec<String> = fake.asked().into_iter().map(|asked| asked.query).collect();
    assert_eq!(queries[1], "labelSelector=a%3Db&limit=1&continue=t1");
    assert_eq!(queries[2], "labelSelector=a%3Db&limit=1");
}

#[tokio::test(start_paused = true)]
async fn a_watch_reads_its_events_across_chunks_and_ends_with_an_expired_version() {
    let chunks = [
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n{\"type\":\"MODI",
        "FIED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n",
        "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"c\"}}}\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\"}}}\n",
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}}\n{\"type\":\"ADDED\",\"object\":{}}\n",
    ];
    let fake = Fake::script([Reply::Answer(200, Vec::new(), chunks.map(str::to_owned).to_vec())]);
    let query = ListQuery::new(config_map(), Some("shop"), "");
    let events: Vec<_> = fake.cluster.watch(&query, "7").await.unwrap().collect().await;
    let named = |name: &str| Arc::new(json!({"metadata": {"name": name}}));
    assert_eq!(events.len(), 5);
    assert_eq!(events[0].as_ref().unwrap(), &WatchEvent::Applied(named("a")));
    assert_eq!(events[1].as_ref().unwrap(), &WatchEvent::Applied(named("b")));
    assert_eq!(events[2].as_ref().unwrap(), &WatchEvent::Deleted(named("c")));
    assert_eq!(events[3].as_ref().unwrap(), &WatchEvent::Bookmark("8".to_owned()));
    assert_eq!(events[4].as_ref().unwrap_err().kind, ErrorKind::Expired);
    assert_eq!(fake.asked()[0].query, "watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=290");
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_start_is_too_old_is_expired() {
    let fake = Fake::script([Reply::status(410, "Expired", "too old resource version")]);
    let query = ListQuery::new(config_map(), None, "");
    assert_eq!(fake.cluster.watch(&query, "1").await.map(|_| ()).unwrap_err().kind, ErrorKind::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_connection_breaks_ends() {
    let fake = Fake::script([Reply::Cut("{\"type\":\"ADDED\",\"object\":{}}\n{\"type\"".to_owned())]);
    let query = ListQuery::new(config_map(), None, "");
    let events: Vec<_> = fake.cluster.watch(&query, "1").await.unwrap().collect().await;
    assert_eq!(events.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_gone_silent_ends() {
    let fake = Fake::script([Reply::Stalled("{\"type\":\"ADDED\",\"object\":{}}\n".to_owned())]);
    let query = ListQuery::new(config_map(), None, "");
    let began = Instant::now();
    let events: Vec<_> = fake.cluster.watch(&query, "1").await.unwrap().collect().await;
    assert_eq!((events.len(), began.elapsed().as_secs()), (1, 100));
}

#[tokio::test]
async fn the_version_is_read_once_and_understands_a_plus() {
    let fake = Fake::script([Reply::json(200, &json!({"major": "1", "minor": "36+", "gitVersion": "v1.36.3-gke.1"}))]);
    let expected = ServerVersion { major: 1, minor: 36, text: "v1.36.3-gke.1".to_owned() };
    assert_eq!(fake.cluster.version().await.unwrap(), Some(expected.clone()));
    assert_eq!(fake.cluster.version().await.unwrap(), Some(expected));
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_review_needs_no_name() {
    let review = Arc::new(Kind {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "SelfSubjectAccessReview".to_owned(),
        plural: "selfsubjectaccessreviews".to_owned(),
        ..Kind::default()
    });
    let fake = Fake::script([Reply::json(201, &json!({"status": {"allowed": true}}))]);
    let written = fake.cluster.create(&Address::new(review, "", ""), &json!({"spec": {}}), false).await.unwrap();
    assert_eq!(written.object["status"]["allowed"], json!(true));
    assert_eq!(fake.asked()[0].path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
}

#[tokio::test(start_paused = true)]
async fn requests_under_way_are_bounded() {
    let now = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = Arc::clone(&now);
    let options = ConnectOptions {
        concurrency: Concurrency { start: 3, min: 1, max: 3 },
        request_timeout: Duration::from_secs(1),
        retry: RetryLimits { budget: Duration::ZERO, ..RetryLimits::default() },
        ..ConnectOptions::default()
    };
    let fake = Fake::with_options(&options, move |_| {
        seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Reply::Silence
    });
    let address = address();
    let all = futures::future::join_all((0..9).map(|_| fake.cluster.get(&address)));
    let _ = tokio::time::timeout(Duration::from_millis(500), all).await;
    assert_eq!(now.load(std::sync::atomic::Ordering::SeqCst), 3);
}
