//! What the server answers: reviews, health, metrics, and everything that is none of them.

use serde_json::{Value, json};

use super::{definition, object, plan, review};
use crate::support::conversion_server::ConversionServer;
use crate::support::https_client::HttpsAnswer;
use crate::support::{TestCase, cases, poll};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: reviews_are_answered_one_after_the_other_on_one_connection,
        Nothing: whatever_is_sent_is_answered_and_counted,
        Nothing: what_is_larger_than_allowed_is_refused,
        Nothing: health_and_metrics_are_answered_without_tls_where_that_is_asked_for,
        Nothing: a_signal_lets_requests_end_and_sends_clients_away,
        Nothing: memory_does_not_grow_with_the_number_of_requests,
    ]
}

fn started(more: &[&str]) -> ConversionServer {
    ConversionServer::start_with(&definition(), &plan("tests.example.com", json!({})), more)
}

#[track_caller]
fn response(answer: &HttpsAnswer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice::<Value>(&answer.body).expect("JSON")["response"].take()
}

fn reviews_are_answered_one_after_the_other_on_one_connection() {
    let server = started(&[]);
    let mut connection = server.connect();
    for path in ["/convert", "/", "/any/other"] {
        let objects: Vec<Value> =
            (0..100).map(|n| object(&format!("o-{n}"), &json!({"both": n.to_string()}))).collect();
        let answer = connection.request("POST", path, &review(&objects)).expect("an answer");
        assert!(answer.headers.contains(&"content-type: application/json".to_owned()), "{:?}", answer.headers);
        let converted = response(&answer)["convertedObjects"].take();
        let names: Vec<&str> = converted
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|object| object["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names, objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect::<Vec<_>>());
    }
    assert_eq!(server.metric("requests_total{result=\"converted\"}"), 3.0);
    assert_eq!(server.metric("objects_total"), 300.0);
    assert_eq!(server.metric("request_duration_seconds_count"), 3.0);
    assert!(server.metric("certificate_expiry_seconds") > 0.0);
}

fn whatever_is_sent_is_answered_and_counted() {
    let server = started(&[]);
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for body in ["", "{", "[]", "null", "{\"kind\": \"ConversionReview\"}", &deep, "\u{1}"] {
        let answer = server.connect().request("POST", "/convert", body.as_bytes()).expect("an answer");
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    assert_eq!(server.metric("requests_total{result=\"malformed\"}"), 7.0);
    // A secret in an object that cannot be converted comes into no log.
    let mut other = object("a", &json!({"both": "hunter2"}));
    other["kind"] = "Other".into();
    let answer = server.connect().request("POST", "/convert", &review(&[other])).expect("an answer");
    let result = response(&answer)["result"].take();
    assert_eq!(result["status"], "Failure");
    let message = result["message"].as_str().expect("a message");
    assert!(message.starts_with("Other a cannot be converted from example.com/v1 to example.com/v2: "), "{message}");
    server.wait_for("not converted: Other a cannot be converted from example.com/v1 to example.com/v2\n");
    assert!(!server.log().contains("hunter2"), "{}", server.log());
    for (method, path, status) in [
        ("GET", "/convert", 404),
        ("PUT", "/convert", 405),
        ("DELETE", "/healthz", 405),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
    ] {
        let answer = server.connect().request(method, path, b"").expect("an answer");
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    // No HTTP at all.
    assert!(server.connect().send(b"\x16\x03\x01 nonsense\r\n\r\n").is_ok_and(|answer| answer.status == 400));
    assert_eq!(server.connect().request("GET", "/healthz", b"").expect("an answer").text(), "ok\n");
}

fn what_is_larger_than_allowed_is_refused() {
    let server = started(&["--max-request", "1"]);
    let large = review(&[object("large", &json!({"both": "x".repeat(1 << 20)}))]);
    // The server says so without reading it all; the rest may come in vain.
    if let Ok(answer) = server.connect().request("POST", "/convert", &large) {
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (413, "the request is larger than 1 MiB; --max-request allows more\n")
        );
    }
    server.wait_for("not converted: the request is larger than 1 MiB");
    // Also where no length is told.
    let chunked = [
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
        format!("{:x}\r\n", large.len()).into_bytes(),
        large.clone(),
        b"\r\n0\r\n\r\n".to_vec(),
    ];
    if let Ok(answer) = server.connect().send(&chunked.concat()) {
        assert_eq!(answer.status, 413);
    }
    let counted = || server.metric("requests_total{result=\"too_large\"}") == 2.0;
    assert!(poll(std::time::Duration::from_secs(60), || counted().then_some(())).is_some());
    let fits = review(&[object("fits", &json!({"both": "x".repeat((1 << 20) - 1000)}))]);
    response(&server.connect().request("POST", "/convert", &fits).expect("an answer"));
}

fn health_and_metrics_are_answered_without_tls_where_that_is_asked_for() {
    let server = started(&["--metrics-listen", "127.0.0.1:0"]);
    server.wait_for("health and metrics also on http://127.0.0.1:");
    let log = server.log();
    let address = log.rsplit_once("also on ").expect("an address").1.lines().next().expect("a line").to_owned();
    let metrics = ureq::get(format!("{address}/metrics")).call().expect("an answer");
    assert_eq!(metrics.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(ureq::get(format!("{address}/readyz")).call().is_ok());
    let refused = ureq::post(format!("{address}/convert")).send(&review(&[])[..]).expect_err("a refusal");
    assert_eq!(refused.to_string(), "http status: 405");
}

fn a_signal_lets_requests_end_and_sends_clients_away() {
    let server = started(&[]);
    let mut connection = server.connect();
    response(&connection.request("POST", "/convert", &review(&[])).expect("an answer"));
    server.terminate();
    server.wait_for("ending: /readyz fails from now on");
    let answer = connection.request("GET", "/readyz", b"").expect("an answer");
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains(&"connection: close".to_owned()), "{:?}", answer.headers);
    let ran = server.finish().expect(0);
    assert!(ran.stderr.ends_with(" info ended\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("still under way"), "{}", ran.stderr);
}

/// Many requests at once, some of them large, again and again.
fn memory_does_not_grow_with_the_number_of_requests() {
    let server = started(&[]);
    let small: Vec<Value> = (0..100).map(|n| object(&format!("o-{n}"), &json!({"both": "x".repeat(900)}))).collect();
    let (small, large) = (review(&small), review(&[object("large", &json!({"both": "x".repeat(8 << 20)}))]));
    let round = |count: usize| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (server, small, large) = (&server, &small, &large);
                scope.spawn(move || {
                    let mut connection = server.connect();
                    for number in 0..count {
                        let body = if thread == 0 && number % 8 == 0 { large } else { small };
                        response(&connection.request("POST", "/convert", body).expect("an answer"));
                    }
                });
            }
        });
        server.peak_memory()
    };
    let first = round(48);
    let peak = round(144);
    // The allocator keeps for each thread some of what it has had, and not every thread has had a large request at first;
    // 18 large ones that stayed would be 144 MiB.
    assert!(peak < first + 96 * 1024, "{first} KiB after the first requests, {peak} KiB after three times as many");
    assert!(peak < 400 * 1024, "{peak} KiB");
}
