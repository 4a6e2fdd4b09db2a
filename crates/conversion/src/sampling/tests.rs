//! Plans that lose something at a boundary, with an absent field or in a list, and plans that lose nothing.

use pushback_crd::definition::Upgrade;
use pushback_crd::schema::pipeline::Server;
use pushback_objects::source::Document;
use pushback_objects::source::testing::numbered;
use serde_json::{Value, json};

use super::super::tests::{definition, load, plan};
use super::*;
use crate::{NoPrograms, read};

/// Samples a plan for versions v1 and v2, of which v2 is stored.
fn sampled(versions: [Value; 2], step: Value) -> Samples {
    let [one, other] = versions;
    let mut crd = definition(&[("v1", one), ("v2", other)]);
    crd["spec"]["versions"][1]["storage"] = json!(true);
    let mut step = step;
    (step["from"], step["to"]) = (json!("v1"), json!("v2"));
    let document = plan(json!({"policy": {"bag": "annotation"}, "steps": [step]}));
    let converter = load(&document, &crd).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let document = Document { positions: numbered(&document, "plan.yaml").into(), value: document };
    let plan = read(&document).expect("a plan");
    let upgrade = Upgrade::of(&crd, &crd, Server::default());
    let trips = RoundTrips::new(&converter, &upgrade, &NoPrograms).expect("a storage version");
    sample(&trips, &plan, SampleLimits::default())
}

fn lines(samples: &Samples) -> Vec<String> {
    let line = |defect: &Defect| {
        let Defect { from, through, kind, path, witness, .. } = defect;
        format!("{from} {through} {} {path} {}", kind.as_str(), witness["spec"])
    };
    samples.defects.iter().map(line).collect()
}

fn integer(more: Value) -> Value {
    let mut schema = json!({"type": "integer"});
    if let (Value::Object(schema), Value::Object(more)) = (&mut schema, more) {
        schema.extend(more);
    }
    schema
}

/// A step that renames a field by expressions.
fn set(old: &str, new: &str, up: &str, down: &str) -> Value {
    json!({
        "removed": {format!("spec.{old}"): {"reason": "renamed", "drop": true}},
        "acknowledge": {format!("spec.{old}"): "renamed"},
        "up": [{"set": format!("spec.{new}"), "cel": up}], "down": [{"set": format!("spec.{old}"), "cel": down}],
    })
}

#[test]
fn number_capped_by_an_expression_is_lost_just_above_the_cap() {
    let step = set("count", "size", "self.spec.count > 100 ? 100 : self.spec.count", "self.spec.size");
    let found = sampled([json!({"count": integer(json!({}))}), json!({"size": integer(json!({}))})], step);
    let first = lines(&found);
    assert_eq!(first[0], "v1 v2 changed spec.count {\"count\":101}", "{first:#?}");
    assert_eq!((&found.defects[0].before, &found.defects[0].after), (&Some(json!(101)), &Some(json!(100))));
}

#[test]
fn text_that_an_expression_invents_is_found_where_the_field_is_absent() {
    let text = json!({"type": "string"});
    let step = set("name", "title", "has(self.spec.name) ? self.spec.name : 'unknown'", "self.spec.title");
    let found = sampled([json!({"name": text}), json!({"title": text})], step);
    let lines = lines(&found);
    assert!(lines.contains(&"v1 v2 invented spec.name {}".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"v2 v1 invented spec.title {}".to_owned()), "{lines:#?}");
}

#[test]
fn classes_of_lossy_expressions_are_found() {
    let text = || json!({"type": "string"});
    let list = || json!({"type": "array", "items": {"type": "string"}});
    let cases = [
        (
            "floor",
            integer(json!({"minimum": -5})),
            integer(json!({})),
            "self.spec.a < 0 ? 0 : self.spec.a",
            "self.spec.b",
        ),
        ("rounded", integer(json!({})), integer(json!({})), "self.spec.a / 1024 * 1024", "self.spec.b"),
        ("cut", text(), text(), "self.spec.a.size() > 20 ? self.spec.a.substring(0, 20) : self.spec.a", "self.spec.b"),
        ("lower case", text(), text(), "self.spec.a.lowerAscii()", "self.spec.b"),
        ("trimmed", text(), text(), "self.spec.a.trim()", "self.spec.b"),
        ("first of a list", list(), text(), "self.spec.a[0]", "[self.spec.b]"),
        ("empty list", list(), text(), "self.spec.a.join(',')", "self.spec.b.split(',')"),
        ("overflow", integer(json!({})), integer(json!({})), "self.spec.a * 1000", "self.spec.b / 1000"),
        (
            "one value of an enumeration",
            json!({"type": "string", "enum": ["A", "B", "C"]}),
            text(),
            "self.spec.a == 'C' ? 'B' : self.spec.a",
            "self.spec.b",
        ),
    ];
    for (name, one, other, up, down) in cases {
        let found = sampled([json!({"a": one}), json!({"b": other})], set("a", "b", up, down));
        assert!(found.defects.iter().any(|defect| defect.from == "v1"), "{name}: {found:#?}");
    }
}

#[test]
fn exact_plans_have_no_defect_and_count_their_samples() {
    let text = || json!({"type": "string"});
    let nested = || json!({"type": "object", "required": ["k"], "properties": {"k": text(), "l": {"type": "array", "items": text()}}});
    for (versions, step) in [
        (
            [json!({"a": text(), "n": nested()}), json!({"b": text(), "n": nested()})],
            json!({"renames": {"spec.a": "spec.b"}}),
        ),
        ([json!({"a": text()}), json!({})], json!({"removed": {"spec.a": {"reason": "kept in the bag"}}})),
        ([json!({"p": text()}), json!({"p": integer(json!({}))})], json!({"coerce": {"spec.p": "text"}})),
        (
            [json!({"a": integer(json!({}))}), json!({"b": integer(json!({}))})],
            set("a", "b", "self.spec.a", "self.spec.b"),
        ),
        (
            [json!({"h": text()}), json!({"s": {"type": "object", "properties": {"h": text()}}})],
            json!({"moves": {"spec.h": "spec.s.h"}}),
        ),
    ] {
        let found = sampled(versions, step.clone());
        assert_eq!(lines(&found), [""; 0], "{step}");
        assert!(found.objects > 20 && found.trips >= found.objects, "{step}: {found:?}");
        assert_eq!(found.untried, [""; 0], "{step}");
    }
}

#[test]
fn samples_are_the_same_each_time_and_valid() {
    let step = || set("a", "b", "self.spec.a > 7 ? 7 : self.spec.a", "self.spec.b");
    let versions = || [json!({"a": integer(json!({"minimum": 3}))}), json!({"b": integer(json!({}))})];
    let found = sampled(versions(), step());
    assert_eq!(found, sampled(versions(), step()));
    assert_eq!(found.defects[0].witness["spec"], json!({"a": 8}), "the smallest that its schema allows");
}
