//! Keywords that restrict the values of one field.

use super::*;

/// Each row: a field before and after, and the reports about `spec.f` forwards and backwards.
#[track_caller]
fn rows(rows: &[(Value, Value, &str, &str)]) {
    for (old, new, forward, back) in rows {
        expect(&with_field(old), &with_field(new), &[&**forward], &[&**back]);
    }
}

#[test]
fn a_bound_that_tightens_warns_and_one_that_widens_informs() {
    let text = |keyword: &str, value: Value| json!({"type": "string", keyword: value});
    let number = |keyword: &str, value: Value| json!({"type": "integer", keyword: value});
    let list = |keyword: &str, value: Value| json!({"type": "array", "items": {"type": "string"}, keyword: value});
    let map = |keyword: &str, value: Value| json!({"type": "object", "additionalProperties": {"type": "string"}, keyword: value});
    rows(&[
        (
            text("minLength", json!(1)),
            text("minLength", json!(3)),
            "breaking minLength spec.f breaking",
            "info minLength spec.f safe",
        ),
        (
            text("maxLength", json!(9)),
            text("maxLength", json!(3)),
            "breaking maxLength spec.f breaking",
            "info maxLength spec.f safe",
        ),
        (
            number("minimum", json!(1)),
            number("minimum", json!(3)),
            "breaking minimum spec.f breaking",
            "info minimum spec.f safe",
        ),
        (
            number("maximum", json!(9)),
            number("maximum", json!(3)),
            "breaking maximum spec.f breaking",
            "info maximum spec.f safe",
        ),
        (
            number("multipleOf", json!(2)),
            number("multipleOf", json!(6)),
            "breaking multipleOf spec.f breaking",
            "info multipleOf spec.f safe",
        ),
        (
            list("minItems", json!(1)),
            list("minItems", json!(2)),
            "breaking minItems spec.f breaking",
            "info minItems spec.f safe",
        ),
        (
            list("maxItems", json!(9)),
            list("maxItems", json!(2)),
            "breaking maxItems spec.f breaking",
            "info maxItems spec.f safe",
        ),
        (
            map("minProperties", json!(1)),
            map("minProperties", json!(2)),
            "breaking minProperties spec.f breaking",
            "info minProperties spec.f safe",
        ),
        (
            map("maxProperties", json!(9)),
            map("maxProperties", json!(2)),
            "breaking maxProperties spec.f breaking",
            "info maxProperties spec.f safe",
        ),
    ]);
}

#[test]
fn a_bound_that_comes_warns_and_one_that_goes_informs() {
    let plain = |kind: &str| json!({"type": kind});
    let with = |kind: &str, keyword: &str, value: Value| json!({"type": kind, keyword: value});
    let list = json!({"type": "array", "items": {"type": "string"}});
    let set = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
    rows(&[
        (
            plain("string"),
            with("string", "minLength", json!(1)),
            "breaking minLength spec.f breaking",
            "info minLength spec.f safe",
        ),
        (
            plain("string"),
            with("string", "pattern", json!("^a")),
            "breaking pattern spec.f breaking",
            "info pattern spec.f safe",
        ),
        (
            plain("string"),
            with("string", "format", json!("date")),
            "breaking format spec.f breaking",
            // With this format, the server accepts a list instead of a string.
            "breaking format spec.f breaking",
        ),
        (
            plain("number"),
            with("number", "minimum", json!(0)),
            "breaking minimum spec.f breaking",
            "info minimum spec.f safe",
        ),
        (
            plain("number"),
            with("number", "multipleOf", json!(2)),
            "breaking multipleOf spec.f breaking",
            "info multipleOf spec.f safe",
        ),
        (list, set, "breaking uniqueItems spec.f breaking", "info uniqueItems spec.f safe"),
    ]);
}

#[test]
fn what_cannot_be_compared_warns_in_both_directions() {
    let text = |keyword: &str, value: &str| json!({"type": "string", keyword: value});
    rows(&[
        (
            text("pattern", "^a+$"),
            text("pattern", "^a*$"),
            "warning pattern spec.f safe",
            "breaking pattern spec.f breaking",
        ),
        (
            text("format", "date"),
            text("format", "date-time"),
            "breaking format spec.f breaking",
            "breaking format spec.f breaking",
        ),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!({"type": "integer", "multipleOf": 3}),
            "breaking multipleOf spec.f breaking",
            "breaking multipleOf spec.f breaking",
        ),
    ]);
}

#[test]
fn an_exclusive_bound_is_told_apart_from_one_that_moves() {
    let limit =
        |value: i64, exclusive: bool| json!({"type": "integer", "minimum": value, "exclusiveMinimum": exclusive});
    rows(&[
        (
            limit(1, false),
            limit(1, true),
            "breaking exclusiveMinimum spec.f breaking",
            "info exclusiveMinimum spec.f safe",
        ),
        (limit(1, false), limit(5, true), "breaking minimum spec.f breaking", "info minimum spec.f safe"),
    ]);
    let most =
        |value: i64, exclusive: bool| json!({"type": "integer", "maximum": value, "exclusiveMaximum": exclusive});
    rows(&[(
        most(5, false),
        most(5, true),
        "breaking exclusiveMaximum spec.f breaking",
        "info exclusiveMaximum spec.f safe",
    )]);
}

#[test]
fn null_is_a_value_that_is_allowed_or_not() {
    rows(&[(
        json!({"type": "string", "nullable": true}),
        json!({"type": "string"}),
        "breaking nullable spec.f breaking",
        "info nullable spec.f safe",
    )]);
}

#[test]
fn branches_widen_or_narrow_as_their_combinator_does() {
    let with = |keyword: &str, branches: &[i64]| {
        let branches: Vec<Value> = branches.iter().map(|least| json!({"minLength": least})).collect();
        json!({"type": "string", keyword: branches})
    };
    let not = |pattern: &str| json!({"type": "string", "not": {"pattern": pattern}});
    rows(&[
        (with("allOf", &[1]), with("allOf", &[1, 2]), "breaking allOf spec.f breaking", "info allOf spec.f safe"),
        (with("anyOf", &[2]), with("anyOf", &[2, 5]), "info anyOf spec.f safe", "warning anyOf spec.f safe"),
        (with("oneOf", &[2]), with("oneOf", &[2, 5]), "breaking oneOf spec.f breaking", "warning oneOf spec.f safe"),
        (json!({"type": "string"}), with("anyOf", &[2]), "breaking anyOf spec.f breaking", "info anyOf spec.f safe"),
        (json!({"type": "string"}), not("^a"), "breaking not spec.f breaking", "info not spec.f safe"),
        (not("^a"), not("^b"), "breaking not spec.f breaking", "breaking not spec.f breaking"),
    ]);
    let (one, other) = (with("oneOf", &[1, 2]), with("oneOf", &[2, 1]));
    expect(&with_field(&one), &with_field(&other), &[], &[]);
}

#[test]
fn each_cel_rule_is_a_change_of_its_own() {
    let with = |rules: &[&str]| {
        let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule, "message": "no"})).collect();
        json!({"type": "integer", "x-kubernetes-validations": rules})
    };
    let (old, new) = (with_field(&with(&["self > 1", "self > 2"])), with_field(&with(&["self > 2", "self > 9"])));
    expect(
        &old,
        &new,
        &["info x-kubernetes-validations spec.f safe", "breaking x-kubernetes-validations spec.f breaking"],
        &["warning x-kubernetes-validations spec.f safe", "info x-kubernetes-validations spec.f safe"],
    );
    let details: Vec<String> = changes(&old, &new).into_iter().map(|change| change.detail).collect();
    assert_eq!(details, ["rule \"self > 1\" removed", "rule \"self > 9\" added"]);
}

#[test]
fn how_the_server_treats_a_field_is_told() {
    let list = |kind: &str| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind});
    let keyed = |key: &str| {
        let fields = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        let items = json!({"type": "object", "required": ["a", "b"], "properties": fields});
        json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
    };
    let map = |kind: &str| json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": kind});
    rows(&[
        (
            list("atomic"),
            list("set"),
            "breaking x-kubernetes-list-type spec.f breaking",
            "warning x-kubernetes-list-type spec.f unknown",
        ),
        (
            keyed("a"),
            keyed("b"),
            "breaking x-kubernetes-list-map-keys spec.f breaking",
            "breaking x-kubernetes-list-map-keys spec.f breaking",
        ),
        (
            map("granular"),
            map("atomic"),
            "warning x-kubernetes-map-type spec.f unknown",
            "warning x-kubernetes-map-type spec.f unknown",
        ),
    ]);
}

#[test]
fn dropping_unknown_fields_is_breaking() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let closed = json!({"type": "object"});
    let keyword = "x-kubernetes-preserve-unknown-fields";
    rows(&[(open, closed, &format!("breaking {keyword} spec.f breaking"), &format!("info {keyword} spec.f safe"))]);
}

#[test]
fn a_resource_within_a_resource_is_told() {
    let field = |embedded: bool| {
        json!({
            "type": "object", "x-kubernetes-embedded-resource": embedded, "x-kubernetes-preserve-unknown-fields": true,
        })
    };
    let keyword = "x-kubernetes-embedded-resource";
    rows(&[(
        field(false),
        field(true),
        &format!("breaking {keyword} spec.f breaking"),
        &format!("warning {keyword} spec.f safe"),
    )]);
}

#[test]
fn keywords_that_no_structural_schema_has_cannot_be_judged() {
    let field = |target: &str| json!({"type": "string", "$ref": target});
    rows(&[(field("#/a"), field("#/b"), "warning $ref spec.f unknown", "warning $ref spec.f unknown")]);
}

#[test]
fn texts_and_messages_change_nothing() {
    let field = |text: &str| {
        json!({
            "type": "integer", "description": text, "title": text, "example": text,
            "x-kubernetes-validations": [{"rule": "self > 1", "message": text}],
        })
    };
    expect(&with_field(&field("one")), &with_field(&field("other")), &[], &[]);
}
