//! Reviews: what the API server asks of a webhook, with everything that nobody should send.

use pushback_crd::schema::testing::Generator;
use serde_json::{Value, json};

use super::person::{full, people};
use super::{converter, load, object, plan};
use crate::review::{Answer, Request, Reviewer};
use crate::{Converter, Why};

const ANNOTATION: &str = "pushback.dev/property-bag";

fn reviewer(converters: Vec<Converter>) -> Reviewer {
    Reviewer::new(converters).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Two versions of which each has a field of its own.
fn lossy() -> Converter {
    converter(
        &[
            ("v1", json!({"both": {"type": "string"}, "old": {"type": "string"}})),
            (
                "v2",
                json!({"both": {"type": "string"}, "new": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
            ),
        ],
        json!({"policy": {"unassessed": "stash"}}),
    )
}

fn review(uid: &str, to: &str, objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
    })
}

fn answer(reviewer: &Reviewer, review: &Value) -> Answer {
    reviewer.answer(Request::read(review.to_string().as_bytes()).expect("a review"))
}

fn converted(reviewer: &Reviewer, to: &str, objects: &[Value]) -> Vec<Value> {
    let mut answer = answer(reviewer, &review("u", to, objects));
    assert_eq!(answer.review["response"]["result"], json!({"status": "Success"}), "{answer:?}");
    match answer.review["response"]["convertedObjects"].take() {
        Value::Array(objects) => objects,
        other => panic!("{other}"),
    }
}

#[track_caller]
fn message(answer: &Answer) -> &str {
    assert_eq!(answer.review["response"]["result"]["status"], "Failure");
    assert_eq!(answer.review["response"].get("convertedObjects"), None);
    let message = answer.review["response"]["result"]["message"].as_str().expect("a message");
    assert_eq!(answer.result.as_ref().err().map(|refusal| refusal.message.as_str()), Some(message));
    message
}

/// Without the annotation that conversions add.
fn metadata(object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.shift_remove(ANNOTATION);
        if annotations.is_empty() {
            metadata.as_object_mut().expect("a map").shift_remove("annotations");
        }
    }
    metadata
}

#[test]
fn an_answer_repeats_version_and_uid_of_its_request() {
    let reviewer = reviewer(vec![lossy()]);
    for version in ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"] {
        let mut review = review("1-2-3", "example.com/v2", &[object("v1", json!({"both": "x"}))]);
        review["apiVersion"] = version.into();
        let answer = answer(&reviewer, &review);
        assert_eq!(
            answer.review,
            json!({"apiVersion": version, "kind": "ConversionReview", "response": {
                "uid": "1-2-3", "result": {"status": "Success"},
                "convertedObjects": [object("v2", json!({"both": "x"}))],
            }})
        );
        assert_eq!(answer.result.map(|done| done.objects), Ok(1));
    }
}

/// `PUSHBACK_SEED` sets the first one.
#[test]
fn lists_of_any_objects_keep_their_order_and_come_back() {
    let reviewer = reviewer(vec![lossy(), people()]);
    let versions = reviewer.converters()[1].lineage().versions.clone();
    let full = full();
    let seed = pushback_crd::schema::testing::edit::number("PUSHBACK_SEED", 1);
    for round in seed..seed + 200 {
        let mut generator = Generator::new(round);
        let objects: Vec<Value> = (0..generator.below(12))
            .map(|index| {
                let mut object = full[generator.below(full.len())].clone();
                let mut metadata = json!({"name": format!("p-{index}"), "uid": format!("{round}-{index}")});
                if generator.chance(50) {
                    metadata["annotations"] = json!({"a": "b"});
                    metadata["managedFields"] = json!([{"manager": "m", "fieldsV1": {"f:spec": {}}}]);
                }
                object["metadata"] = metadata;
                let spec = object["spec"].as_object_mut().expect("a map");
                spec.retain(|_, _| generator.chance(80));
                if generator.chance(10) {
                    object.as_object_mut().expect("a map").shift_remove("spec");
                }
                object
            })
            .collect();
        let to = format!("crm.example.com/{}", versions[generator.below(versions.len())]);
        let there = converted(&reviewer, &to, &objects);
        assert_eq!(there.len(), objects.len());
        for (before, after) in objects.iter().zip(&there) {
            assert_eq!(metadata(after), metadata(before), "seed {round}");
            assert_eq!(after["apiVersion"], to.as_str());
            assert_eq!(after["kind"], "Person");
            let from = before["apiVersion"].as_str().expect("a version");
            let back = converted(&reviewer, from, std::slice::from_ref(after));
            // Storage is the hub: from there everything comes back.
            if to.ends_with("/v20190909") || to == from {
                // Values that an expression has set there come along in the annotation.
                assert_eq!((&back[0]["spec"], metadata(&back[0])), (&before["spec"], metadata(before)), "seed {round}");
            }
        }
    }
}

/// What a client does that reads and writes at a version with fewer fields.
#[test]
fn a_write_at_a_poorer_version_keeps_the_fields_of_the_richer_one() {
    let reviewer = reviewer(vec![lossy()]);
    let stored = object("v2", json!({"both": "x", "new": {"a": 1}}));
    let mut read = converted(&reviewer, "example.com/v1", std::slice::from_ref(&stored)).remove(0);
    assert_eq!(read["spec"], json!({"both": "x"}));
    read["spec"]["both"] = "y".into();
    read["spec"]["old"] = "of v1".into();
    let written = converted(&reviewer, "example.com/v2", &[read]).remove(0);
    assert_eq!(written["spec"], json!({"both": "y", "new": {"a": 1}}));
    let again = converted(&reviewer, "example.com/v1", &[written]).remove(0);
    assert_eq!(again["spec"], json!({"both": "y", "old": "of v1"}));
}

#[test]
fn a_version_with_a_field_for_the_bag_keeps_it_there() {
    let bag = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let with_bag = converter(
        &[("v1", json!({"old": {"type": "string"}})), ("v2", json!({"new": {"type": "string"}, "$propertyBag": bag}))],
        json!({"policy": {"unassessed": "stash", "bag": "property"}}),
    );
    let reviewer = reviewer(vec![with_bag]);
    let stored = converted(&reviewer, "example.com/v2", &[object("v1", json!({"old": "x"}))]).remove(0);
    assert_eq!(stored, object("v2", json!({"$propertyBag": {"old": "x"}})));
    let mut rich = stored;
    rich["spec"]["new"] = "y".into();
    let read = converted(&reviewer, "example.com/v1", std::slice::from_ref(&rich));
    assert_eq!(read[0]["spec"], json!({"old": "x"}));
    assert_eq!(converted(&reviewer, "example.com/v2", &read), [rich]);
}

#[test]
fn an_edited_bag_is_used_and_counted() {
    let reviewer = reviewer(vec![lossy()]);
    let mut stored = converted(&reviewer, "example.com/v2", &[object("v1", json!({"old": "x"}))]).remove(0);
    let text = stored["metadata"]["annotations"][ANNOTATION].as_str().expect("a bag").replace("\"x\"", "\"z\"");
    stored["metadata"]["annotations"][ANNOTATION] = text.into();
    let answer = answer(&reviewer, &review("u", "example.com/v1", &[stored]));
    assert_eq!(answer.review["response"]["convertedObjects"][0]["spec"], json!({"old": "z"}));
    assert_eq!(answer.result.map(|done| done.lost.get(&Why::BagEdited).copied()), Ok(Some(1)));
}

#[test]
fn objects_at_the_wanted_version_pass_unchanged() {
    let reviewer = reviewer(vec![lossy()]);
    let mut same = object("v2", json!({"unknown": [1, {"a": null}]}));
    same["metadata"]["annotations"] = json!({ANNOTATION: "{}"});
    let other_kind = json!({"apiVersion": "example.com/v2", "kind": "Other"});
    let objects = [same, object("v1", json!({"both": "x"})), other_kind];
    let converted = converted(&reviewer, "example.com/v2", &objects);
    assert_eq!((&converted[0], &converted[2]), (&objects[0], &objects[2]));
    assert_eq!(converted[1], object("v2", json!({"both": "x"})));
}

/// Server-side apply sends them.
#[test]
fn objects_without_most_of_their_parts_are_converted() {
    let reviewer = reviewer(vec![people()]);
    for part in [
        json!({}),
        json!({"metadata": {}}),
        json!({"metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a"}, "spec": {}}),
        json!({"metadata": {"name": "a", "annotations": null}, "spec": null}),
        json!({"status": {"phase": "Ready"}}),
    ] {
        let mut object = json!({"apiVersion": "crm.example.com/v20110101", "kind": "Person"});
        object.as_object_mut().expect("a map").extend(part.as_object().expect("a map").clone());
        let converted = converted(&reviewer, "crm.example.com/v20190909", std::slice::from_ref(&object)).remove(0);
        assert_eq!(converted["metadata"], object["metadata"]);
        assert_eq!(converted.get("spec").is_some_and(Value::is_object), object["spec"].is_object(), "{object}");
    }
}

/// Values are not looked at beyond what is converted: the API server validates.
#[test]
fn nothing_is_validated() {
    let reviewer = reviewer(vec![lossy()]);
    let odd = object("v1", json!({"both": [1, {"x": true}]}));
    assert_eq!(converted(&reviewer, "example.com/v2", &[odd])[0]["spec"], json!({"both": [1, {"x": true}]}));
}

#[test]
fn the_first_failure_fails_the_request_with_one_message_that_names_the_object() {
    let fails = converter(
        &[
            ("v1", json!({"n": {"type": "integer"}})),
            ("v2", json!({"n": {"type": "integer"}, "half": {"type": "integer"}})),
        ],
        json!({"steps": [{"from": "v1", "to": "v2", "up": [{"set": "spec.half", "cel": "10 / self.spec.n"}]}]}),
    );
    let reviewer = reviewer(vec![fails]);
    let named = |name: &str, n: i64| {
        let mut object = object("v1", json!({"n": n}));
        object["metadata"] = json!({"name": name, "namespace": "team"});
        object
    };
    let objects = [named("good", 5), named("bad", 0), named("worse", 0)];
    let answer = answer(&reviewer, &review("u", "example.com/v2", &objects));
    let found = message(&answer);
    assert!(
        found.starts_with(
            "Test team/bad cannot be converted from example.com/v1 to example.com/v2: spec.half: the expression that \
             sets it fails: "
        ),
        "{found}"
    );
    assert!(found.ends_with("; correct the field, or the conversion plan"), "{found}");
    let about = answer.result.map_err(|refusal| refusal.about);
    let expected = "Test team/bad cannot be converted from example.com/v1 to example.com/v2: spec.half";
    assert_eq!(about, Err(expected.to_owned()));
}

#[test]
fn what_no_plan_is_for_is_refused_by_name() {
    let reviewer = reviewer(vec![lossy()]);
    let mut other = object("v1", json!({}));
    other["kind"] = "Other".into();
    let text = "0123456789".repeat(1000);
    let long = json!({"apiVersion": text, "kind": text});
    for (to, item, expected) in [
        (
            "example.com/v2",
            other,
            "Other a cannot be converted from example.com/v1 to example.com/v2: the server has no definition of this kind; start it with the definition (--crd)",
        ),
        (
            "example.com/v9",
            object("v1", json!({})),
            "Test a cannot be converted from example.com/v1 to example.com/v9: tests.example.com has no version v9; known are v1, v2; correct the field, or the conversion plan",
        ),
        (
            "else.example.com/v2",
            object("v1", json!({})),
            "Test a cannot be converted from example.com/v1 to else.example.com/v2: \"else.example.com\" is another group",
        ),
        (
            "example.com/v2",
            json!("x"),
            "item 0 of the request cannot be converted from  to example.com/v2: expected an object, found a string",
        ),
        (
            "example.com/v2",
            json!(null),
            "item 0 of the request cannot be converted from  to example.com/v2: expected an object, found nothing",
        ),
        ("example.com/v2", long, &text[..9]),
    ] {
        let answer = answer(&reviewer, &review("u", to, &[item]));
        let found = message(&answer);
        assert!(found.starts_with(expected) && found.len() <= 4096, "{found}");
    }
}

#[test]
fn what_is_no_review_is_refused() {
    let valid = review("u", "example.com/v2", &[]);
    let without = |pointer: &str, key: &str| {
        let mut review = valid.clone();
        review.pointer_mut(pointer).and_then(Value::as_object_mut).expect("a map").shift_remove(key);
        review.to_string()
    };
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_object = valid.to_string().replace("[]", &deep);
    for (body, expected) in [
        (String::new(), "the body is not JSON: "),
        ("{".to_owned(), "the body is not JSON: "),
        ("\u{0}".to_owned(), "the body is not JSON: "),
        (deep, "the body is not JSON: recursion limit exceeded"),
        (deep_object, "the body is not JSON: recursion limit exceeded"),
        ("[]".to_owned(), "expected a ConversionReview of apiextensions.k8s.io/v1, found kind \"\" in \"\""),
        (without("", "kind"), "expected a ConversionReview"),
        (valid.to_string().replace(".io/v1", ".io/v2"), "expected a ConversionReview"),
        (without("", "request"), "request.uid is missing"),
        (without("/request", "uid"), "request.uid is missing"),
    ] {
        let error = Request::read(body.as_bytes()).expect_err("no review");
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(Request::read(b"\xff\xfe{}").is_err());
    let reviewer = reviewer(vec![lossy()]);
    for (body, expected) in [
        (without("/request", "desiredAPIVersion"), "request.desiredAPIVersion is missing"),
        (without("/request", "objects"), "request.objects: expected a list, found nothing"),
        (valid.to_string().replace("[]", "{}"), "request.objects: expected a list, found a map"),
    ] {
        let answer = reviewer.answer(Request::read(body.as_bytes()).expect("a review"));
        assert_eq!((message(&answer), &answer.review["response"]["uid"]), (expected, &json!("u")));
    }
}

/// Every part of a review replaced by every kind of value.
#[test]
fn wrong_shapes_are_answered() {
    let reviewer = reviewer(vec![lossy(), people()]);
    let mut object = object("v1", json!({"both": "x", "old": "y"}));
    object["metadata"]["annotations"] = json!({ANNOTATION: "{\"digest\":1,\"bags\":[{\"at\":[{}],\"entries\":{}}]}"});
    let review = review("u", "example.com/v2", &[object]);
    let places = [
        "",
        "/kind",
        "/apiVersion",
        "/request",
        "/request/uid",
        "/request/desiredAPIVersion",
        "/request/objects",
        "/request/objects/0",
        "/request/objects/0/kind",
        "/request/objects/0/apiVersion",
        "/request/objects/0/metadata",
        "/request/objects/0/metadata/name",
        "/request/objects/0/metadata/annotations",
        "/request/objects/0/metadata/annotations/pushback.dev~1property-bag",
        "/request/objects/0/spec",
        "/request/objects/0/spec/both",
    ];
    let values = [
        json!(null),
        json!(1),
        json!(-0.5),
        json!(""),
        json!("x/y/z"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"": {}}),
    ];
    for place in places {
        for value in &values {
            let mut review = review.clone();
            *review.pointer_mut(place).expect("a place") = value.clone();
            if let Ok(request) = Request::read(review.to_string().as_bytes()) {
                let answer = reviewer.answer(request);
                assert_eq!(answer.review["response"]["uid"], review["request"]["uid"]);
                let status = answer.review["response"]["result"]["status"].as_str();
                assert_eq!(status, Some(if answer.result.is_ok() { "Success" } else { "Failure" }));
            }
        }
    }
}

#[test]
fn many_objects_and_a_large_one_are_converted() {
    let reviewer = reviewer(vec![lossy()]);
    let many: Vec<Value> = (0..20_000).map(|index| object("v1", json!({"both": index.to_string()}))).collect();
    let converted_many = converted(&reviewer, "example.com/v2", &many);
    let specs = |objects: &[Value]| -> Vec<Value> { objects.iter().map(|object| object["spec"].clone()).collect() };
    assert_eq!(specs(&converted_many), specs(&many));
    let large = object("v1", json!({"both": "x".repeat(3 << 20)}));
    assert_eq!(converted(&reviewer, "example.com/v2", &[large])[0]["apiVersion"], "example.com/v2");
    // More than an annotation holds.
    let answer =
        answer(&reviewer, &review("u", "example.com/v2", &[object("v1", json!({"old": "x".repeat(3 << 18)}))]));
    assert!(message(&answer).contains("what this version has no fields for takes"), "{}", message(&answer));
}

#[test]
fn plans_that_cannot_be_served_are_refused_together() {
    let nowhere = converter(&[("v1", json!({})), ("v2", json!({}))], json!({"policy": {"bag": "nowhere"}}));
    let definition =
        super::definition(&[("v1", json!({"a": {"type": "string"}})), ("v2", json!({"a": {"type": "string"}}))]);
    let plan = plan(json!({"steps": [{"from": "v1", "to": "v2", "up": [{"program": "translate"}]}]}));
    let program = load(&plan, &definition).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let errors = Reviewer::new(vec![nowhere, program]).expect_err("errors");
    assert_eq!(errors.len(), 3, "{errors:#?}");
    assert!(errors[0].contains("`bag: nowhere`") && errors[1].contains("\"translate\""), "{errors:#?}");
    assert_eq!(errors[2], "tests.example.com and tests.example.com define the same kind");
    assert_eq!(Reviewer::new(Vec::new()).map(|reviewer| reviewer.converters().len()), Ok(0));
}

#[test]
fn an_annotation_that_is_not_a_map_is_not_overwritten() {
    let reviewer = reviewer(vec![lossy()]);
    let mut object = object("v1", json!({"old": "x"}));
    object["metadata"]["annotations"] = json!([]);
    let answer = answer(&reviewer, &review("u", "example.com/v2", &[object]));
    assert!(message(&answer).contains("metadata.annotations is not a map"), "{}", message(&answer));
}
