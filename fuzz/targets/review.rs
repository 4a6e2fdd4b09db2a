//! What is sent to a conversion webhook. No panic; an answer belongs to its request, with an object for each that came.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pushback_objects::Positions;
use pushback_conversion::review::{Request, Reviewer};
use pushback_conversion::{compile, read};
use pushback_objects::source::Document;
use serde_json::Value;

static REVIEWER: LazyLock<Reviewer> = LazyLock::new(|| {
    let yaml = |text: &str| -> Value { serde_yaml::from_str(text).expect("YAML") };
    let positions = Arc::new(Positions::of_file("plan.yaml"));
    let plan = Document { value: yaml(include_str!("../../examples/conversion-webhook/plan.yaml")), positions };
    let definition = yaml(include_str!("../../examples/conversion-webhook/crd.yaml"));
    let converter = compile(&read(&plan).expect("a plan"), &definition).expect("a plan for the definition");
    Reviewer::new(vec![converter]).expect("a plan that can be served")
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(request) = Request::read(bytes) else { return };
    let asked: Value = serde_json::from_slice(bytes).expect("a request is JSON");
    let answer = REVIEWER.answer(request);
    let response = &answer.review["response"];
    assert_eq!(response["uid"], asked["request"]["uid"]);
    if let Ok(done) = answer.result {
        let (objects, converted) = (&asked["request"]["objects"], &response["convertedObjects"]);
        assert_eq!(objects.as_array().map(Vec::len), Some(done.objects));
        assert_eq!(converted.as_array().map(Vec::len), Some(done.objects));
        for (before, after) in objects.as_array().into_iter().flatten().zip(converted.as_array().into_iter().flatten()) {
            assert_eq!(after["apiVersion"], asked["request"]["desiredAPIVersion"]);
            assert_eq!((&after["kind"], &after["metadata"]["name"]), (&before["kind"], &before["metadata"]["name"]));
        }
    }
});
