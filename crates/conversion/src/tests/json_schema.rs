//! The JSON Schema accepts what the reader accepts: every plan of these tests, and the example after a change of any node.

use std::sync::{Arc, LazyLock};

use pushback_objects::json_schema::testing::differences;
use pushback_objects::source::Document;
use pushback_objects::source::testing::numbered;
use serde_json::Value;

use super::yaml;
use crate::{json_schema::json_schema, read};

static VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::validator_for(&json_schema()).expect("a JSON Schema"));

/// Fails if an editor would complain about this plan.
pub(super) fn accept(plan: &Value) {
    let faults: Vec<String> =
        VALIDATOR.iter_errors(plan).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{plan}\n{}", faults.join("\n"));
}

/// A plan with every key.
const EVERY_KEY: &str = "
apiVersion: pushback.dev/v1alpha1
kind: ConversionPlan
metadata: {name: tests.example.com, labels: {a: b}, annotations: {c: d}}
hub: v2
order: [v1, v2]
previews: [v3]
policy: {unassessed: stash, bag: annotation}
schemas: {v0: {type: object}}
types: {v1: {spec.a: Thing}}
steps:
- from: v1
  to: v2
  renames: {spec.a: b}
  moves: {spec.c: spec.d}
  typeRenames: {Thing: Item}
  removed:
    spec.e: {reason: unused, drop: true, up: {set: spec.f, cel: 'self.spec.e'}, down: {program: back}}
    spec.g: {assessed: false}
  coerce: {spec.h: text}
  enums: {spec.i: {Old: New}}
  lists: {spec.j: wrapList, spec.k: {listToMap: {key: name, value: value}}, spec.l: {mapToList: name}}
  separate: [spec.m]
  acknowledge: {spec.n: it is only a comment}
  up: [{at: 'spec.items[*]', set: size, cel: '1', when: always}]
  down: [{program: back}]
hooks:
- {version: v2, side: storage, assignTo: [{set: spec.o, cel: '1'}], assignFrom: [{set: spec.p, cel: '2'}]}
";

fn errors(plan: &Value) -> Vec<String> {
    let document = Document { value: plan.clone(), positions: Arc::new(numbered(plan, "plan.yaml")) };
    read(&document).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn schema_and_reader_agree_on_every_changed_node_of_a_plan() {
    let plan = yaml(EVERY_KEY);
    assert_eq!(errors(&plan), Vec::<String>::new());
    accept(&plan);
    let differences = differences(&plan, |changed| VALIDATOR.is_valid(changed), errors);
    assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
}
