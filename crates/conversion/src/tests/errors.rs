//! What is wrong with a plan is said with its position, and everything at once.

use serde_json::{Value, json};

use super::{definition, load, plan};

const STRING: fn() -> Value = || json!({"type": "string"});

/// The errors of a plan, each with its hints.
fn errors(versions: &[(&str, Value)], more: Value) -> Vec<String> {
    match load(&plan(more), &definition(versions)) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| format!("{error} | {}", error.hints.join("; "))).collect(),
    }
}

/// The errors of a step from v1 to v2; the step is at line 7.
fn of_step(old: Value, new: Value, mut step: Value) -> Vec<String> {
    step["from"] = json!("v1");
    step["to"] = json!("v2");
    errors(&[("v1", old), ("v2", new)], json!({"steps": [step]}))
}

#[test]
fn a_field_that_goes_must_be_decided_about() {
    let (old, new) = (json!({"alphaKey": STRING(), "a": STRING()}), json!({"alphabetKey": STRING(), "a": STRING()}));
    assert_eq!(
        of_step(old.clone(), new.clone(), json!({})),
        ["plan.yaml:7:1: spec.alphaKey of v1 is not in v2, and the plan does not say why \
         | was it renamed to spec.alphabetKey? then list it under renames; list it under removed of this step with a reason",]
    );
    let listed = of_step(old, new, json!({"removed": {"spec.alphaKey": {"assessed": false}}}));
    assert!(listed[0].starts_with("plan.yaml:9:1: spec.alphaKey of v1 is not in v2"), "{listed:?}");
    let all = errors(&[("v1", json!({"x": STRING()})), ("v2", json!({}))], json!({}));
    assert!(all[0].starts_with("plan.yaml:1:1: spec.x of v1"), "{all:?}");
}

#[test]
fn a_path_must_lead_to_a_field() {
    let same = || json!({"a": STRING(), "b": STRING()});
    let found = of_step(same(), same(), json!({"renames": {"spec.aa": "spec.b", "spec.a": "spec.c"}}));
    assert_eq!(
        found,
        ["plan.yaml:9:1: v1 has no field spec.aa | did you mean spec.a?", "plan.yaml:10:1: v2 has no field spec.c | ",]
    );
    let found = of_step(same(), same(), json!({"moves": {"spec.c": "spec.b"}}));
    assert!(found.contains(&"plan.yaml:9:1: v1 has no field spec.c | ".to_owned()), "{found:?}");
    let found = of_step(same(), same(), json!({"up": [{"set": "spec.c", "cel": "self.spec.a"}]}));
    assert_eq!(found, ["plan.yaml:9:1: v2 has no field spec.c | "]);
}

#[test]
fn an_entry_that_is_never_used_is_an_error() {
    let same = || json!({"a": STRING(), "b": STRING()});
    for (key, value) in [
        ("removed", json!({"spec.a": {"reason": "x"}, "spec.c": {"reason": "x"}})),
        ("removed", json!({"spec.c": {"reason": "x"}})),
        ("coerce", json!({"spec.c": "text"})),
        ("enums", json!({"spec.c": {"A": "B"}})),
        ("lists", json!({"spec.c": "wrapList"})),
        ("separate", json!(["spec.c"])),
        ("acknowledge", json!({"spec.a": "why"})),
        ("typeRenames", json!({"A": "B"})),
        ("up", json!([{"at": "spec.c", "set": "a", "cel": "1"}])),
    ] {
        let found = of_step(same(), same(), json!({key: value}));
        let is_unused = found.iter().any(|error| error.contains("the step from v1 to v2 has no use for this"));
        assert!(is_unused, "{key} {value}: {found:?}");
    }
}

#[test]
fn a_target_has_one_source() {
    let old = json!({"a": STRING(), "b": STRING(), "c": STRING()});
    let new = json!({"c": STRING()});
    let found = of_step(old.clone(), new.clone(), json!({"renames": {"spec.a": "spec.c", "spec.b": "spec.c"}}));
    assert!(found.iter().any(|error| error.contains("spec.c would have two sources")), "{found:?}");
    let found =
        of_step(old.clone(), new, json!({"renames": {"spec.a": "spec.c"}, "removed": {"spec.b": {"reason": "x"}}}));
    assert!(found.iter().any(|error| error.contains("spec.c would have two sources, spec.a and spec.c")), "{found:?}");
    let found = of_step(old.clone(), old, json!({"moves": {"spec.a": "spec.c", "spec.b": "spec.c"}}));
    assert!(found.iter().any(|error| error.contains("spec.c would have two sources")), "{found:?}");
    let found = errors(&[("v1", json!({"aB": STRING(), "Ab": STRING()})), ("v2", json!({"ab": STRING()}))], json!({}));
    assert!(found[0].contains("spec.Ab and spec.aB of v1, and spec.ab of v2 differ only in case"), "{found:?}");
}

#[test]
fn types_that_differ_need_a_declaration() {
    let integer = || json!({"type": "integer"});
    let found = of_step(json!({"a": STRING()}), json!({"a": integer()}), json!({}));
    assert!(
        found[0].contains("spec.a of v1 and spec.a of v2: one is of type string, the other of type integer"),
        "{found:?}"
    );
    let list = json!({"type": "array", "items": STRING()});
    let found = of_step(json!({"a": list}), json!({"a": STRING()}), json!({"coerce": {"spec.a": "text"}}));
    assert!(found[0].contains("only single values are coerced"), "{found:?}");
    let found =
        of_step(json!({"a": integer()}), json!({"a": {"type": "boolean"}}), json!({"coerce": {"spec.a": "text"}}));
    assert!(found[0].contains("there is no way from integer to boolean"), "{found:?}");
    let found = of_step(json!({"a": STRING()}), json!({"a": STRING()}), json!({"lists": {"spec.a": "wrapList"}}));
    assert!(found[0].contains("expected a list, found string"), "{found:?}");
    let one = json!({"in": {"type": "object", "properties": {"a": STRING()}}});
    let other = json!({"in": {"type": "object", "properties": {"b": STRING()}}});
    let found = of_step(one, other, json!({}));
    assert!(found[0].contains("the two have no field in common"), "{found:?}");
}

#[test]
fn types_with_other_names_correspond_only_if_the_plan_says_so() {
    let spec = || json!({"in": {"type": "object", "properties": {"a": STRING()}}});
    let types = json!({"v1": {"spec.in": "Address"}, "v2": {"spec.in": "Location"}});
    let versions = [("v1", spec()), ("v2", spec())];
    let found = errors(&versions, json!({"types": types}));
    assert!(found[0].contains("their types are Address and Location"), "{found:?}");
    let step = json!([{"from": "v1", "to": "v2", "typeRenames": {"Address": "Location"}}]);
    assert_eq!(errors(&versions, json!({"types": types, "steps": step})), Vec::<String>::new());
    let found = errors(&versions, json!({"types": {"v1": {"spec.out": "Address"}, "v9": {}}}));
    assert_eq!(found, ["plan.yaml:8:1: types: v1 has no field spec.out to be a Address | "]);
}

#[test]
fn what_is_lost_must_be_acknowledged() {
    let found =
        of_step(json!({"a": STRING()}), json!({}), json!({"removed": {"spec.a": {"reason": "x", "drop": true}}}));
    assert!(found[0].contains("spec.a is dropped, and no conversion brings it back"), "{found:?}");
    let with = |values: Value| json!({"a": {"type": "string", "enum": values}});
    let enums = json!({"enums": {"spec.a": {"A": "X", "B": "X"}}});
    let found = of_step(with(json!(["A", "B"])), with(json!(["X"])), enums);
    assert!(found[0].contains("\"X\" stands for several old values"), "{found:?}");
    let found = of_step(with(json!(["A"])), with(json!(["X"])), json!({"enums": {"spec.a": {"A": "Y"}}}));
    assert!(found[0].contains("\"Y\" is no value of it in v2"), "{found:?}");
}

#[test]
fn a_field_that_comes_back_in_another_shape_is_found() {
    let versions = [
        ("v1", json!({"x": STRING()})),
        ("v2", json!({})),
        ("v3", json!({"x": {"type": "integer"}})),
        ("v4", json!({})),
    ];
    let steps = |more: Value| {
        let mut first = json!({"from": "v1", "to": "v2", "removed": {"spec.x": {"reason": "unused"}}});
        first.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        json!({"steps": [first, {"from": "v3", "to": "v4", "removed": {"spec.x": {"reason": "unused"}}}]})
    };
    let found = errors(&versions, steps(json!({})));
    assert!(found[0].contains("spec.x of v1 is not in v2, and comes back in v3 with another shape"), "{found:?}");
    assert_eq!(errors(&versions, steps(json!({"separate": ["spec.x"]}))), Vec::<String>::new());
}

#[test]
fn expressions_are_checked_against_both_versions() {
    let spec =
        || json!({"a": STRING(), "n": {"type": "integer"}, "open": {"x-kubernetes-preserve-unknown-fields": true}});
    for (cel, expected) in [
        ("self.spec.c", "the expression is wrong"),
        ("self.spec.a", "the expression gives a string, and the field is of type integer"),
        ("self.spec.", "the expression is not supported: it cannot be read here"),
        ("duration('1s')", "gives a google.protobuf.Duration"),
        ("oldSelf.spec.n + unknown(1)", "the expression is"),
    ] {
        let found = of_step(spec(), spec(), json!({"up": [{"set": "spec.n", "cel": cel}]}));
        assert!(
            found[0].contains(expected) || found[0].contains("the expression gives a duration"),
            "{cel}: {found:?}"
        );
    }
    let found = of_step(spec(), spec(), json!({"up": [{"at": "spec.open", "set": "n", "cel": "1"}]}));
    assert!(!found.is_empty());
}

#[test]
fn versions_and_steps_must_exist() {
    let versions = [("v1", json!({})), ("v2", json!({})), ("v3", json!({}))];
    let found = errors(&versions, json!({"hub": "v9"}));
    assert!(found[0].contains("hub: there is no schema of version v9"), "{found:?}");
    let found = errors(&versions, json!({"steps": [{"from": "v1", "to": "v3"}]}));
    assert_eq!(
        found,
        ["plan.yaml:7:1: there is no step from v1 to v3 | steps lead to the next version: from v1 to v2"]
    );
    let found = errors(&versions, json!({"steps": [{"from": "v0", "to": "v1"}]}));
    assert!(found[0].contains("there is no version v0"), "{found:?}");
    let found = errors(&versions, json!({"order": ["v1", "v2", "v2"]}));
    assert!(found[0].contains("order: expected every version once, missing are: v3"), "{found:?}");
    let found = errors(&[("stable", json!({})), ("v1", json!({}))], json!({}));
    assert!(
        found[0].contains("nothing says whether stable or v1 is older | list all versions under `order`"),
        "{found:?}"
    );
    let found = errors(&versions, json!({"schemas": {"v1": {"type": "object"}}}));
    assert!(found[0].contains("schemas: the definition has version v1 itself"), "{found:?}");
    let hooks = json!([{"version": "v3", "side": "storage", "assignTo": [{"set": "spec.a", "cel": "1"}]}]);
    let found = errors(&versions, json!({"hooks": hooks}));
    assert!(found[0].contains("v3 is the hub"), "{found:?}");
    assert!(!errors(&[], json!({})).is_empty());
}

#[test]
fn the_text_is_read_strictly() {
    let found = errors(
        &[("v1", json!({}))],
        json!({
            "hubs": "v1", "policy": {"bag": "box"},
            "steps": [{"from": "v1", "renames": {"spec..a": "spec.b", "spec.a": 1}, "lists": {"spec.a": {"listToMap": "k", "mapToList": "k"}}}],
            "hooks": [{"version": "v1"}],
        }),
    );
    for expected in [
        "hubs: unknown key | did you mean `hub`?",
        "policy.bag: expected `property`, `annotation` or `nowhere`",
        "missing key `to`",
        "\"spec..a\" is no path of a field",
        "expected a string",
        "expected wrapList, unwrapList, or a map with listToMap or mapToList",
        "expected assignTo or assignFrom, found neither",
    ] {
        assert!(found.iter().any(|error| error.contains(expected)), "{expected}: {found:#?}");
    }
    let twice = json!({"steps": [{"from": "v1", "to": "v2"}, {"from": "v1", "to": "v2"}]});
    let found = errors(&[("v1", json!({})), ("v2", json!({}))], twice);
    assert!(found[0].contains("the step from v1 to v2 is given a second time, first at plan.yaml:7:1"), "{found:?}");
}

#[test]
fn the_name_of_the_bag_must_be_free_in_every_version() {
    let taken = json!({"$propertyBag": STRING(), "a": STRING()});
    let converter = load(&plan(json!({})), &definition(&[("v1", taken.clone()), ("v2", taken)])).expect("a plan");
    assert_eq!(converter.bag(), "$propertyStash");
    let all = json!({
        "$propertyBag": STRING(), "$propertyStash": STRING(), "$pushbackPropertyBag": STRING(), "$pushbackPropertyStash": STRING(),
    });
    let found = errors(&[("v1", all)], json!({}));
    assert!(found[0].contains("every name for the property bag is taken"), "{found:?}");
}

#[test]
fn a_version_in_which_objects_are_stored_needs_a_schema() {
    let mut stored = definition(&[("v2", json!({}))]);
    stored["status"] = json!({"storedVersions": ["v1", "v2"]});
    let found = load(&plan(json!({})), &stored).expect_err("an error");
    assert_eq!(found[0].message, "objects may be stored in version v1, and there is no schema of it");
    assert!(load(&plan(json!({"schemas": {"v1": {"type": "object"}}})), &stored).is_ok());
}

#[test]
fn a_plan_is_for_its_definition() {
    let mut other = plan(json!({}));
    other["metadata"]["name"] = json!("others.example.com");
    let found = load(&other, &definition(&[("v1", json!({}))])).expect_err("an error");
    assert!(found[0].message.contains("the plan is for others.example.com, the definition is tests.example.com"));
}
