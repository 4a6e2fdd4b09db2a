//! Generated objects with several authors, taken over by generated manifests: what the plan said the object becomes
//! is what it becomes. `PUSHBACK_ROUNDS=50` runs more of them; a round's number is its seed.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use super::{api, content, create, manifest, new_app};
use crate::support::apply::TestApp;
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_generated_takeover_does_what_was_shown,
        ApiServer: what_only_the_schema_tells_is_shown_before_it_goes,
        ApiServer: a_map_that_may_not_be_emptied_stays_and_is_no_obstacle,
    ]
}

/// Objects of each kind in one round.
const OBJECTS: usize = 12;

/// A map of text.
fn texts(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let entry = (proptest::sample::select(keys), "[a-c]").prop_map(|(key, value)| (key.to_owned(), json!(value)));
    proptest::collection::vec(entry, 0..keys.len()).prop_map(|entries| Value::Object(Map::from_iter(entries)))
}

/// Some of these fields.
fn some_of(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields = fields.into_iter().map(|(name, value)| {
        proptest::option::weighted(0.6, value)
            .prop_map(move |value| value.map(|value| (name.to_owned(), value)))
            .boxed()
    });
    let fields: Vec<_> = fields.collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect())).boxed()
}

/// At least one item: an empty list of named items stays when nobody wants it any more, another one goes, and which it
/// is no set tells.
fn unique(items: BoxedStrategy<Value>, key: fn(&Value) -> String, count: usize) -> BoxedStrategy<Value> {
    let items = proptest::collection::vec(items, 1..=count);
    items
        .prop_map(move |mut items| {
            let mut seen = Vec::new();
            items.retain(|item| {
                let key = key(item);
                let is_new = !seen.contains(&key);
                seen.push(key);
                is_new
            });
            Value::Array(items)
        })
        .boxed()
}

fn text() -> BoxedStrategy<Value> {
    "[a-d]".prop_map(Value::from).boxed()
}

/// The spec of a custom resource: every way in which the server merges.
fn widget_spec() -> BoxedStrategy<Value> {
    let named =
        some_of(vec![("port", (80_u16..83).prop_map(Value::from).boxed()), ("value", text()), ("extra", text())]);
    let named = (named, "[a-c]").prop_map(|(mut item, name)| {
        item["name"] = json!(name);
        item
    });
    let pair = || some_of(vec![("p", text()), ("q", text())]);
    some_of(vec![
        ("plain", text()),
        ("mode", text()),
        ("settings", some_of(vec![("x", text()), ("y", text()), ("deep", pair())])),
        ("atomic", texts(&["a", "b", "c"]).boxed()),
        ("items", unique(named.boxed(), |item| format!("{} {}", item["name"], item["port"].as_u64().unwrap_or(80)), 4)),
        ("tags", unique(text(), Value::to_string, 4)),
        ("words", proptest::collection::vec(text(), 0..3).prop_map(Value::Array).boxed()),
        ("labels", texts(&["a", "b", "c", "d"]).boxed()),
        ("byName", some_of(vec![("one", pair()), ("two", pair()), ("three", pair())])),
    ])
}

fn widget_schema() -> Value {
    let text = json!({"type": "string"});
    let pair = json!({"type": "object", "properties": {"p": text, "q": text}});
    let texts = json!({"type": "object", "additionalProperties": text});
    let mut atomic = texts.clone();
    atomic["x-kubernetes-map-type"] = json!("atomic");
    json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "plain": text,
        "mode": {"type": "string", "default": "auto"},
        "settings": {"type": "object", "properties": {"x": text, "y": text, "deep": pair}},
        "atomic": atomic,
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": text, "value": text, "extra": text,
                "port": {"type": "integer", "default": 80}}}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "words": {"type": "array", "items": text},
        "labels": texts,
        "byName": {"type": "object", "additionalProperties": pair},
    }}}}})
}

fn config_map_body() -> BoxedStrategy<Value> {
    texts(&["a", "b", "c", "d", "e"]).prop_map(|data| json!({"data": data})).boxed()
}

fn widget_body() -> BoxedStrategy<Value> {
    widget_spec().prop_map(|spec| json!({"spec": spec})).boxed()
}

fn deployment_body() -> BoxedStrategy<Value> {
    let variable = (text(), text()).prop_map(|(name, value)| json!({"name": name, "value": value})).boxed();
    let port = (80_u16..83).prop_map(|port| json!({"containerPort": port})).boxed();
    let container = some_of(vec![
        ("env", unique(variable, |item| item["name"].to_string(), 3)),
        ("ports", unique(port, Value::to_string, 3)),
        ("command", proptest::collection::vec(text(), 1..3).prop_map(Value::Array).boxed()),
        ("workingDir", Just(json!("/tmp")).boxed()),
        (
            "securityContext",
            some_of(vec![
                ("runAsUser", (1_u32..3).prop_map(Value::from).boxed()),
                ("privileged", any::<bool>().prop_map(Value::from).boxed()),
            ]),
        ),
        (
            "resources",
            texts(&["cpu"])
                .prop_map(|limits| match limits["cpu"].is_string() {
                    true => json!({"limits": {"cpu": "1"}}),
                    false => json!({}),
                })
                .boxed(),
        ),
    ]);
    let container = (container, "[ab]").prop_map(|(mut container, name)| {
        container["name"] = json!(name);
        container["image"] = json!(format!("registry.example/{name}:1"));
        container
    });
    let containers = unique(container.boxed(), |item| item["name"].to_string(), 3);
    let volume = "[ab]".prop_map(|name| json!({"name": name, "emptyDir": {}})).boxed();
    let spec = some_of(vec![
        ("minReadySeconds", (1_u32..3).prop_map(Value::from).boxed()),
        ("paused", Just(json!(true)).boxed()),
        ("replicas", (0_u32..3).prop_map(Value::from).boxed()),
    ]);
    let pod = some_of(vec![
        ("volumes", unique(volume, |item| item["name"].to_string(), 2)),
        ("nodeSelector", texts(&["a", "b"]).boxed()),
        ("hostNetwork", Just(json!(false)).boxed()),
        ("tolerations", Just(json!([{"key": "k", "operator": "Exists"}])).boxed()),
    ]);
    (spec, pod, containers, texts(&["x", "y"]))
        .prop_map(|(mut spec, mut pod, mut containers, annotations)| {
            if containers == json!([]) {
                containers = json!([{"name": "a", "image": "registry.example/a:1"}]);
            }
            pod["containers"] = containers;
            spec["selector"] = json!({"matchLabels": {"app": "web"}});
            spec["template"] = json!({"metadata": {"labels": {"app": "web"}, "annotations": annotations}, "spec": pod});
            json!({"spec": spec})
        })
        .boxed()
}

/// What one author sends.
fn object(kind: &(&str, &str), name: &str, labels: &Value, body: &Value) -> Value {
    let mut object = json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": name, "labels": labels}});
    object.as_object_mut().expect("a map").extend(body.as_object().expect("a map").clone());
    object
}

/// Who writes after the first author, and how.
#[derive(Clone, Copy, Debug)]
enum Author {
    /// A part of the object, as `Update`.
    Patches(&'static str),
    /// A part of the object, as `Apply`.
    Applies(&'static str),
}

fn write(author: Author, app: &TestApp, object: &Value) {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(app.namespace);
    let path = api().path_of(&object);
    let (Author::Applies(manager) | Author::Patches(manager)) = author;
    if let Some(spec) = object["spec"].as_object_mut().filter(|_| !["kapp", "kubectl"].contains(&manager)) {
        // Whether an entry of a map goes that a stranger has a part of, only the schema tells: see below.
        spec.shift_remove("byName");
    }
    // Some of these would be no object; then that author has written nothing.
    match author {
        Author::Applies(_) => drop(api().apply_with(&object, &format!("fieldManager={manager}&force=true"))),
        Author::Patches(_) => {
            object["metadata"].as_object_mut().expect("metadata").shift_remove("name");
            let path = format!("{path}?fieldManager={manager}");
            let patch = api().request("PATCH", &path, Some("application/merge-patch+json"), Some(&object));
            patch.expect("an answer");
        }
    }
}

fn a_generated_takeover_does_what_was_shown() {
    let rounds = std::env::var("PUSHBACK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
    for seed in 0..rounds {
        round(seed);
    }
}

/// A kind of the test's own, named `Widget`; its definition.
fn define(app: &TestApp) -> Value {
    let group = format!("{}.example.com", app.namespace);
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": widget_schema()}]}});
    api().apply(&definition).ok();
    let sample = json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w"}});
    wait_until("the kind is served", Duration::from_secs(60), || api().serves(&sample).then_some(()));
    definition
}

fn round(seed: u64) {
    let app = new_app();
    let definition = define(&app);
    let widget = format!("{}.example.com/v1", app.namespace);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    let kinds = [
        (("v1", "ConfigMap"), config_map_body()),
        (("apps/v1", "Deployment"), deployment_body()),
        ((widget.as_str(), "Widget"), widget_body()),
    ];
    let authors = proptest::option::weighted(
        0.5,
        proptest::sample::select(vec![
            Author::Patches("kapp"),
            Author::Applies("kubectl"),
            Author::Patches("kubectl-edit"),
            Author::Patches("somebody"),
            Author::Applies("injector"),
        ]),
    );
    let first = proptest::sample::select(vec!["kapp", "kubectl-client-side-apply"]);
    let mut wanted = Vec::new();
    let mut sent = Vec::new();
    for (kind, body) in kinds {
        let labels = texts(&["a", "b", "c"]);
        let each = proptest::collection::vec((body, labels), 4);
        for number in 0..OBJECTS {
            let drawn = (&each, &first, &authors, &authors).new_tree(&mut runner).expect("values").current();
            let (bodies, first, second, third) = drawn;
            let name = format!("{}-{number}", kind.1.to_lowercase());
            let objects: Vec<Value> = bodies.iter().map(|(body, labels)| object(&kind, &name, labels, body)).collect();
            create(&app, &format!("fieldManager={first}"), objects[0].clone());
            for (author, object) in [second, third].into_iter().zip(&objects[1..]) {
                author.into_iter().for_each(|author| write(author, &app, object));
            }
            wanted.push(objects[3].clone());
            sent.push((objects, first, second, third));
        }
    }

    let input = manifest(&wanted);
    let ran = app.apply(&input, &["--wait=false", "--preflight=none", "--facts-out", "facts.json"]);
    if let Some(event) = ran.events_of("change.done").iter().find(|event| event["outcome"] != "ok") {
        let of_it = |(objects, _, _, _): &&(Vec<Value>, _, _, _)| {
            objects.iter().any(|object| object["metadata"]["name"] == event["object"]["name"])
        };
        panic!("seed {seed}: {event}\n{:#?}", sent.iter().find(of_it));
    }
    assert_eq!((ran.code, ran.events_of("plan").len()), (0, 1), "seed {seed}: {}\n{}", ran.stdout, ran.stderr);
    let facts = app.pushback.read_json("facts.json");
    let changes = facts["changes"]["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), wanted.len());
    for (change, authors) in changes.iter().zip(&sent) {
        let after = api().get(&api().path_of(&change["live"])).ok();
        assert_eq!(
            content(&after),
            content(&change["result"]),
            "seed {seed}, before: {}\n{authors:#?}",
            change["live"]
        );
    }
    let again = app.apply(&input, &["--wait=false", "--preflight=none"]).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged", "seed {seed}: {}", again.stdout);
    api().delete(&api().path_of(&definition)).ok();
}

fn what_only_the_schema_tells_is_shown_before_it_goes() {
    let app = new_app();
    let definition = define(&app);
    let api_version = format!("{}.example.com/v1", app.namespace);
    let widget =
        |spec: Value| json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let path = create(&app, "fieldManager=kapp", widget(json!({"plain": "a", "byName": {"one": {"p": "a"}}})));
    // A part of an entry that kapp has made. In a map of any keys the entry goes whole; were it a field with a name of
    // its own, this part would stay.
    write(Author::Patches("kubectl"), &app, &widget(json!({"byName": {"two": {"p": "b"}}})));
    let edit = json!({"spec": {"byName": {"one": {"q": "x"}}}});
    let edited = format!("{path}?fieldManager=kubectl-edit");
    api().request("PATCH", &edited, Some("application/merge-patch+json"), Some(&edit)).expect("an answer").ok();

    let input = manifest(&[widget(json!({"plain": "a", "byName": {"three": {"p": "c"}}}))]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    let plans = ran.events_of("plan");
    assert_eq!(plans.len(), 2, "the second one is the server's own: {}", ran.stdout);
    assert!(plans[1].to_string().contains("spec.byName"), "{}", plans[1]);
    let after = api().get(&path).ok();
    assert_eq!(after["spec"]["byName"], json!({"three": {"p": "c"}}));
    let again = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged");
    api().delete(&api().path_of(&definition)).ok();
}

fn a_map_that_may_not_be_emptied_stays_and_is_no_obstacle() {
    let app = new_app();
    let definition = define(&app);
    let api_version = format!("{}.example.com/v1", app.namespace);
    let widget =
        |spec: Value| json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let path =
        create(&app, "fieldManager=kapp", widget(json!({"plain": "a", "mode": "b", "labels": {"a": "x", "b": "y"}})));
    // The API server makes null of a map that an apply empties, and the schema wants a map.
    let input = manifest(&[widget(json!({"plain": "a", "labels": {}}))]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    let note = super::notes(&ran, "Widget w");
    assert!(note.contains("the server does not let go of spec.labels."), "{note}");
    let after = api().get(&path).ok();
    assert_eq!(after["spec"]["mode"], "auto", "what can go has gone");
    assert_eq!(after["spec"]["labels"], json!({"a": "x", "b": "y"}));
    super::assert_settled(&app, &input, &[], &[path]);
    api().delete(&api().path_of(&definition)).ok();
}
