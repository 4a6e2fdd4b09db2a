//! What the search for witnesses under CEL rules finds within its bounds: chains of old rules, and a budget that the
//! rules must not use up for everything else.

use serde_json::{Value, json};

use super::{differences, verdict};
use crate::schema::cel::Program;
use crate::schema::contain::{SchemaProof, compare_and_count};
use crate::schema::model::Schema;
use crate::schema::pipeline::Server;
use crate::schema::testing::resource;

/// A reference that needs a port unless it names another kind of target.
fn backend(more: Value) -> Value {
    let mut schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "group": {"type": "string", "default": ""},
            "kind": {"type": "string", "default": "Service"},
            "port": {"type": "integer"},
        },
        "x-kubernetes-validations": [
            {"rule": "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true"},
        ],
    });
    if let (Some(properties), Value::Object(more)) = (schema["properties"].as_object_mut(), more) {
        properties.extend(more);
    }
    schema
}

/// A union as definitions write it: the type tells which member is set, and the member has its own rules.
fn union() -> Value {
    let member = |name: &str, word: &str| {
        [
            json!({"rule": format!("!(has(self.{name}) && self.type != '{word}')")}),
            json!({"rule": format!("!(!has(self.{name}) && self.type == '{word}')")}),
        ]
    };
    let words = ["Add", "Remove", "Mirror", "Redirect", "Rewrite", "Auth"];
    let members: Vec<(String, &str)> = words.iter().map(|word| (word.to_lowercase(), *word)).collect();
    let rules: Vec<Value> = members.iter().flat_map(|(name, word)| member(name, word)).collect();
    let mut properties: serde_json::Map<String, Value> =
        members.iter().map(|(name, _)| (name.clone(), json!({"type": "object"}))).collect();
    properties.insert("type".to_owned(), json!({"type": "string", "enum": words}));
    properties.insert(
        "auth".to_owned(),
        json!({
            "type": "object",
            "required": ["backend", "protocol"],
            "properties": {
                "backend": backend(json!({})),
                "protocol": {"type": "string", "enum": ["HTTP", "GRPC"]},
                "http": {"type": "object"},
                "grpc": {"type": "object", "properties": {
                    "headers": {"type": "array", "items": {"type": "string"}},
                }},
            },
            "x-kubernetes-validations": [
                {"rule": "self.protocol == 'GRPC' ? has(self.grpc) : true"},
                {"rule": "has(self.grpc) ? self.protocol == 'GRPC' : true"},
                {"rule": "self.protocol == 'HTTP' ? has(self.http) : true"},
                {"rule": "has(self.http) ? self.protocol == 'HTTP' : true"},
            ],
        }),
    );
    json!({"type": "array", "items": {
        "type": "object", "required": ["type"], "properties": properties, "x-kubernetes-validations": rules,
    }})
}

#[test]
fn a_witness_satisfies_old_rules_on_every_level_around_the_difference() {
    let old = backend(json!({"filters": union()}));
    let mut new = old.clone();
    let headers = "/properties/filters/items/properties/auth/properties/grpc/properties/headers";
    new.pointer_mut(headers).expect("headers")["maxItems"] = json!(2);
    let found = differences(&old, &new);
    let [difference] = found.as_slice() else { panic!("one difference: {found:?}") };
    let SchemaProof::Breaking { witness, .. } = &difference.proof else { panic!("a witness: {difference:?}") };
    let item = &witness["spec"]["f"]["filters"][0];
    assert_eq!((&item["type"], &item["auth"]["protocol"]), (&json!("Auth"), &json!("GRPC")));
}

#[test]
fn a_list_is_tried_with_the_item_that_a_new_rule_looks_for() {
    let list = |rules: Value| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rules});
    let new = list(json!([{"rule": "!('*' in self && self.size() > 1)"}]));
    assert_eq!(verdict(&list(json!([])), &new), "breaking x-kubernetes-validations");
    let map = |rules: Value| json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-validations": rules});
    let new = map(json!([{"rule": "!('reserved' in self)"}]));
    assert_eq!(verdict(&map(json!([])), &new), "breaking x-kubernetes-validations");
}

#[test]
fn rules_leave_enough_of_the_budget_for_the_proofs() {
    let word = || json!({"type": "string"});
    let node = |rule: &str| {
        json!({
            "type": "object",
            "required": ["a", "b", "c"],
            "properties": {"a": word(), "b": word(), "c": word()},
            "x-kubernetes-validations": [{"rule": rule}],
        })
    };
    // A paraphrase that only trying can recognise, and every try is a large object.
    let schema = |rule: &str, most: u32| {
        let mut properties: serde_json::Map<String, Value> =
            (0..12).map(|number| (format!("n{number}"), node(rule))).collect();
        let many = json!({"type": "array", "minItems": 900, "items": {"type": "integer"}});
        properties.insert("many".to_owned(), many);
        properties.insert("z".to_owned(), json!({"type": "integer", "maximum": most}));
        json!({"type": "object", "required": ["many"], "properties": properties})
    };
    let old = schema("!(self.a == 'x' || self.b == 'x' || self.c == 'x')", 9);
    let new = schema("self.a != 'x' && self.b != 'x' && self.c != 'x'", 5);
    let found = differences(&old, &new);
    let last = found.last().expect("differences");
    assert_eq!(last.keyword, "maximum", "the order is that of the schema");
    assert!(matches!(last.proof, SchemaProof::Breaking { .. }), "{last:?}");
}

#[test]
fn a_witness_obeys_the_rest_of_a_release() {
    let old = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "required": ["mode", "ports"],
        "properties": {
            "mode": {"type": "string"},
            "ports": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "number": {"type": "integer"}, "protocol": {"type": "string"},
            }}},
            "class": {"type": "string"},
        },
    }}});
    let mut new = old.clone();
    let spec = &mut new["properties"]["spec"];
    spec["required"] = json!(["mode", "ports", "class"]);
    spec["properties"]["mode"]["enum"] = json!(["fast", "safe"]);
    spec["properties"]["ports"]["minItems"] = 1.into();
    let item = &mut spec["properties"]["ports"]["items"];
    item["required"] = json!(["name", "protocol"]);
    item["properties"]["number"]["maximum"] = 65_535.into();
    let found = differences(&old, &new);
    assert_eq!(found.len(), 5);
    for difference in found {
        let SchemaProof::Breaking { witness, damage } = &difference.proof else { panic!("{difference:?}") };
        assert_eq!(damage.others, 0, "{} {:?}: {witness}", difference.keyword, difference.path);
    }
}

#[test]
fn work_of_a_comparison_does_not_depend_on_earlier_evaluations() {
    let schema = |rules: Value| {
        Schema::of(&json!({"type": "object", "properties": {"spec": {"type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "x-kubernetes-validations": rules}}}))
    };
    let rule = json!([{"rule": "!has(self.a) || !has(self.b) || self.a.startsWith(self.b)"}]);
    let (old, new) = (schema(json!([])), schema(rule));
    let spent = || compare_and_count(&resource(&old), &resource(&new), Server::default()).1.values;
    let first = spent();
    let list = Schema::of(&json!({"type": "array", "items": {"type": "integer"}}));
    let slow = Program::compile("self.all(a, self.all(b, a == b))").expect("a rule");
    let _ = slow.evaluate(&list, &json!(vec![1; 300]), None);
    assert_eq!(spent(), first);
}

/// Operands of a comparison of truth values, and conditions, occur twice in the constraints of a rule: nested ones would
/// grow exponentially.
#[test]
fn nested_truth_values_and_conditions_are_judged_within_the_budget() {
    let terms = 0..60;
    let has = |index: usize| format!("has(self.b{index})");
    let conditional = |inner: String, index: usize| format!("({inner} ? {} : !{})", has(index), has(index));
    let as_condition = terms.clone().skip(1).take(40).fold(has(0), conditional);
    let chain = |operator: &str, term: &dyn Fn(usize) -> String| {
        terms.clone().map(term).collect::<Vec<_>>().join(&format!(" {operator} "))
    };
    let rules = [
        chain("!=", &has),
        chain("==", &has),
        chain("!=", &|index| format!("(self.i{index} > {index})")),
        chain("==", &|index| format!("(size(self.s{index}) > {index})")),
        chain("!=", &|index| format!("self.?b{index}.orValue(false)")),
        chain("!=", &|index| conditional(has(index), index + 1)),
        as_condition.clone(),
        format!("[1].all(x, {as_condition})"),
        format!("({as_condition}) != ({})", chain("!=", &has)),
    ];
    let kinds = [("b", "boolean"), ("i", "integer"), ("s", "string")];
    let fields = |(name, kind): (&str, &str)| -> Vec<(String, Value)> {
        (0..62).map(|index| (format!("{name}{index}"), json!({"type": kind}))).collect()
    };
    let properties: serde_json::Map<String, Value> = kinds.into_iter().flat_map(fields).collect();
    for rule in rules {
        let schema = |rules: Vec<&str>| {
            let rules: Vec<Value> = rules.into_iter().map(|rule| json!({"rule": rule})).collect();
            json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules})
        };
        let added = verdict(&schema(vec![]), &schema(vec![&rule]));
        assert_ne!(added, "safe", "{rule}");
        // Old rules of this kind prove nothing here, and take no longer.
        let replaced = verdict(&schema(vec![&rule]), &schema(vec!["has(self.b0)"]));
        assert_ne!(replaced, "safe", "{rule}");
    }
}
