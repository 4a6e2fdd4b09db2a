//! Where the time of a run goes on a link where only round trips count: the phases between its events.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::app::Run;

/// The phases of a run, and how many round trips each took.
pub(crate) fn table(name: &str, run: &Run, round_trip: Duration) -> String {
    let events = run.events();
    let end = events.last().expect("a last event");
    let time = |event: &Value| -> f64 {
        let time: jiff::Timestamp = event["time"].as_str().expect("a time").parse().expect("a time");
        time.as_millisecond() as f64
    };
    let finished = time(end);
    let began = finished - run.wall().as_secs_f64() * 1e3;
    let is = |event: &&Value, name: &str| event["type"] == name;
    let first = |name: &str| events.iter().find(|event| is(event, name)).map(time);
    let last = |name: &str| events.iter().rev().find(|event| is(event, name)).map(time);
    let phases = [
        ("start, connect, discover", first("run.start")),
        ("look, compare, plan", first("plan")),
        ("preflight", first("preflight")),
        ("lock, record, history", first("change.start")),
        ("writes", last("change.done")),
        ("readiness, record, unlock", Some(finished)),
    ];
    let mut text = String::new();
    let mut before = began;
    for (phase, at) in phases {
        let Some(at) = at else { continue };
        let trips = (at - before) / (round_trip.as_secs_f64() * 1e3);
        let _ = writeln!(text, "| {name} | {phase} | {trips:.1} | {:.0} ms |", at - before);
        before = at;
    }
    let all = (finished - began) / (round_trip.as_secs_f64() * 1e3);
    let _ = writeln!(text, "| {name} | **all**, {} requests | {all:.1} | {:.0} ms |", run.requests, finished - began);
    text
}
