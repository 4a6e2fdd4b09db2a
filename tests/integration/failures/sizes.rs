//! Objects at and over the limits of the server and of its store.

use serde_json::{Value, json};

use super::{app, findings, lock, sound, unfinished};
use crate::support::apply::{config_map, config_map_path};
use crate::support::{TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_config_map_at_its_limit_is_applied_and_kept_without_a_copy,
        ApiServer: a_config_map_over_its_limit_is_refused_before_anything_is_written,
        ApiServer: an_object_that_no_request_can_carry_is_refused_before_anything_is_written,
        ApiServer: an_object_that_the_store_does_not_take_is_refused_or_fails_alone,
        ApiServer: a_large_definition_is_applied_once,
        Nothing: thousands_of_objects_are_one_app,
    ]
}

const MIB: usize = 1 << 20;

fn filler(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn a_config_map_at_its_limit_is_applied_and_kept_without_a_copy() {
    let app = app("large");
    let input = config_map("large", &filler(MIB - 1000));
    sound(app.apply(&input, &[]), 0);
    let live = TestCluster::shared().api().get(&config_map_path(&app.namespace, "large")).ok();
    let annotations = live["metadata"]["annotations"].to_string();
    assert!(annotations.len() < 2000, "{} bytes of annotations", annotations.len());
    assert!(app.record().to_string().len() < 20_000, "the record keeps a copy");
    assert_eq!(sound(app.apply(&input, &[]), 0).end()["outcome"], "unchanged");
    // A change of a value that long is told in a line that can be read.
    let ran = sound(app.apply(&config_map("large", &filler(MIB - 1001)), &[]), 0);
    assert_eq!(ran.end()["done"]["update"], 1);
    sound(app.delete(&[]), 0);
}

fn a_config_map_over_its_limit_is_refused_before_anything_is_written() {
    let app = app("too-large");
    let ran = sound(app.apply(&(config_map("first", "1") + &config_map("large", &filler(MIB + 1))), &[]), 10);
    assert_eq!(findings(&ran), [("invalid".to_owned(), "ConfigMap large".to_owned())]);
    let message = ran.events_of("finding")[0]["finding"]["message"].take();
    assert!(message.as_str().is_some_and(|text| text.contains("1048576") && text.len() < 300), "{message}");
    assert_eq!(TestCluster::shared().api().get(&config_map_path(&app.namespace, "first")).status, 404);
}

fn an_object_that_no_request_can_carry_is_refused_before_anything_is_written() {
    let app = app("over-request");
    let ran = sound(app.apply(&(config_map("first", "1") + &config_map("large", &filler(4 * MIB))), &[]), 10);
    assert_eq!(findings(&ran), [("too-large".to_owned(), "ConfigMap large".to_owned())]);
    assert_eq!(TestCluster::shared().api().get(&config_map_path(&app.namespace, "first")).status, 404);
}

/// A definition whose objects may hold anything.
fn anything(group: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("blobs.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": "Blob", "plural": "blobs"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn an_object_that_the_store_does_not_take_is_refused_or_fails_alone() {
    let app = app("over-store");
    let group = format!("{}.example.com", app.namespace);
    let definition = anything(&group);
    let blob = |bytes: usize| {
        let blob = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Blob", "metadata": {"name": "blob"},
            "content": filler(bytes),
        });
        config_map("first", "1") + &format!("---\n{definition}\n---\n{blob}\n")
    };
    sound(app.apply(&blob(10), &[]), 0);
    let refused = sound(app.apply(&blob(MIB * 17 / 10), &[]), 10);
    assert_eq!(findings(&refused), [("too-large".to_owned(), "Blob blob".to_owned())]);
    // A dry-run never comes to the store, whose limit is its operator's to set: there the write itself tells.
    let ran = sound(app.apply(&blob(MIB * 17 / 10), &["--strict=false"]), 20);
    let left = unfinished(&ran);
    assert_eq!((left.len(), left[0].0.as_str()), (1, "Blob/blob failed"), "{left:?}");
    assert!(left[0].1.contains("too large"), "{left:?}");
    assert!(ran.events_of("retry").is_empty(), "no repetition makes it smaller: {}", ran.stdout);
    assert_eq!(lock(&app), Value::Null);
    let path = format!("/apis/{group}/v1/namespaces/{}/blobs/blob", app.namespace);
    assert_eq!(TestCluster::shared().api().get(&path).ok()["content"], filler(10), "the old state stands");
    sound(app.apply(&blob(20), &[]), 0);
    sound(app.delete(&[]), 0);
}

fn a_large_definition_is_applied_once() {
    let app = app("large-crd");
    let mut definition = anything(&format!("{}.example.com", app.namespace));
    let fields: serde_json::Map<String, Value> = (0..4000)
        .map(|number| (format!("field{number}"), json!({"type": "string", "description": filler(160)})))
        .collect();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let input = format!("---\n{definition}\n");
    assert!(input.len() > 800_000, "{}", input.len());
    sound(app.apply(&input, &[]), 0);
    let live = TestCluster::shared().api().get(&TestCluster::shared().api().path_of(&definition)).ok();
    assert!(live["metadata"]["annotations"].to_string().len() < 2000);
    assert_eq!(sound(app.apply(&input, &[]), 0).end()["outcome"], "unchanged");
    sound(app.delete(&[]), 0);
}

/// `PUSHBACK_OBJECTS=10000` for the larger form, which takes two minutes in a debug build.
fn thousands_of_objects_are_one_app() {
    let count: usize = std::env::var("PUSHBACK_OBJECTS").map_or(1_500, |count| count.parse().expect("a number"));
    let pushback = crate::support::Pushback::new();
    let input: String = (0..count).map(|number| config_map(&format!("part-{number:05}"), "1")).collect();
    pushback.write("app.yaml", &input);
    let apply = ["apply", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--yes", "-o", "json"];
    assert_eq!(sound(pushback.run(&apply), 0).end()["done"]["create"], count);
    assert_eq!(sound(pushback.run(&apply), 0).end()["outcome"], "unchanged");
    pushback.write("app.yaml", config_map("part-00000", "1"));
    assert_eq!(sound(pushback.run(&apply), 0).end()["done"]["delete"], count - 1);
}
