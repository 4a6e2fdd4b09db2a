//! Records that others have written: a newer version of pushback, and machines whose clocks are wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{app, lock, secret, sound};
use crate::support::apply::{TestApp, config_map, error};
use crate::support::snapshot::snapshot;
use crate::support::{TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_record_of_a_newer_version_is_read_and_never_written,
        ApiServer: a_lock_of_a_machine_whose_clock_is_wrong_expires_like_any_other,
        ApiServer: a_lock_that_is_renewed_is_held_whatever_its_times_say,
    ]
}

fn patch_record(app: &TestApp, key: &str, value: &Value) {
    let patch = json!({"data": {key: value.to_string()}});
    TestCluster::shared().api().merge_patch(&app.record_path(), &patch).ok();
}

fn a_record_of_a_newer_version_is_read_and_never_written() {
    let app = app("newer");
    let input = config_map("kept", "1") + &secret();
    sound(app.apply(&input, &[]), 0);
    // Nothing is known of the layout but that this version must not write it.
    let newer = json!({"schema": 9, "minimumReader": 9, "phase": {"name": "paused"}, "parts": ["one"]});
    patch_record(&app, "pushback", &newer);
    patch_record(&app, "pushback-inventory", &json!({"compressed": "…"}));
    let before = snapshot(TestCluster::shared(), &app.namespace, &[]);

    let listed = app.pushback.run(&["list", "-n", &app.namespace]).expect(0);
    assert!(listed.stdout.contains("shop"), "{}", listed.stdout);
    assert_eq!(app.inspected(), ["ConfigMap kept", "Secret password"]);
    app.pushback.write("app.yaml", config_map("kept", "2") + &secret());
    let diff = sound(app.run("diff", &["-f", "app.yaml"]), 0);
    assert_eq!(diff.events_of("plan")[0]["counts"]["update"], 1, "{}", diff.stdout);
    app.run("check", &["-f", "app.yaml"]).expect(0);

    for ran in [app.apply(&config_map("kept", "2"), &[]), app.delete(&[])] {
        let ran = sound(ran, 1);
        assert!(error(&ran).contains("written by a newer pushback (record layout 9"), "{}", error(&ran));
    }
    assert_eq!(snapshot(TestCluster::shared(), &app.namespace, &[]), before);
}

/// The lock of a run on another machine, with a lease of two seconds.
fn foreign(since: &str, renewals: u32) -> Value {
    json!({
        "holder": "somebody", "host": "elsewhere", "boot": "another boot", "process": 1, "run": "theirs",
        "since": since, "leaseSeconds": 2, "renewals": renewals,
    })
}

/// Ten minutes and more off, in either direction.
const WRONG_TIMES: [&str; 3] = ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z", "no time at all"];

fn a_lock_of_a_machine_whose_clock_is_wrong_expires_like_any_other() {
    for since in WRONG_TIMES {
        let app = app("skew");
        sound(app.apply(&config_map("first", "1"), &[]), 0);
        patch_record(&app, "pushback-lock", &foreign(since, 7));
        let ran = sound(app.apply(&config_map("first", "2"), &["--lock-wait", "0s"]), 12);
        assert!(error(&ran).contains("somebody on elsewhere"), "{}", error(&ran));
        sound(app.apply(&config_map("first", "2"), &["--lock-wait", "60s"]), 0);
        assert_eq!(lock(&app), Value::Null);
    }
}

fn a_lock_that_is_renewed_is_held_whatever_its_times_say() {
    let app = app("skew-held");
    sound(app.apply(&config_map("first", "1"), &[]), 0);
    let record = app.record_path();
    let ended = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let stop = Arc::clone(&ended);
        let renewing = scope.spawn(move || {
            let mut renewals = 0;
            while !stop.load(Ordering::Relaxed) {
                let patch = json!({"data": {"pushback-lock": foreign(WRONG_TIMES[0], renewals).to_string()}});
                TestCluster::shared().api().merge_patch(&record, &patch).ok();
                renewals += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            renewals
        });
        crate::support::wait_until("the lock is held", Duration::from_secs(60), || {
            (lock(&app) != Value::Null).then_some(())
        });
        let ran = app.apply(&config_map("first", "2"), &["--lock-wait", "6s"]);
        ended.store(true, Ordering::Relaxed);
        let renewals = renewing.join().expect("a thread");
        // On a machine that gave the other thread no time at all the lock may rightly have expired.
        assert!(renewals > 3, "the lock was renewed {renewals} times only");
        sound(ran, 12);
    });
}
