//! Every operation, there and back: what it gives, and that what it cannot express comes back.

use serde_json::{Value, json};

use super::{converter, object};
use crate::{Converter, Loss, NoPrograms, ProgramRequest, Programs, Why};

/// What `spec` of a version is in storage, and that it comes back from there.
#[track_caller]
fn stored(converter: &Converter, version: &str, spec: Value) -> Value {
    let original = object(version, spec);
    let stored = converter.to_storage(original.clone(), &NoPrograms).expect("a conversion").object;
    let back = converter.from_storage(stored.clone(), version, &NoPrograms).expect("a conversion").object;
    assert_eq!(back, original, "stored as {stored:#}");
    stored["spec"].clone()
}

/// What `spec` of the hub is in another version.
fn down(converter: &Converter, version: &str, spec: Value) -> Value {
    let object = object(converter.hub(), spec);
    converter.convert(object, version, &NoPrograms).expect("a conversion").object["spec"].clone()
}

fn step(mut step: Value) -> Value {
    step["from"] = json!("v1");
    step["to"] = json!("v2");
    json!({"steps": [step]})
}

const STRING: fn() -> Value = || json!({"type": "string"});

#[test]
fn fields_correspond_by_name_and_by_name_ignoring_case() {
    let converter = converter(
        &[
            ("v1", json!({"a": STRING(), "URL": STRING(), "in": {"type": "object", "properties": {"x": STRING()}}})),
            ("v2", json!({"a": STRING(), "url": STRING(), "in": {"type": "object", "properties": {"X": STRING()}}})),
        ],
        json!({}),
    );
    let spec = stored(&converter, "v1", json!({"a": "1", "URL": "2", "in": {"x": "3"}}));
    assert_eq!(spec, json!({"a": "1", "url": "2", "in": {"X": "3"}}));
}

#[test]
fn renames_may_swap_and_apply_in_every_item() {
    let item = |name: &str| json!({"type": "array", "items": {"type": "object", "properties": {name: STRING()}}});
    let converter = converter(
        &[
            ("v1", json!({"a": STRING(), "b": STRING(), "list": item("old")})),
            ("v2", json!({"a": STRING(), "b": STRING(), "list": item("new")})),
        ],
        step(json!({"renames": {"spec.a": "spec.b", "spec.b": "spec.a", "spec.list[*].old": "spec.list[*].new"}})),
    );
    let spec = stored(&converter, "v1", json!({"a": "1", "b": "2", "list": [{"old": "3"}, {}]}));
    assert_eq!(spec, json!({"b": "1", "a": "2", "list": [{"new": "3"}, {}]}));
}

#[test]
fn moves_make_objects_and_take_them_away() {
    let nested = |name: &str| json!({"type": "object", "properties": {name: STRING(), "kept": STRING()}});
    let converter = converter(
        &[
            ("v1", json!({"host": STRING(), "in": nested("port")})),
            ("v2", json!({"port": {"type": "integer"}, "in": nested("host")})),
        ],
        step(json!({
            "moves": {"spec.host": "spec.in.host", "spec.in.port": "spec.port"}, "coerce": {"spec.in.port": "text"},
        })),
    );
    assert_eq!(stored(&converter, "v1", json!({"host": "h"})), json!({"in": {"host": "h"}}));
    assert_eq!(stored(&converter, "v1", json!({"in": {"port": "80"}})), json!({"port": 80}));
    let spec = stored(&converter, "v1", json!({"host": "h", "in": {"port": "0x50", "kept": "k"}}));
    assert_eq!(spec, json!({"in": {"kept": "k", "host": "h"}, "$propertyBag": {"in.port@v1": "\"0x50\""}}));
    assert_eq!(
        down(&converter, "v1", json!({"port": 80, "in": {"host": "h"}})),
        json!({"in": {"port": "80"}, "host": "h"})
    );
}

#[test]
fn a_coerced_value_that_has_no_counterpart_is_kept() {
    let converter = converter(
        &[
            (
                "v1",
                json!({"port": STRING(), "size": STRING(), "ratio": {"type": "number"}, "all": {"type": "array", "items": STRING()}}),
            ),
            (
                "v2",
                json!({
                    "port": {"type": "integer"}, "size": {"type": "integer"}, "ratio": {"type": "integer"},
                    "all": {"type": "array", "items": {"type": "integer"}},
                }),
            ),
        ],
        step(json!({"coerce": {"spec.port": "text", "spec.size": "quantity", "spec.all[*]": "text"}})),
    );
    assert_eq!(
        stored(&converter, "v1", json!({"port": "80", "ratio": 2.0})),
        json!({
            "port": 80, "ratio": 2, "$propertyBag": {"ratio@v1": "2.0"},
        })
    );
    assert_eq!(
        stored(&converter, "v1", json!({"port": "080"})),
        json!({"port": 80, "$propertyBag": {"port@v1": "\"080\""}})
    );
    assert_eq!(stored(&converter, "v1", json!({"port": "http"})), json!({"$propertyBag": {"port@v1": "\"http\""}}));
    assert_eq!(stored(&converter, "v1", json!({"size": "1Gi"}))["size"], 1_073_741_824);
    assert_eq!(stored(&converter, "v1", json!({"ratio": 2.5})), json!({"$propertyBag": {"ratio@v1": "2.5"}}));
    assert_eq!(stored(&converter, "v1", json!({"all": ["1", "2"]})), json!({"all": [1, 2]}));
    assert_eq!(
        stored(&converter, "v1", json!({"all": ["1", "x"]})),
        json!({"$propertyBag": {"all@v1": "[\"1\",\"x\"]"}})
    );
    assert_eq!(down(&converter, "v1", json!({"port": 80, "size": 3})), json!({"port": "80", "size": "3"}));
}

#[test]
fn an_original_is_given_back_only_if_the_value_was_not_changed_since() {
    let converter = converter(
        &[("v1", json!({"port": STRING()})), ("v2", json!({"port": {"type": "integer"}}))],
        step(json!({"coerce": {"spec.port": "text"}})),
    );
    let changed = object("v2", json!({"port": 81, "$propertyBag": {"port@v1": "\"080\""}}));
    let back = converter.from_storage(changed, "v1", &NoPrograms).expect("a conversion").object;
    assert_eq!(back["spec"], json!({"port": "81"}));
    let removed = object("v2", json!({"$propertyBag": {"port@v1": "\"080\""}}));
    let back = converter.from_storage(removed, "v1", &NoPrograms).expect("a conversion").object;
    assert_eq!(back["spec"], json!({}));
}

#[test]
fn enumerations_get_other_values_by_declaration_and_by_case() {
    let with = |values: Value| json!({"type": "string", "enum": values});
    let converter = converter(
        &[
            ("v1", json!({"mode": with(json!(["Old", "Same", "Older"])), "level": with(json!(["LOW", "HIGH"]))})),
            ("v2", json!({"mode": with(json!(["New", "Same"])), "level": with(json!(["Low", "High"]))})),
        ],
        step(json!({
            "enums": {"spec.mode": {"Old": "New", "Older": "New"}},
            "acknowledge": {"spec.mode": "nobody could tell them apart"},
        })),
    );
    assert_eq!(
        stored(&converter, "v1", json!({"mode": "Same", "level": "LOW"})),
        json!({"mode": "Same", "level": "Low"})
    );
    assert_eq!(
        stored(&converter, "v1", json!({"mode": "Old"})),
        json!({"mode": "New", "$propertyBag": {"mode@v1": "\"Old\""}})
    );
    assert_eq!(
        down(&converter, "v1", json!({"mode": "New", "level": "High"})),
        json!({"mode": "Older", "level": "HIGH"})
    );
}

#[test]
fn lists_and_maps_get_another_form() {
    let list = |items: Value| json!({"type": "array", "items": items});
    let map = |values: Value| json!({"type": "object", "additionalProperties": values});
    let entry = |field: &str| json!({"type": "object", "properties": {"name": STRING(), field: STRING()}});
    let rest = |field: &str| json!({"type": "object", "properties": {field: STRING()}});
    let converter = converter(
        &[
            (
                "v1",
                json!({
                    "one": STRING(), "many": list(STRING()), "env": list(entry("value")), "ports": list(entry("old")),
                    "labels": map(STRING()),
                }),
            ),
            (
                "v2",
                json!({
                    "one": list(STRING()), "many": STRING(), "env": map(STRING()), "ports": map(rest("new")),
                    "labels": list(entry("value")),
                }),
            ),
        ],
        step(json!({
            "lists": {
                "spec.one": "wrapList", "spec.many": "unwrapList",
                "spec.env": {"listToMap": {"key": "name", "value": "value"}}, "spec.ports": {"listToMap": "name"},
                "spec.labels": {"mapToList": {"key": "name", "value": "value"}},
            },
            "renames": {"spec.ports[*].old": "spec.ports[*].new"},
        })),
    );
    assert_eq!(stored(&converter, "v1", json!({"one": "a", "many": ["b"]})), json!({"one": ["a"], "many": "b"}));
    assert_eq!(
        stored(&converter, "v1", json!({"env": [{"name": "A", "value": "1"}], "ports": [{"name": "p", "old": "x"}]})),
        json!({"env": {"A": "1"}, "ports": {"p": {"new": "x"}}})
    );
    assert_eq!(
        stored(&converter, "v1", json!({"labels": {"a": "1"}})),
        json!({"labels": [{"name": "a", "value": "1"}]})
    );
    // What has no counterpart is kept as it was.
    for spec in [
        json!({"many": []}),
        json!({"many": ["b", "c"]}),
        json!({"env": [{"name": "A"}, {"name": "A", "value": "2"}]}),
        json!({"env": [{"value": "1"}]}),
    ] {
        assert!(stored(&converter, "v1", spec.clone()).get("$propertyBag").is_some(), "{spec}");
    }
    assert_eq!(
        down(&converter, "v1", json!({"one": ["a"], "many": "b", "env": {"A": "1"}, "ports": {"p": {"new": "x"}}})),
        json!({"one": "a", "many": ["b"], "env": [{"name": "A", "value": "1"}], "ports": [{"name": "p", "old": "x"}]})
    );
}

#[test]
fn every_object_has_its_own_bag() {
    let item = |more: Value| {
        let mut properties = json!({"name": STRING()});
        properties.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        json!({"type": "array", "items": {"type": "object", "properties": properties}})
    };
    let converter = converter(
        &[
            (
                "v1",
                json!({"items": item(json!({"gone": {"type": "object", "properties": {"a": {"type": "integer"}}}}))}),
            ),
            ("v2", json!({"items": item(json!({}))})),
        ],
        step(json!({"removed": {"spec.items[*].gone": {"reason": "nobody used it"}}})),
    );
    let spec = stored(&converter, "v1", json!({"items": [{"name": "x", "gone": {"a": 1}}, {"name": "y"}]}));
    assert_eq!(spec, json!({"items": [{"name": "x", "$propertyBag": {"gone": "{\"a\":1}"}}, {"name": "y"}]}));
}

#[test]
fn nulls_and_fields_without_a_schema_come_back() {
    let open = |kept: bool| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": kept, "properties": {"a": STRING()}});
    let converter = converter(
        &[
            (
                "v1",
                json!({"in": open(true), "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "n": {"type": "string", "nullable": true}}),
            ),
            ("v2", json!({"in": open(false), "any": {"type": "object", "properties": {"x": STRING()}}, "n": STRING()})),
        ],
        json!({}),
    );
    assert_eq!(
        stored(&converter, "v1", json!({"in": {"a": "1", "b": [2]}, "any": {"x": "1", "y": 2}, "n": null})),
        json!({
            "in": {"a": "1", "$propertyBag": {"*@v1": "{\"b\":[2]}"}},
            "any": {"x": "1", "$propertyBag": {"*@v1": "{\"y\":2}"}},
            "$propertyBag": {"n@v1": "null"},
        })
    );
}

#[test]
fn a_name_with_another_meaning_has_a_key_of_its_own() {
    let converter = converter(
        &[
            ("v1", json!({"x": STRING(), "kept": STRING()})),
            ("v2", json!({"x": {"type": "array", "items": STRING()}, "kept": STRING()})),
            ("v3", json!({"kept": STRING()})),
            ("v4", json!({"x": {"type": "boolean"}, "kept": STRING()})),
        ],
        json!({"steps": [
            {"from": "v1", "to": "v2", "removed": {"spec.x": {"reason": "now a list of something else"}}},
            {"from": "v2", "to": "v3", "removed": {"spec.x": {"reason": "unused"}}},
            {"from": "v3", "to": "v4", "separate": ["spec.x"]},
        ]}),
    );
    assert_eq!(stored(&converter, "v1", json!({"x": "1"})), json!({"$propertyBag": {"x@v1": "1"}}));
    assert_eq!(stored(&converter, "v2", json!({"x": ["1"]})), json!({"$propertyBag": {"x": "[\"1\"]"}}));
    let down = converter.from_storage(object("v4", json!({"x": true})), "v2", &NoPrograms).expect("a conversion");
    assert_eq!(down.object["spec"], json!({}));
}

#[test]
fn a_field_that_comes_back_in_the_same_shape_is_restored() {
    let converter = converter(
        &[("v1", json!({"x": STRING()})), ("v2", json!({})), ("v3", json!({"x": STRING()}))],
        json!({"steps": [{"from": "v1", "to": "v2", "removed": {"spec.x": {"reason": "a mistake"}}}]}),
    );
    assert_eq!(stored(&converter, "v1", json!({"x": "1"})), json!({"x": "1"}));
}

#[test]
fn a_dropped_field_is_lost_and_named() {
    let converter = converter(
        &[("v1", json!({"x": STRING(), "y": STRING()})), ("v2", json!({"y": STRING()}))],
        step(json!({
            "removed": {"spec.x": {"reason": "a secret", "drop": true}}, "acknowledge": {"spec.x": "it must not be kept"},
        })),
    );
    let converted =
        converter.convert(object("v1", json!({"x": "1", "z": 1})), "v2", &NoPrograms).expect("a conversion");
    assert_eq!(converted.object["spec"], json!({}));
    let lost: Vec<(&str, Why)> = converted.lost.iter().map(|lost| (lost.path.as_str(), lost.why)).collect();
    assert_eq!(lost, [("spec.z", Why::Unknown), ("spec.x", Why::Dropped)]);
    assert!(converter.operations().iter().any(|operation| operation.loss == Loss::Lost));
}

#[test]
fn an_expression_fills_a_field_or_replaces_it_and_applies_in_every_item() {
    let items = json!({"type": "array", "items": {"type": "object", "properties": {"a": STRING(), "b": STRING()}}});
    let spec = json!({"a": STRING(), "b": STRING(), "items": items, "n": {"type": "integer"}});
    let converter = converter(
        &[("v1", spec.clone()), ("v2", spec)],
        step(json!({
            "up": [
                {"set": "spec.b", "cel": "self.spec.a + '!'"},
                {"set": "spec.n", "cel": "size(self.spec.items)", "when": "always"},
                {"at": "spec.items[*]", "set": "b", "cel": "self.a.upperAscii()"},
            ],
            "down": [{"set": "spec.a", "cel": "'default'"}],
        })),
    );
    let up = |spec: Value| {
        converter.convert(object("v1", spec), "v2", &NoPrograms).expect("a conversion").object["spec"].clone()
    };
    assert_eq!(
        up(json!({"a": "x", "n": 7, "items": [{"a": "y"}, {"a": "z", "b": "kept"}, {}]})),
        json!({"a": "x", "n": 3, "items": [{"a": "y", "b": "Y"}, {"a": "z", "b": "kept"}, {}], "b": "x!"})
    );
    assert_eq!(up(json!({"b": "kept"})), json!({"b": "kept"}));
    assert_eq!(down(&converter, "v1", json!({})), json!({"a": "default"}));
    let partial = json!({"apiVersion": "example.com/v2", "kind": "Test", "metadata": {"name": "a"}});
    let converted = converter.convert(partial, "v1", &NoPrograms).expect("a conversion");
    assert_eq!(converted.object.get("spec"), None);
}

#[test]
fn an_expression_that_fails_names_the_field() {
    let converter = converter(
        &[
            ("v1", json!({"a": STRING(), "n": {"type": "integer"}})),
            ("v2", json!({"a": STRING(), "n": {"type": "integer"}})),
        ],
        step(json!({"up": [{"set": "spec.n", "cel": "int(self.spec.a)"}]})),
    );
    let error = converter.convert(object("v1", json!({"a": "x"})), "v2", &NoPrograms).expect_err("an error");
    assert!(error.to_string().starts_with("spec.n: the expression that sets it fails"), "{error}");
}

#[test]
fn hooks_of_a_version_run_on_its_own_side() {
    let spec = json!({"a": STRING(), "b": STRING()});
    let converter = converter(
        &[("v1", spec.clone()), ("v2", spec.clone()), ("v3", spec)],
        json!({"hooks": [
            {"version": "v1", "assignTo": [{"set": "spec.a", "cel": "'api to'"}], "assignFrom": [{"set": "spec.b", "cel": "'api from'"}]},
            {"version": "v2", "side": "storage", "assignTo": [{"set": "spec.b", "cel": "'storage to'"}]},
        ]}),
    );
    let up = converter.to_storage(object("v1", json!({})), &NoPrograms).expect("a conversion").object;
    assert_eq!(up["spec"], json!({"a": "api to", "b": "storage to"}));
    assert_eq!(down(&converter, "v1", json!({})), json!({"b": "api from"}));
    let expected = [("v1", "v3", true), ("v2", "v3", true), ("v3", "v1", true), ("v3", "v2", false)];
    for (from, to, has) in expected {
        assert_eq!(converter.has_hooks(from, to), has, "{from} {to}");
    }
}

/// Answers with the object, a field added, and a label where told so.
struct Marker(bool);

impl Programs for Marker {
    fn run(&self, program: &str, request: &ProgramRequest<'_>) -> Result<Value, String> {
        let mut answer = request.after.clone();
        answer["spec"]["a"] =
            json!(format!("{program} {} {} {}", request.from, request.to, request.before["spec"]["a"]));
        if self.0 {
            answer["metadata"]["name"] = json!("other");
        }
        Ok(answer)
    }
}

#[test]
fn a_program_converts_an_object_only_if_a_policy_source_names_it() {
    let converter = converter(
        &[("v1", json!({"a": STRING()})), ("v2", json!({"a": STRING()}))],
        step(json!({"up": [{"program": "split"}]})),
    );
    let old = object("v1", json!({"a": "x"}));
    let converted = converter.convert(old.clone(), "v2", &Marker(false)).expect("a conversion");
    assert_eq!(converted.object["spec"]["a"], "split v1 v2 \"x\"");
    assert!(converter.convert(old.clone(), "v2", &Marker(true)).is_err());
    let error = converter.convert(old, "v2", &NoPrograms).expect_err("an error");
    assert_eq!(error.to_string(), "program \"split\": the program \"split\" is not started here");
}

#[test]
fn an_annotation_carries_bags_and_finds_items_again() {
    let item = |more: &str| json!({"type": "array", "items": {"type": "object", "properties": {"name": STRING(), more: STRING()}}});
    let converter = converter(
        &[("v1", json!({"items": item("old"), "x": STRING()})), ("v2", json!({"items": item("new"), "y": STRING()}))],
        json!({"policy": {"unassessed": "stash", "bag": "annotation"}}),
    );
    let convert = |object: &Value, to: &str| converter.convert(object.clone(), to, &NoPrograms).expect("a conversion");
    let old = object("v1", json!({"x": "1", "items": [{"name": "a", "old": "2"}, {"name": "b"}]}));
    let new = convert(&old, "v2");
    assert_eq!(new.object["spec"], json!({"items": [{"name": "a"}, {"name": "b"}]}));
    assert_eq!(convert(&new.object, "v1").object, old);
    // Another order, and another item: the first one keeps what is its own.
    let mut reordered = new.object.clone();
    reordered["spec"]["items"] = json!([{"name": "c"}, {"name": "b"}, {"name": "a"}]);
    let back = convert(&reordered, "v1");
    assert_eq!(back.object["spec"]["items"], json!([{"name": "c"}, {"name": "b"}, {"name": "a", "old": "2"}]));
    // The item is gone: what it carried is named.
    reordered["spec"]["items"] = json!([{"name": "c"}]);
    let back = convert(&reordered, "v1");
    assert_eq!((back.lost[0].path.as_str(), back.lost[0].why), ("spec.items[0].old", Why::BagLost));
    // Somebody edits the annotation.
    let annotation = |object: &mut Value| object["metadata"]["annotations"]["pushback.dev/property-bag"].take();
    let mut edited = new.object.clone();
    let text = annotation(&mut edited).as_str().expect("a string").replace("\"1\"", "\"9\"");
    edited["metadata"]["annotations"]["pushback.dev/property-bag"] = text.into();
    let back = convert(&edited, "v1");
    assert_eq!((back.object["spec"]["x"].clone(), back.lost[0].why), (json!("9"), Why::BagEdited));
    edited["metadata"]["annotations"]["pushback.dev/property-bag"] = json!("{");
    assert_eq!(convert(&edited, "v1").lost[0].why, Why::BagLost);
}

#[test]
fn a_definition_with_fields_for_bags_keeps_them() {
    let bag = json!({"type": "object", "additionalProperties": STRING()});
    let converter = converter(
        &[("v1", json!({"x": STRING()})), ("v2", json!({"$propertyBag": bag}))],
        json!({"policy": {"unassessed": "stash"}}),
    );
    let old = object("v1", json!({"x": "1"}));
    let new = converter.convert(old.clone(), "v2", &NoPrograms).expect("a conversion");
    assert_eq!((new.object["spec"].clone(), new.lost.len()), (json!({"$propertyBag": {"x": "1"}}), 0));
    assert_eq!(converter.convert(new.object, "v1", &NoPrograms).expect("a conversion").object, old);
}

#[test]
fn without_a_bag_what_is_lost_is_named() {
    let converter = converter(
        &[("v1", json!({"x": STRING(), "a": STRING()})), ("v2", json!({"a": STRING()}))],
        json!({"policy": {"unassessed": "stash", "bag": "nowhere"}}),
    );
    let new = converter.convert(object("v1", json!({"x": "1", "a": "2"})), "v2", &NoPrograms).expect("a conversion");
    let lost: Vec<(&str, Why)> = new.lost.iter().map(|lost| (lost.path.as_str(), lost.why)).collect();
    assert_eq!((new.object["spec"].clone(), lost), (json!({"a": "2"}), vec![("spec.x", Why::NotKept)]));
}

#[test]
fn a_version_that_is_gone_keeps_its_schema_in_the_plan() {
    let kept = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"old": STRING()}}}});
    let converter = converter(
        &[("v2", json!({"new": STRING()}))],
        json!({
            "schemas": {"v1": {"openAPIV3Schema": kept}},
            "steps": [{"from": "v1", "to": "v2", "renames": {"spec.old": "spec.new"}}],
        }),
    );
    assert_eq!(stored(&converter, "v1", json!({"old": "1"})), json!({"new": "1"}));
}
