//! Rules and bounds for which a proof is easy: whether they are called safe, breaking or unknown, and that neighbours
//! which break are not called safe.

use serde_json::{Value, json};

use crate::schema::contain::{SchemaProof, compare};
use crate::schema::model::Schema;
use crate::schema::pipeline::Server;
use crate::schema::testing::resource;

fn proofs(old: &Value, new: &Value) -> Vec<&'static str> {
    let [old, new] = [old, new].map(Schema::of);
    let found = compare(&resource(&old), &resource(&new), Server::default());
    let word = |proof: &SchemaProof| match proof {
        SchemaProof::Safe => "safe",
        SchemaProof::Breaking { .. } => "breaking",
        SchemaProof::Unknown { .. } => "unknown",
    };
    found.iter().map(|difference| word(&difference.proof)).collect()
}

/// What is proved of a rule that is added to `spec`, beside these.
fn added(spec: &Value, before: &[&str], rule: &str) -> &'static str {
    let with = |rules: &[&str]| {
        let mut spec = spec.clone();
        spec["type"] = "object".into();
        spec["x-kubernetes-validations"] = rules.iter().map(|rule| json!({"rule": rule})).collect();
        json!({"type": "object", "properties": {"spec": spec}})
    };
    let after: Vec<&str> = before.iter().copied().chain([rule]).collect();
    proofs(&with(before), &with(&after))[0]
}

/// What is proved of a rule that is added to the resource.
fn at_root(rule: &str) -> &'static str {
    let old = json!({"type": "object", "properties": {"spec": {"type": "object"}, "metadata": {"type": "object"}}});
    let mut new = old.clone();
    new["x-kubernetes-validations"] = json!([{"rule": rule}]);
    proofs(&old, &new)[0]
}

#[test]
fn the_name_and_the_kind_of_a_resource_are_known() {
    for rule in [
        "self.metadata.name.size() <= 253",
        "size(self.metadata.name) <= 253",
        "size(self.metadata.name) > 0",
        "self.metadata.name.matches('^[a-z0-9.-]+$')",
        "self.kind == 'Test'",
        "has(self.metadata.name)",
    ] {
        assert_eq!(at_root(rule), "safe", "{rule}");
    }
    for rule in [
        "size(self.metadata.name) <= 63",
        "self.metadata.name.startsWith('x-')",
        "self.metadata.name == 'default'",
        "self.kind != 'Test'",
    ] {
        assert_eq!(at_root(rule), "breaking", "{rule}");
    }
}

#[test]
fn two_numbers_are_compared_by_their_bounds() {
    let spec = |most: u32, least: u32| {
        let min = json!({"type": "integer", "minimum": 0, "maximum": most});
        let max = json!({"type": "integer", "minimum": least, "maximum": 20});
        json!({"required": ["min", "max"], "properties": {"min": min, "max": max}})
    };
    assert_eq!(added(&spec(10, 10), &[], "self.min <= self.max"), "safe");
    assert_eq!(added(&spec(10, 10), &[], "self.max >= self.min"), "safe");
    assert_eq!(added(&spec(9, 10), &[], "self.min < self.max"), "safe");
    assert_eq!(added(&spec(9, 10), &[], "self.min != self.max"), "safe");
    for (spec, rule) in [
        (spec(11, 10), "self.min <= self.max"),
        (spec(10, 10), "self.min < self.max"),
        (spec(10, 10), "self.min != self.max"),
        (spec(10, 10), "self.min >= self.max"),
    ] {
        assert_ne!(added(&spec, &[], rule), "safe", "{rule}");
    }
    let mut optional = spec(10, 10);
    optional["required"] = json!([]);
    assert_ne!(added(&optional, &[], "self.min <= self.max"), "safe", "without one of them the rule fails");
    assert_eq!(added(&optional, &[], "!has(self.min) || !has(self.max) || self.min <= self.max"), "safe");
}

#[test]
fn sums_of_integers_are_compared_by_their_bounds() {
    let whole = |least: i64, most: i64| json!({"type": "integer", "minimum": least, "maximum": most});
    let fields = json!({"a": whole(0, 10), "b": whole(1, 10), "c": whole(20, 30), "free": {"type": "integer"},
        "s": {"type": "string", "maxLength": 5}, "n": {"type": "number", "minimum": 0, "maximum": 1}});
    let spec = json!({"required": ["a", "b", "c", "free", "s", "n"], "properties": fields});
    for rule in [
        "self.a + self.b <= 20",
        "self.a + self.b <= self.c",
        "self.c >= self.a + self.b",
        "self.a - self.b < 10",
        "self.a + 1 > self.a",
        "self.a * 2 >= self.a",
        "2 * self.a + 3 * self.b != 51",
        "-self.a <= 0",
        "self.s.size() + self.a <= 15",
        "!(self.a + self.b > 20)",
        "self.a + self.b in [1, 2] || self.a + self.b < 21",
    ] {
        assert_eq!(added(&spec, &[], rule), "safe", "{rule}");
    }
    for rule in [
        "self.a + self.b < 20",
        "self.a + self.b <= 19",
        "self.a - self.b < 9",
        "self.a + self.b < self.c",
        "self.a + self.free <= 9223372036854775807",
        "self.free + 1 > self.free",
        "self.a * self.b <= 99",
        "self.n + 1.0 < 2.0",
        "self.s.size() + self.a < 15",
        "self.a + self.b > 20",
    ] {
        assert_ne!(added(&spec, &[], rule), "safe", "{rule}");
    }
    let mut optional = spec;
    optional["required"] = json!(["a"]);
    assert_ne!(added(&optional, &[], "self.a + self.b <= 20"), "safe", "without one of them the rule fails");
    assert_eq!(added(&optional, &[], "!has(self.b) || self.a + self.b <= 20"), "safe");
}

#[test]
fn chains_of_orders_are_followed() {
    let fields = |kind: &str| json!({"a": {"type": kind}, "b": {"type": kind}, "c": {"type": kind}});
    for kind in ["integer", "string"] {
        let spec = json!({"required": ["a", "b", "c"], "properties": fields(kind)});
        let strict = ["self.a < self.b", "self.b < self.c"];
        assert_eq!(added(&spec, &strict, "self.a < self.c"), "safe", "{kind}");
        assert_eq!(added(&spec, &strict, "self.c > self.a"), "safe", "{kind}");
        assert_eq!(added(&spec, &strict, "self.a != self.c"), "safe", "{kind}");
        let loose = ["self.a <= self.b", "self.b <= self.c"];
        assert_eq!(added(&spec, &loose, "self.a <= self.c"), "safe", "{kind}");
        assert_ne!(added(&spec, &loose, "self.a < self.c"), "safe", "{kind}");
        assert_eq!(added(&spec, &["self.a == self.b", "self.b == self.c"], "self.a == self.c"), "safe", "{kind}");
        assert_ne!(added(&spec, &["self.a < self.b", "self.c < self.b"], "self.a < self.c"), "safe", "{kind}");
    }
}

#[test]
fn the_items_of_a_set_differ() {
    let unique = "self.l.all(x, self.l.exists_one(y, y == x))";
    let list = |kind: &str, items: Value| {
        let mut list = json!({"type": "array", "maxItems": 9, "items": items, "x-kubernetes-list-type": kind});
        if kind == "map" {
            list["x-kubernetes-list-map-keys"] = json!(["name"]);
        }
        json!({"required": ["l"], "properties": {"l": list}})
    };
    let text = json!({"type": "string"});
    assert_eq!(added(&list("set", text.clone()), &[], unique), "safe");
    assert_eq!(added(&list("atomic", text.clone()), &[], unique), "breaking");
    assert_ne!(added(&list("set", json!({"type": "number"})), &[], unique), "safe", "1 and 1.0 are alike to a rule");
    let item = json!({"type": "object", "required": ["name"], "properties": {"name": text, "other": text}});
    let by_key = |key: &str| format!("self.l.all(x, self.l.exists_one(y, y.{key} == x.{key}))");
    assert_eq!(added(&list("map", item.clone()), &[], &by_key("name")), "safe");
    assert_ne!(added(&list("map", item.clone()), &[], &by_key("other")), "safe");
    assert_ne!(added(&list("map", item), &[], "self.l.all(x, self.l.exists_one(y, y.name == x.other))"), "safe");
    let mut optional = list("set", json!({"type": "string"}));
    optional["required"] = json!([]);
    assert_ne!(added(&optional, &[], unique), "safe", "without the list the rule fails");
    assert_eq!(added(&optional, &[], &format!("!has(self.l) || {unique}")), "safe");
}

#[test]
fn a_field_with_a_default_is_there() {
    let spec = |more: Value| {
        let mut field = json!({"type": "string", "default": "xyz"});
        field.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        json!({"properties": {"a": field}})
    };
    assert_eq!(added(&spec(json!({})), &[], "has(self.a)"), "safe");
    assert_eq!(added(&spec(json!({"enum": ["xyz", "y"]})), &[], "self.a in ['xyz', 'y']"), "safe");
    assert_eq!(added(&spec(json!({"minLength": 2})), &[], "self.a.size() >= 2"), "safe");
    assert_eq!(added(&spec(json!({})), &[], "self.a != 'xyz'"), "breaking");
    assert_eq!(added(&spec(json!({})), &[], "!has(self.a)"), "breaking");
    assert_ne!(added(&spec(json!({"nullable": true})), &[], "has(self.a)"), "safe", "null counts as absent");
    let status = json!({"type": "object", "properties": {"status": {"type": "object", "default": {}}}});
    let mut asked = status.clone();
    asked["x-kubernetes-validations"] = json!([{"rule": "has(self.status)"}]);
    assert_ne!(proofs(&status, &asked), ["safe"], "it is dropped on creation, after defaults are set");
}

#[test]
fn an_item_is_there_if_the_list_has_so_many() {
    let spec = |least: u32| {
        let list =
            json!({"type": "array", "minItems": least, "maxItems": 9, "items": {"type": "string", "minLength": 1}});
        json!({"required": ["l"], "properties": {"l": list}})
    };
    for rule in ["self.l[0] != ''", "self.l[0].size() > 0", "size(self.l[0]) >= 1", "!(self.l[0] == '')"] {
        assert_eq!(added(&spec(1), &[], rule), "safe", "{rule}");
    }
    assert_eq!(added(&spec(2), &[], "self.l[1] != ''"), "safe");
    assert_eq!(added(&spec(0), &[], "self.l[0] != ''"), "breaking");
    assert_ne!(added(&spec(1), &[], "self.l[1] != ''"), "safe");
    assert_ne!(added(&spec(1), &[], "self.l[0] != 'x'"), "safe");
}

#[test]
fn counts_are_tried_up_to_ten_thousand() {
    let counted = |mut field: Value, keyword: &str, most: Option<u32>| {
        most.into_iter().for_each(|most| field[keyword] = most.into());
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}})
    };
    let text = json!({"type": "string"});
    let list = |most| counted(json!({"type": "array", "items": text}), "maxItems", most);
    let map = |most| counted(json!({"type": "object", "additionalProperties": text}), "maxProperties", most);
    assert_eq!(proofs(&list(None), &list(Some(10_000))), ["breaking"]);
    assert_eq!(proofs(&list(Some(5_000)), &list(Some(4_000))), ["breaking"]);
    assert_eq!(proofs(&map(None), &map(Some(10_000))), ["breaking"]);
    assert_eq!(proofs(&map(Some(5_000)), &map(Some(4_000))), ["breaking"]);
}

#[test]
fn a_number_in_a_text_is_read() {
    let spec = |pattern: &str| json!({"required": ["n"], "properties": {"n": {"type": "string", "maxLength": 30, "pattern": pattern}}});
    let digits = spec("^[0-9]{1,4}$");
    for rule in ["int(self.n) >= 0", "int(self.n) < 10000", "int(self.n) != 10000", "!(int(self.n) == -1)"] {
        assert_eq!(added(&digits, &[], rule), "safe", "{rule}");
    }
    for rule in ["int(self.n) > 0", "int(self.n) < 9999", "int(self.n) != 80", "int(self.n) == 80"] {
        assert_eq!(added(&digits, &[], rule), "breaking", "{rule}");
    }
    assert_eq!(added(&digits, &["int(self.n) <= 100"], "int(self.n) < 200"), "safe");
    assert_eq!(added(&digits, &["int(self.n) <= 300"], "int(self.n) < 200"), "breaking");
    assert_eq!(added(&spec("^[1-9][0-9]{0,2}$"), &[], "int(self.n) > 0"), "safe");
    for pattern in ["^[0-9]*$", "^[0-9]{1,20}$", "^[0-9 ]+$", "[0-9]"] {
        assert_ne!(added(&spec(pattern), &[], "int(self.n) >= 0"), "safe", "{pattern}: some texts are no numbers");
    }
    let integer = json!({"required": ["n"], "properties": {"n": {"type": "integer"}}});
    assert_eq!(added(&integer, &["int(self.n) > 3"], "int(self.n) > 2"), "safe");
    assert_eq!(added(&integer, &[], "int(self.n) > 2"), "breaking");
}

#[test]
fn a_rule_with_an_optional_old_value_is_judged_on_creation_too() {
    let judged = |old: &Value, rule: &str| {
        let with = |rules: Value| {
            let mut spec = old.clone();
            spec["type"] = "object".into();
            spec["x-kubernetes-validations"] = rules;
            json!({"type": "object", "properties": {"spec": spec}})
        };
        proofs(&with(json!([])), &with(json!([{"rule": rule, "optionalOldSelf": true}])))[0]
    };
    let spec = json!({"required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}});
    for rule in ["oldSelf.hasValue() || self.n < 10", "self.n < 10 || self == oldSelf.value()"] {
        assert_eq!(judged(&spec, rule), "safe", "{rule}");
    }
    for rule in ["oldSelf.hasValue() || self.n < 5", "oldSelf.hasValue() && self.n < 10", "self.n == oldSelf.value().n"]
    {
        assert_eq!(judged(&spec, rule), "breaking", "{rule}");
    }
    for rule in ["!oldSelf.hasValue() || self.n >= oldSelf.value().n", "!oldSelf.hasValue() || self.n < 5"] {
        assert_eq!(judged(&spec, rule), "unknown", "{rule}: only an update can be refused");
    }
}

#[test]
fn format_that_implies_a_length_makes_a_bound_safe() {
    let text = |format: &str, bound: Value| {
        let mut field = json!({"type": "string", "format": format});
        field.as_object_mut().expect("a map").extend(bound.as_object().expect("a map").clone());
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}})
    };
    for (format, safe, breaking) in [
        ("date", json!({"maxLength": 10, "minLength": 10}), json!({"maxLength": 9})),
        ("uuid", json!({"maxLength": 36, "minLength": 32}), json!({"maxLength": 35})),
        ("ipv4", json!({"minLength": 7}), json!({"minLength": 8})),
        ("ipv6", json!({"minLength": 2, "maxLength": 45}), json!({"minLength": 3})),
        ("date-time", json!({"minLength": 20}), json!({"minLength": 21})),
        ("duration", json!({"minLength": 1}), json!({"minLength": 3})),
        ("mac", json!({"minLength": 12, "maxLength": 59}), json!({"minLength": 18})),
        ("hostname", json!({"minLength": 1, "maxLength": 255}), json!({"maxLength": 3})),
        ("cidr", json!({"minLength": 3}), json!({"minLength": 11})),
    ] {
        let judged = |bound: &Value| proofs(&text(format, json!({})), &text(format, bound.clone()));
        assert!(judged(&safe).iter().all(|proof| *proof == "safe"), "{format} {safe}: {:?}", judged(&safe));
        assert_eq!(judged(&breaking), ["breaking"], "{format} {breaking}");
    }
    // Numbers in addresses may have any number of leading zeros.
    assert_ne!(proofs(&text("ipv4", json!({})), &text("ipv4", json!({"maxLength": 45}))), ["safe"]);
}

#[test]
fn default_duration_of_a_new_field_is_compared() {
    let with = |default: &str, rule: &str| {
        let new = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {
            "a": {"type": "integer"}, "w": {"type": "string", "format": "duration", "default": default}}});
        let old = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let of = |spec: &Value| json!({"type": "object", "properties": {"spec": spec}});
        let found = proofs(&of(&old), &of(&new));
        found.into_iter().filter(|proof| *proof != "safe").collect::<Vec<_>>()
    };
    for rule in ["self.w > duration('1s')", "self.w <= duration('1h') && self.w != duration('1m')"] {
        let others = with("30s", "true");
        assert_eq!(with("30s", rule), others, "{rule}");
    }
    assert_ne!(with("30s", "self.w > duration('1m')"), with("30s", "true"));
}
