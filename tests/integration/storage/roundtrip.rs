//! Rule ConversionRoundTrip on a real API server: for every ordered pair of versions, an object of the one that is written
//! back unchanged at the other loses exactly what the rule says.

use serde_json::{Value, json};

use super::crd::{TestCrd, Version};
use crate::support::apply::TestApp;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: every_ordered_pair_loses_exactly_what_is_said,
        ApiServer: a_pair_that_is_called_lossless_loses_nothing,
        ApiServer: objects_that_are_there_are_counted,
    ]
}

fn text() -> Value {
    json!({"type": "string"})
}

fn group(fields: &Value) -> Value {
    json!({"type": "object", "properties": fields})
}

/// Three versions, of which each has something that another one lacks.
fn versions() -> Vec<Version> {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let free =
        |fields: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": fields});
    let list = |fields: &Value| json!({"type": "array", "items": group(fields)});
    let v1 = json!({
        "size": text(), "old": text(), "labels": map, "free": free(json!({})),
        "parts": list(&json!({"name": text(), "old": text()})), "both": text(),
    });
    let v2 = json!({
        "size": text(), "new": text(), "labels": map, "free": free(json!({"in": group(&json!({"a": text()}))})),
        "parts": list(&json!({"name": text(), "new": text()})), "both": text(), "null": {"type": "string", "nullable": true},
    });
    let v3 = json!({
        "size": text(), "labels": group(&json!({"x": text()})), "free": group(&json!({"in": group(&json!({"a": text()}))})),
        "parts": list(&json!({"name": text()})), "null": text(),
    });
    vec![("v1", true, false, v1), ("v2", true, true, v2), ("v3", true, false, v3)]
}

/// A value for everything that any version has.
fn everything() -> Value {
    json!({
        "size": "s", "old": "o", "new": "n", "both": "b", "labels": {"x": "1", "y": "2"}, "null": null,
        "free": {"other": 1, "in": {"a": "1", "b": "2"}}, "parts": [{"name": "p", "old": "o", "new": "n"}],
    })
}

/// By check and version, what the rule names.
fn said(crd: &TestCrd, versions: &[Version]) -> Vec<(String, String, Vec<String>)> {
    let app = TestApp::of(crd.pushback(), "roundtrip", &crd.namespace);
    app.pushback.write("app.yaml", crd.manifest(versions).to_string());
    let arguments =
        ["-f", "app.yaml", "--preflight=ConversionRoundTrip", "--dangerous-override-ownership-of-existing-resources"];
    let report = app.run("check", &arguments).json();
    let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    let of_rule = findings.filter(|finding| finding["rule"] == "ConversionRoundTrip");
    of_rule
        .map(|finding| {
            let places = finding["old"].as_array().into_iter().flatten().map(words).collect();
            (words(&finding["check"]), words(&finding["version"]), places)
        })
        .collect()
}

/// The places of `before` that `after` lacks, as the rule writes them: `spec.parts[*].old`.
fn missing(before: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let place = format!("{at}.{key}");
                match after.get(key) {
                    Some(after) => missing(value, after, &place, found),
                    None => found.push(place),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            before.iter().zip(after).for_each(|(before, after)| missing(before, after, &format!("{at}[*]"), found));
        }
        _ if before == after => {}
        _ => found.push(at.to_owned()),
    }
}

fn lost(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    missing(&before["spec"], &after["spec"], "spec", &mut found);
    found
}

/// Whether there is something at a place, or below it.
fn has(object: &Value, place: &str) -> bool {
    let mut values = vec![object];
    for part in place.replace("[*]", ".[*]").split('.') {
        values = values
            .into_iter()
            .flat_map(|value| match part {
                "[*]" => value.as_array().into_iter().flatten().collect::<Vec<_>>(),
                key => value.get(key).into_iter().collect(),
            })
            .collect();
    }
    !values.is_empty()
}

#[track_caller]
fn holds(said: &[String], lost: &[String], before: &Value, pair: &str) {
    let covers = |said: &String, lost: &String| lost == said || lost.starts_with(&format!("{said}."));
    for place in lost {
        assert!(said.iter().any(|said| covers(said, place)), "{pair}: {place} is lost and not said: {said:?}");
    }
    for place in said.iter().filter(|place| has(before, place)) {
        assert!(lost.iter().any(|lost| covers(place, lost)), "{pair}: {place} is said and not lost: {lost:?}");
    }
}

fn every_ordered_pair_loses_exactly_what_is_said() {
    let (crd, versions) = (TestCrd::new("roundtrip"), versions());
    crd.put(&versions);
    let said = said(&crd, &versions);
    let of = |check: &str, version: &str| -> Vec<String> {
        let found = said.iter().find(|(of, at, _)| (of.as_str(), at.as_str()) == (check, version));
        found.map(|(_, _, places)| places.clone()).unwrap_or_default()
    };
    let (api, mut pairs, mut losing) = (crd.api(), 0, 0);
    for (from, ..) in &versions {
        for (through, ..) in versions.iter().filter(|(name, ..)| name != from) {
            let name = format!("{from}-{through}");
            let path = format!("/apis/{}/{from}/namespaces/{}/cogs", crd.group, crd.namespace);
            // What the version itself has of everything: the rest is dropped from the request.
            let all = crd.object(from, &name, &everything());
            let sent = api.post(&format!("{path}?dryRun=All"), &all).ok();
            api.post(&path, &all).ok();
            let before = api.get(&crd.object_path(from, &name)).ok();
            assert_eq!(sent["spec"], before["spec"], "a dry run shows what is stored too");
            let back = api.get(&crd.object_path(through, &name)).ok();
            api.put(&crd.object_path(through, &name), &back).ok();
            let after = api.get(&crd.object_path(from, &name)).ok();
            let found = lost(&before, &after);
            losing += usize::from(!found.is_empty());
            holds(&of("lostWhenWrittenBack", through), &found, &before, &name);
            pairs += 1;
        }
    }
    assert_eq!((pairs, losing), (6, 3), "{said:?}");
    // What a version cannot store is gone right after the write.
    for (from, _, storage, fields) in &versions {
        let own: serde_json::Map<String, Value> = everything()
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| fields.get(key.as_str()).is_some())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let name = format!("own-{from}");
        let mut sent = crd.object(from, &name, &Value::Object(own));
        if *from != "v2" {
            // Only what the version declares counts as written.
            sent["spec"]["parts"] = json!([{"name": "p", "old": "o"}]);
        }
        if *from == "v3" {
            sent["spec"] =
                json!({"size": "s", "labels": {"x": "1"}, "free": {"in": {"a": "1"}}, "parts": [{"name": "p"}]});
        }
        let path = format!("/apis/{}/{from}/namespaces/{}/cogs", crd.group, crd.namespace);
        let stored = api.post(&path, &sent).ok();
        let found = lost(&sent, &stored);
        match storage {
            true => assert_eq!(found, ["spec.free.in.b", "spec.parts[*].old"], "declared names prune"),
            false => holds(&of("lostWhenStored", from), &found, &sent, &name),
        }
    }
}

fn a_pair_that_is_called_lossless_loses_nothing() {
    let free = json!({"size": text(), "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions = [("v1", true, false, free.clone()), ("v2", true, true, free)];
    let crd = TestCrd::new("roundtrip-same");
    crd.put(&versions);
    assert_eq!(said(&crd, &versions), []);
    let api = crd.api();
    let path = format!("/apis/{}/v2/namespaces/{}/cogs", crd.group, crd.namespace);
    // The three steps: created at the new version, written back at the old one, read at the new one.
    api.post(&path, &crd.object("v2", "cog", &everything())).ok();
    let before = api.get(&crd.object_path("v2", "cog")).ok();
    let back = api.get(&crd.object_path("v1", "cog")).ok();
    api.put(&crd.object_path("v1", "cog"), &back).ok();
    assert_eq!(api.get(&crd.object_path("v2", "cog")).ok(), before);
}

fn objects_that_are_there_are_counted() {
    let versions = [
        ("v1", true, false, json!({"size": {"type": "integer"}})),
        ("v2", true, true, json!({"size": {"type": "integer"}, "new": text()})),
    ];
    let crd = TestCrd::new("roundtrip-count");
    crd.put(&versions);
    crd.create("v2", 3);
    crd.api().merge_patch(&crd.object_path("v2", "cog-1"), &json!({"spec": {"new": "x"}})).ok();
    let app = TestApp::of(crd.pushback(), "roundtrip", &crd.namespace);
    app.pushback.write("app.yaml", crd.manifest(&versions).to_string());
    let arguments =
        ["-f", "app.yaml", "--preflight=ConversionRoundTrip", "--dangerous-override-ownership-of-existing-resources"];
    let report = app.run("check", &arguments).json();
    let live = &report["findings"][0]["liveObjects"];
    assert_eq!((&live["affected"], &live["examined"]), (&json!(1), &json!(3)), "{report}");
    assert_eq!(report["findings"][0]["witness"]["spec"], json!({"new": "a"}));
    assert_eq!(report["findings"][0]["severity"], "warning");
}
