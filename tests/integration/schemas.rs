//! What the rules think that the API server makes of custom resources, against what it does: many schemas as fields of
//! few definitions, objects created and updated, the answers compared.

use std::time::Duration;

use pushback_crd::schema::Schema;
use pushback_crd::schema::invalid::problems;
use pushback_crd::schema::pipeline::{Admission, Resource, Server, create, update};
use pushback_crd::schema::testing::Generator;
use serde_json::{Map, Value, json};

use crate::support::api::ApiClient;
use crate::support::{TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
/// Schemas in one definition, and objects for each of them.
const SCHEMAS: usize = 25;
const OBJECTS: usize = 3;

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: objects_fare_as_predicted,
        ApiServer: definitions_are_refused_where_problems_are_found,
    ]
}

/// Each definition has a group of its own, so that all can have the same kind.
fn group(name: &str) -> String {
    format!("{name}.schemas.example.com")
}

fn definition(name: &str, properties: &Map<String, Value>) -> Value {
    let group = group(name);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tests.{group}")},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "tests", "singular": "test", "kind": "Test"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }}}],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Numbers as the server writes them: whole floats without a fraction.
fn normal(value: &Value) -> Value {
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => (float as i64).into(),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), normal(value))).collect(),
        value => value.clone(),
    }
}

/// Written by hand: where the server is unlike what its documentation lets one think.
fn known_cases() -> Vec<(Value, Vec<Value>)> {
    vec![
        (json!({"type": "integer"}), vec![json!(5.0), json!(5.5), json!(9_223_372_036_854_775_808_u64), json!(null)]),
        (json!({"type": "number", "minimum": 2.5}), vec![json!(2), json!(2.4), json!(2.5)]),
        (json!({"type": "number", "multipleOf": 0.5}), vec![json!(3), json!(3.5)]),
        (json!({"type": "integer", "maximum": 2.5}), vec![json!(1)]),
        (json!({"type": "integer", "format": "int32"}), vec![json!(2_147_483_647), json!(2_147_483_648_u64)]),
        (json!({"type": "number", "format": "float"}), vec![json!(3e38), json!(4e38)]),
        (json!({"type": "number", "enum": [5]}), vec![json!(5.5), json!(6)]),
        (json!({"x-kubernetes-int-or-string": true, "enum": ["A"]}), vec![json!(65), json!("A"), json!(66)]),
        (
            json!({"x-kubernetes-int-or-string": true}),
            vec![json!(5.000_000_000_1), json!(-5.000_000_000_1), json!(true)],
        ),
        (json!({"type": "string", "format": "date"}), vec![json!([1]), json!("2024-02-30"), json!("2024-02-29")]),
        (json!({"type": "string", "format": "unknown"}), vec![json!([1]), json!("x")]),
        (json!({"type": "string", "format": "k8s-short-name"}), vec![json!("a-b"), json!("A")]),
        (json!({"type": "string", "nullable": true, "enum": ["a", null]}), vec![json!(null), json!("a")]),
        (json!({"type": "string", "nullable": true, "default": "x"}), vec![json!(null)]),
        (
            json!({"type": "object", "additionalProperties": true}),
            vec![json!({"x": {"a": 1}, "y": [{"b": 1}], "z": 1})],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"in": {"type": "object", "properties": {"a": {"type": "integer"}}}}}),
            vec![json!({"u": {"x": null}, "in": {"a": 1, "b": 2}}), json!({"in": {"a": null}})],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "default": {},
                "properties": {"b": {"type": "integer", "default": 3}}}}}),
            vec![json!({}), json!({"a": null}), json!({"a": {"b": null}})],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            vec![
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "unknown": 1, "labels": {"a": null}}}),
                json!({"kind": "Pod"}),
                json!({"apiVersion": "a/b/c", "kind": "Pod"}),
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}),
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "A"}}),
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
                "items": {"type": "object", "required": ["k"], "properties": {
                    "k": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}}}}),
            vec![json!([{"k": 1}, {"k": 1, "p": "UDP"}]), json!([{"k": 1}, {"k": 1, "p": "TCP"}]), json!([null])],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}),
            vec![json!([1, 2]), json!([1, 1]), json!([1, 1.0])],
        ),
        (json!({"type": "integer", "oneOf": [{"maximum": 5}, {"minimum": 3}]}), vec![json!(1), json!(4)]),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 2"}]}),
            vec![json!(3), json!(2), json!(3.0)],
        ),
    ]
}

struct Scene<'a> {
    api: &'a ApiClient,
    server: Server,
    disagreements: Vec<String>,
    compared: usize,
}

impl Scene<'_> {
    fn compare(&mut self, what: &str, ours: &Admission, answer: &crate::support::api::Answer) {
        let is_accepted = (200..300).contains(&answer.status);
        self.compared += 1;
        let is_same = match ours.accepted() {
            Some(accepted) => accepted == is_accepted,
            None => true,
        };
        if !is_same || is_accepted && normal(&ours.object["spec"]) != normal(&answer.body["spec"]) {
            self.disagreements.push(format!("{what}\nours: {ours:?}\ntheirs: {} {}", answer.status, answer.body));
        }
    }

    /// Creates each object with one field set, then updates what could be created to what `change` makes of it.
    fn run(
        &mut self,
        name: &str,
        cases: &[(Value, Vec<Value>)],
        mut change: impl FnMut(&Value, &Value) -> Option<Value>,
    ) {
        let properties: Map<String, Value> =
            cases.iter().enumerate().map(|(index, (schema, _))| (format!("f{index}"), schema.clone())).collect();
        let definition = definition(name, &properties);
        assert_eq!(problems(&definition), []);
        self.api.post(DEFINITIONS, &definition).ok();
        let group = group(name);
        let collection = format!("/apis/{group}/v1/tests");
        wait_until("the definition is served", SOON, || (self.api.get(&collection).status == 200).then_some(()));
        let schema = Schema::of(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
        let resource = Resource {
            schema: &schema,
            group: &group,
            version: "v1",
            kind: "Test",
            status: false,
            scale: None,
            preserve_unknown_fields: false,
        };
        for (index, (field, values)) in cases.iter().enumerate() {
            for (turn, value) in values.iter().enumerate() {
                let key = format!("f{index}");
                let mut object = json!({
                    "apiVersion": format!("{group}/v1"), "kind": "Test",
                    "metadata": {"name": format!("o{index}-{turn}")}, "spec": {},
                });
                object["spec"][&key] = value.clone();
                let ours = create(&resource, self.server, &object);
                let answer = self.api.post(&collection, &object);
                self.compare(&format!("{field} {value}"), &ours, &answer);
                if answer.status != 201 {
                    continue;
                }
                let Some(changed) = change(field, value) else { continue };
                let mut new = answer.body.clone();
                new["spec"][&key] = changed;
                let path = format!("{collection}/o{index}-{turn}");
                let ours = update(&resource, self.server, &answer.body, &new);
                let answer = self.api.put(&path, &new);
                self.compare(&format!("{field} {value} to {}", new["spec"][&key]), &ours, &answer);
            }
        }
    }
}

fn objects_fare_as_predicted() {
    let cluster = TestCluster::shared();
    let version = cluster.api().get("/version").ok();
    let minor =
        version["minor"].as_str().and_then(|minor| minor.trim_end_matches('+').parse().ok()).expect("a version");
    let mut scene = Scene { api: cluster.api(), server: Server { minor }, disagreements: Vec::new(), compared: 0 };
    scene.run("known", &known_cases(), |_, _| None);
    for seed in [1, 2] {
        let mut generator = Generator::new(seed);
        let mut cases = Vec::new();
        while cases.len() < SCHEMAS {
            let mut schema = generator.node(2);
            if let Value::Object(map) = &mut schema {
                // A default would stand in all objects.
                map.remove("default");
            }
            // Rules inside lists and maps without limits are too expensive for the server.
            let is_costly = schema.to_string().contains("x-kubernetes-validations") && !schema["properties"].is_null();
            let field = Map::from_iter([("f".to_owned(), schema.clone())]);
            if is_costly || !problems(&definition("x", &field)).is_empty() {
                continue;
            }
            let values = (0..OBJECTS).map(|_| generator.value(&schema)).collect();
            cases.push((schema, values));
        }
        for (schema, _) in &mut cases {
            if let Value::Object(map) = schema
                && map.get("type").is_some_and(|kind| kind == "array" || kind == "object")
            {
                map.remove("x-kubernetes-validations");
            }
        }
        scene.run(&format!("random{seed}"), &cases, |schema, value| Some(generator.change(schema, value)));
    }
    assert!(scene.compared > 150, "{} compared", scene.compared);
    let shown = scene.disagreements.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(scene.disagreements.is_empty(), "{} of {}:\n{shown}", scene.disagreements.len(), scene.compared);
}

fn definitions_are_refused_where_problems_are_found() {
    let cluster = TestCluster::shared();
    let api = cluster.api();
    let mut generator = Generator::new(3);
    let (mut refused, mut disagreements) = (0, Vec::new());
    for _ in 0..60 {
        let field = generator.node(2);
        let schema = generator.damaged(&json!({"type": "object", "properties": {"spec": field}}));
        let mut definition = definition("damaged", &Map::new());
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
        let ours = problems(&definition);
        let answer = api.post(&format!("{DEFINITIONS}?dryRun=All"), &definition);
        let is_refused = answer.status >= 400;
        refused += usize::from(is_refused);
        // The server also refuses rules for their types and their cost.
        let is_excused = ours.is_empty() && schema.to_string().contains("x-kubernetes-validations");
        if is_refused == ours.is_empty() && !is_excused {
            disagreements.push(format!("{schema}\nours: {ours:?}\ntheirs: {} {}", answer.status, answer.message()));
        }
    }
    assert!((10..50).contains(&refused), "{refused} refused");
    assert!(disagreements.is_empty(), "{}:\n{}", disagreements.len(), disagreements.join("\n\n"));
}
