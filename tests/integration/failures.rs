//! What a run does when something fails around it: the cluster, a webhook, another run, the disk, the user's patience.
//! `documented` holds the list of such situations, from which `docs/contributing/failures.md` is made.

mod admission;
mod credentials;
mod documented;
mod groups;
mod immutable;
mod interrupted;
mod outputs;
mod owners;
mod records;
mod server;
mod sizes;
mod stopped;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use crate::support::apply::{TestApp, parse_text};
use crate::support::{Ran, TestCase, TestCluster};

pub(crate) fn tests() -> Vec<TestCase> {
    [
        admission::tests(),
        credentials::tests(),
        documented::tests(),
        groups::tests(),
        immutable::tests(),
        interrupted::tests(),
        outputs::tests(),
        owners::tests(),
        records::tests(),
        server::tests(),
        sizes::tests(),
        stopped::tests(),
    ]
    .concat()
}

/// A value that no output may show.
const SECRET_VALUE: &str = "correct-horse-battery";

/// App `shop` in a namespace of its own.
fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

/// A Secret that every input can have, so that every failure is one in which a secret could be shown.
fn secret() -> String {
    format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: password}}\nstringData: {{value: {SECRET_VALUE}}}\n")
}

/// What is true of every run, however it ends: it does not panic, its last event has the code that it ends with, and no
/// secret is shown.
#[track_caller]
fn sound(ran: Ran, code: i32) -> Ran {
    let ran = ran.expect(code);
    assert_eq!(ran.end()["exitCode"], code, "{}", ran.stdout);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    for shown in [&ran.stdout, &ran.stderr] {
        assert!(!shown.contains(SECRET_VALUE) && !shown.contains(&BASE64.encode(SECRET_VALUE)), "{shown}");
    }
    ran
}

/// The lock in an app's record; null where nobody holds it.
#[track_caller]
fn lock(app: &TestApp) -> Value {
    match &app.record()["data"]["pushback-lock"] {
        Value::Null => Value::Null,
        text => parse_text(text),
    }
}

/// The objects that a run has left, `Kind/name state`, and what it says of each.
#[track_caller]
fn unfinished(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = ran.end()["unfinished"].as_array().cloned().unwrap_or_default();
    let line = |line: &Value| {
        let object = &line["object"];
        (
            format!("{}/{} {}", text(&object["kind"]), text(&object["name"]), text(&line["state"])),
            text(&line["message"]),
        )
    };
    lines.iter().map(line).collect()
}

/// (check, `Kind name`) of each finding of a run.
fn findings(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = ran.events_of("finding");
    let each = all.iter().map(|event| &event["finding"]);
    each.map(|finding| (text(&finding["check"]), crate::support::apply::short(&finding["object"]))).collect()
}
