//! Fields, types, required fields, enums and defaults.

use pushback_objects::source::Position;

use super::*;

fn object(fields: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": fields, "required": required})
}

#[test]
fn a_field_that_goes_breaks_and_one_that_comes_informs() {
    let one = object(json!({"a": {"type": "string"}, "b": {"type": "integer"}}), &[]);
    let other = object(json!({"a": {"type": "string"}}), &[]);
    expect(
        &with_spec(&one),
        &with_spec(&other),
        &["breaking FieldRemoved spec.b breaking"],
        &["info FieldAdded spec.b safe"],
    );
}

#[test]
fn what_is_in_a_field_that_comes_or_goes_is_not_told_too() {
    let inner = object(json!({"x": {"type": "string"}, "y": {"type": "string", "default": "a"}}), &["x"]);
    let one = object(json!({"a": {"type": "string"}, "b": inner}), &["b"]);
    let other = object(json!({"a": {"type": "string"}}), &[]);
    expect(
        &with_spec(&one),
        &with_spec(&other),
        &["breaking FieldRemoved spec.b breaking"],
        &["breaking RequiredAdded spec.b breaking"],
    );
}

#[test]
fn the_fields_of_items_and_of_maps_have_paths_of_their_own() {
    let inner = |kind: &str| object(json!({"x": {"type": kind}}), &[]);
    let lists = |kind: &str| {
        with_spec(&object(
            json!({
                "list": {"type": "array", "items": inner(kind)},
                "map": {"type": "object", "additionalProperties": inner(kind)},
                "a.b": {"type": "object", "properties": {"": inner(kind)}},
                "deep": {"type": "array", "items": {"type": "array", "items": {"type": kind}}},
            }),
            &[],
        ))
    };
    let paths: Vec<String> = changes(&lists("string"), &lists("integer")).into_iter().map(|it| it.path).collect();
    assert_eq!(paths, ["spec.deep[*][*]", "spec.list[*].x", "spec.map{*}.x", "spec[\"a.b\"][\"\"].x"]);
}

#[test]
fn a_type_that_changes_is_one_change_whatever_else_differs() {
    let old = json!({"type": "integer", "default": 1, "minimum": 1, "enum": [1, 2]});
    let new = json!({"type": "string", "default": "a", "minLength": 1});
    let told = ["breaking TypeChanged spec.f breaking"];
    expect(&with_field(&old), &with_field(&new), &told, &told);
    let change = &changes(&with_field(&old), &with_field(&new))[0];
    assert_eq!(change.detail, "type changed from integer to string");
    assert_eq!((&change.old_schema, &change.new_schema), (&old, &new));
}

#[test]
fn a_type_that_takes_more_is_told_as_safe_beside_the_published_class() {
    let (whole, any) = (json!({"type": "integer"}), json!({"type": "number"}));
    let either = json!({"x-kubernetes-int-or-string": true});
    expect(
        &with_field(&whole),
        &with_field(&any),
        &["breaking TypeChanged spec.f safe"],
        &["breaking TypeChanged spec.f breaking"],
    );
    expect(
        &with_field(&whole),
        &with_field(&either),
        &["breaking TypeChanged spec.f safe"],
        &["breaking TypeChanged spec.f breaking"],
    );
    let detail = &changes(&with_field(&whole), &with_field(&either))[0].detail;
    assert_eq!(detail, "type changed from integer to int-or-string");
}

#[test]
fn every_pair_of_types_is_a_change() {
    let kinds = ["boolean", "integer", "number", "string", "array", "object"];
    let field = |kind: &str| match kind {
        "array" => json!({"type": kind, "items": {"type": "string"}}),
        kind => json!({"type": kind}),
    };
    for old in kinds {
        for new in kinds.into_iter().filter(|new| *new != old) {
            let told = changes(&with_field(&field(old)), &with_field(&field(new)));
            assert_eq!(told.len(), 1, "{old} -> {new}");
            assert_eq!((told[0].change_type, told[0].severity), (ChangeType::TypeChanged, Severity::Breaking));
            let safe = (old, new) == ("integer", "number");
            assert_eq!(told[0].verdict == CrdVerdict::Safe, safe, "{old} -> {new}");
        }
    }
}

#[test]
fn a_field_that_becomes_required_breaks() {
    let spec = |required: &[&str]| with_spec(&object(json!({"a": {"type": "string"}}), required));
    expect(
        &spec(&[]),
        &spec(&["a"]),
        &["breaking RequiredAdded spec.a breaking"],
        &["info RequiredRemoved spec.a safe"],
    );
    // The server accepts a name in `required` without a field.
    expect(
        &spec(&[]),
        &spec(&["z"]),
        &["breaking RequiredAdded spec.z breaking"],
        &["info RequiredRemoved spec.z safe"],
    );
}

#[test]
fn a_required_field_with_a_default_breaks_unless_a_user_takes_it_as_a_warning() {
    let field = json!({"type": "integer", "default": 3});
    let spec = |required: &[&str]| with_spec(&object(json!({"a": field}), required));
    let bare = with_spec(&object(json!({}), &[]));
    expect(&spec(&[]), &spec(&["a"]), &["breaking RequiredAdded spec.a safe"], &["info RequiredRemoved spec.a safe"]);
    assert_eq!(lines(&bare, &spec(&["a"])), ["breaking RequiredAdded spec.a safe"]);
    let options = Options { required_with_default_warns: true };
    let told = |old: &Value, new: &Value| {
        let told = compare(&[definition(old.clone())], &[definition(new.clone())], options);
        told.into_iter().map(|change| (line(&change), change.detail)).collect::<Vec<_>>()
    };
    let detail = "field is required from now on, with the default 3".to_owned();
    assert_eq!(told(&spec(&[]), &spec(&["a"])), [("warning RequiredAdded spec.a safe".to_owned(), detail)]);
    let detail = "new field, and it is required from now on, with the default 3".to_owned();
    assert_eq!(told(&bare, &spec(&["a"])), [("warning RequiredAdded spec.a safe".to_owned(), detail)]);
    let without = with_spec(&object(json!({"a": {"type": "integer"}}), &["a"]));
    assert_eq!(told(&bare, &without)[0].0, "breaking RequiredAdded spec.a breaking");
}

#[test]
fn values_of_an_enum_are_told_one_by_one() {
    let field = |values: Value| with_field(&json!({"type": "string", "enum": values}));
    let told = ["breaking EnumValueRemoved spec.f breaking", "info EnumValueAdded spec.f safe"];
    expect(&field(json!(["a", "b"])), &field(json!(["b", "c"])), &told, &told);
    expect(
        &field(json!(["a"])),
        &field(json!(["a", "b", "c"])),
        &["info EnumValueAdded spec.f safe", "info EnumValueAdded spec.f safe"],
        &["breaking EnumValueRemoved spec.f breaking", "breaking EnumValueRemoved spec.f breaking"],
    );
    expect(&field(json!(["a", "b"])), &field(json!(["b", "a", "a"])), &[], &[]);
    let details: Vec<String> =
        changes(&field(json!(["a"])), &field(json!(["b"]))).into_iter().map(|it| it.detail).collect();
    assert_eq!(details, ["value \"a\" is no longer allowed", "value \"b\" is now allowed"]);
}

/// The original implementation confuses these two.
#[test]
fn an_enum_where_there_was_none_breaks_and_one_that_goes_informs() {
    let (free, bound) = (json!({"type": "string"}), json!({"type": "string", "enum": ["a", "b"]}));
    expect(
        &with_field(&free),
        &with_field(&bound),
        &["breaking EnumRestrictionAdded spec.f breaking"],
        &["info EnumRestrictionRemoved spec.f safe"],
    );
}

#[test]
fn a_default_that_comes_goes_or_changes_warns() {
    let field = |default: Value| with_field(&json!({"type": "integer", "default": default}));
    let free = with_field(&json!({"type": "integer"}));
    let told = ["warning DefaultChanged spec.f breaking"];
    expect(&field(json!(1)), &field(json!(3)), &told, &told);
    expect(&free, &field(json!(3)), &told, &told);
    expect(&field(json!(3)), &field(json!(3.0)), &[], &[]);
    let details = |old: &Value, new: &Value| changes(old, new).into_iter().map(|it| it.detail).collect::<Vec<_>>();
    assert_eq!(details(&field(json!(1)), &field(json!(3))), ["default changed from 1 to 3"]);
    assert_eq!(details(&free, &field(json!(3))), ["default 3 added"]);
    assert_eq!(details(&field(json!(3)), &free), ["default 3 removed"]);
}

#[test]
fn free_keys_are_a_field_too() {
    let (map, closed) =
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"type": "object"}));
    expect(
        &with_field(&map),
        &with_field(&closed),
        &["breaking FieldRemoved spec.f{*} breaking"],
        &["info FieldAdded spec.f{*} safe"],
    );
    let any = json!({"type": "object", "additionalProperties": true});
    expect(
        &with_field(&map),
        &with_field(&any),
        &["warning additionalProperties spec.f safe"],
        &["breaking additionalProperties spec.f breaking"],
    );
}

#[test]
fn a_field_that_free_keys_still_keep_is_told_as_gone_and_as_safe() {
    let old = json!({
        "type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-preserve-unknown-fields": true,
    });
    let mut named = old.clone();
    named["properties"] = json!({"a": {"type": "string"}});
    expect(
        &with_field(&named),
        &with_field(&old),
        &["breaking FieldRemoved spec.f.a safe"],
        &["info FieldAdded spec.f.a safe"],
    );
}

#[test]
fn a_name_given_to_what_was_kept_unnamed_is_told_with_what_becomes_of_it() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut named = open.clone();
    named["properties"] = json!({"a": {"type": "string"}});
    let told = changes(&with_field(&open), &with_field(&named));
    assert_eq!(told.iter().map(line).collect::<Vec<_>>(), ["info FieldAdded spec.f.a breaking"]);
    assert!(told[0].reason.contains("declared where any value was kept"), "{}", told[0].reason);
}

#[test]
fn a_field_of_equal_schema_beside_one_that_is_gone_may_be_its_new_name() {
    let shape = |kind: &str| json!({"type": "object", "properties": {"x": {"type": kind}}});
    let spec = |name: &str, kind: &str| with_spec(&object(json!({name: shape(kind)}), &[]));
    expect(
        &spec("store", "string"),
        &spec("storage", "string"),
        &[
            "info FieldAdded spec.storage safe",
            "breaking FieldRemoved spec.store breaking",
            "info FieldRenamed spec.store breaking",
        ],
        &[
            "breaking FieldRemoved spec.storage breaking",
            "info FieldRenamed spec.storage breaking",
            "info FieldAdded spec.store safe",
        ],
    );
    let told = changes(&spec("store", "string"), &spec("storage", "string"));
    assert_eq!(told[2].detail, "possibly renamed to \"storage\": both have the same schema");
    let told = lines(&spec("store", "string"), &spec("storage", "integer"));
    assert!(!told.iter().any(|line| line.contains("FieldRenamed")), "{told:?}");
}

#[test]
fn of_many_new_names_the_most_alike_is_suggested() {
    let plain = || json!({"type": "string"});
    let old = with_spec(&object(json!({"storageSize": plain(), "zone": plain()}), &[]));
    let new = with_spec(&object(json!({"sizeOfDisk": plain(), "storageSizes": plain(), "owner": plain()}), &[]));
    let renamed: Vec<(String, String)> = changes(&old, &new)
        .into_iter()
        .filter(|change| change.change_type == ChangeType::FieldRenamed)
        .map(|change| (change.path, change.detail))
        .collect();
    let detail = "possibly renamed to \"storageSizes\": both have the same schema".to_owned();
    assert_eq!(renamed, [("spec.storageSize".to_owned(), detail)]);
}

#[test]
fn what_every_resource_has_is_no_field_that_goes() {
    let text = json!({"type": "string"});
    let mut old = with_field(&text);
    let root = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let fields = old.pointer_mut(root).and_then(Value::as_object_mut).expect("a map");
    fields.extend([
        ("apiVersion".to_owned(), text.clone()),
        ("kind".to_owned(), text.clone()),
        ("metadata".to_owned(), json!({"type": "object"})),
    ]);
    expect(&old, &with_field(&text), &[], &[]);
    let mut named = old.clone();
    named.pointer_mut(root).expect("a map")["metadata"]["properties"] =
        json!({"name": {"type": "string", "maxLength": 9}});
    expect(&old, &named, &["breaking maxLength metadata.name breaking"], &["info maxLength metadata.name safe"]);
}

#[test]
fn what_a_default_does_to_a_rule_around_it_is_told_of_the_default() {
    let field = |default: Option<i64>| {
        let mut size = json!({"type": "integer"});
        if let Some(default) = default {
            size["default"] = json!(default);
        }
        with_spec(&json!({
            "type": "object", "properties": {"size": size, "name": {"type": "string"}},
            "not": {"required": ["size"]},
        }))
    };
    let told = changes(&field(None), &field(Some(1)));
    assert_eq!(told.iter().map(line).collect::<Vec<_>>(), ["warning DefaultChanged spec.size breaking"]);
    assert_ne!(told[0].reason, "");
}

#[test]
fn a_change_stands_at_its_keyword_in_the_new_file_and_what_is_gone_in_the_old_one() {
    let old = with_spec(&object(json!({"a": {"type": "string"}, "b": {"type": "string", "enum": ["x", "y"]}}), &[]));
    let new = with_spec(&object(json!({"b": {"type": "string", "enum": ["x"]}, "c": {"type": "integer"}}), &["b"]));
    let placed = |value: &Value, file: &str| {
        let positions = numbered(value, file);
        Definition { positions: Some(Arc::new(positions)), ..definition(value.clone()) }
    };
    let (before, after) = (placed(&old, "old.yaml"), placed(&new, "new.yaml"));
    let at = |definition: &Definition, rest: &[&str]| {
        let mut path: Vec<pushback_objects::source::PathSegment> = vec!["spec".into(), "versions".into(), 0.into()];
        path.extend(
            ["schema", "openAPIV3Schema", "properties", "spec"].map(pushback_objects::source::PathSegment::from),
        );
        path.extend(rest.iter().map(|key| pushback_objects::source::PathSegment::from(*key)));
        definition.positions.as_ref().map(|positions| positions.locate(&path))
    };
    let told: Vec<(ChangeType, Option<Position>)> =
        compare(std::slice::from_ref(&before), std::slice::from_ref(&after), Options::default())
            .into_iter()
            .map(|change| (change.change_type, change.position))
            .collect();
    assert_eq!(
        told,
        [
            (ChangeType::FieldRemoved, at(&before, &["properties", "a"])),
            (ChangeType::RequiredAdded, at(&after, &["required"])),
            (ChangeType::EnumValueRemoved, at(&after, &["properties", "b", "enum"])),
            (ChangeType::FieldAdded, at(&after, &["properties", "c"])),
        ]
    );
    assert!(told.iter().all(|(_, position)| position.as_ref().is_some_and(|position| position.line > 1)));
}

#[test]
fn schemas_are_shown_without_texts_and_large_ones_without_what_is_nested() {
    let small =
        json!({"type": "object", "description": "a", "properties": {"description": {"type": "string", "title": "b"}}});
    let fields: serde_json::Map<String, Value> =
        (0..200).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
    let large = json!({"type": "object", "minProperties": 1, "properties": fields, "required": ["f1"]});
    let spec = |fields: Value| with_spec(&object(fields, &[]));
    let told = changes(&spec(json!({"large": large, "small": small})), &spec(json!({})));
    assert_eq!(told[0].old_schema, json!({"minProperties": 1, "required": ["f1"], "type": "object"}));
    assert_eq!(told[1].old_schema, json!({"properties": {"description": {"type": "string"}}, "type": "object"}));
    assert_eq!(told[0].new_schema, Value::Null);
}
