//! Hostile definitions: deep, wide, exponential. Each ends within its budgets, without a panic, and nothing unproved
//! passes as safe. The same input always gives the same bytes.

use pushback_crd::schema::contain::{SchemaProof, Spent, compare_and_count};
use pushback_crd::schema::model::MAX_DEPTH;
use serde_json::{Map, Value, json};

use super::*;

/// Wide enough to expose quadratic cost, small enough for a debug build.
const WIDE: usize = 1_000;
/// Like [`WIDE`], for schemas whose every witness has all fields.
const LARGE: usize = 250;

fn definition(spec: Value) -> Value {
    let mut definition = foos();
    definition["spec"]["versions"].as_array_mut().expect("a list").truncate(1);
    let mut properties = Map::new();
    properties.insert("spec".to_owned(), spec);
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"] = Value::Object(properties);
    // The fields of the scale subresource would limit the values.
    definition["spec"]["versions"][0]["subresources"] = json!({});
    definition
}

/// Numbers of safe, breaking and unknown differences. The pipeline confirms every witness.
fn judged(old: Value, new: Value) -> [usize; 3] {
    counted(old, new).0
}

/// Like [`judged`], with the cost.
fn counted(old: Value, new: Value) -> ([usize; 3], Spent) {
    let (mut old, new) = (definition(old), definition(new));
    old["status"] = json!({"storedVersions": ["v1"]});
    let change = update(old, new);
    let facts = Facts::default();
    stack::with_room(|| {
        let (old, new) = sides(&change).expect("both sides");
        let upgrade = Upgrade::of(old, new, facts.cluster.judged_server());
        let resources = (upgrade.old_resource("v1").expect("v1"), upgrade.new_resource("v1").expect("v1"));
        let mut counts = [0; 3];
        let (differences, spent) = compare_and_count(&resources.0, &resources.1, upgrade.server);
        for difference in differences {
            counts[match difference.proof {
                SchemaProof::Safe => 0,
                SchemaProof::Breaking { .. } => 1,
                SchemaProof::Unknown { .. } => 2,
            }] += 1;
        }
        (counts, spent)
    })
}

fn properties(count: usize, property: impl Fn(usize) -> Value) -> Value {
    (0..count).map(|index| (format!("field{index:05}"), property(index))).collect::<Map<_, _>>().into()
}

fn names(count: usize) -> Value {
    (0..count).map(|index| Value::from(format!("field{index:05}"))).collect()
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn wrapped(leaf: Value, depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(leaf, |inner, _| wrap(inner))
}

fn one(keyword: &str, inner: Value) -> Value {
    Map::from_iter([(keyword.to_owned(), inner)]).into()
}

#[test]
fn what_is_nested_too_deeply_is_never_safe() {
    for depth in [MAX_DEPTH - 4, MAX_DEPTH - 3, MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 500, 900] {
        for container in ["object", "array"] {
            let deep = |leaf| {
                wrapped(leaf, depth, |inner| {
                    let mut schema = match container {
                        "object" => one("properties", one("a", inner)),
                        _ => one("items", inner),
                    };
                    schema["type"] = container.into();
                    schema
                })
            };
            let [safe, breaking, unknown] =
                judged(deep(json!({"type": "string"})), deep(json!({"type": "string", "maxLength": 3})));
            assert_eq!((safe, breaking + unknown), (0, 1), "{container} {depth}");
        }
    }
}

#[test]
fn a_wide_schema_is_judged_field_by_field() {
    let text = |_| json!({"type": "string"});
    let short = |_| json!({"type": "string", "maxLength": 5});
    let wide = |property: fn(usize) -> Value| object(properties(WIDE, property));
    assert_eq!(judged(wide(text), object(json!({}))), [0, WIDE, 0], "removed");
    assert_eq!(judged(wide(text), wide(short)), [0, WIDE, 0], "tightened");
    assert_eq!(judged(wide(short), wide(text)), [WIDE, 0, 0], "loosened");
    assert_eq!(
        judged(
            wide(|_| json!({"type": "string", "pattern": "^[a-z]{1,62}$"})),
            wide(|_| { json!({"type": "string", "pattern": "^[a-z]{1,63}$"}) })
        )[1],
        0,
        "patterns that let in more"
    );
}

#[test]
fn wide_schemas_whose_every_object_is_large_end_by_their_budget() {
    let with = |property: Value, keyword: &str, value: Value| {
        let mut schema = object(properties(LARGE, |_| property.clone()));
        schema[keyword] = value;
        schema
    };
    let (text, short) = (json!({"type": "string"}), json!({"type": "string", "maxLength": 5}));
    let filled = |most: i64| json!({"type": "string", "maxLength": most, "default": "a"});
    let plain = object(properties(LARGE, |_| text.clone()));
    let cases = [
        (plain.clone(), with(text.clone(), "required", names(LARGE))),
        (with(text.clone(), "required", names(LARGE)), with(short, "required", names(LARGE))),
        (object(properties(LARGE, |_| filled(5))), object(properties(LARGE, |_| filled(4)))),
        (plain, object(properties(LARGE, |_| filled(5)))),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            with(filled(5), "x-kubernetes-preserve-unknown-fields", true.into()),
        ),
    ];
    for (index, (old, new)) in cases.into_iter().enumerate() {
        let [_, breaking, unknown] = judged(old, new);
        assert!(breaking > 0 && breaking + unknown >= LARGE, "{index}: {breaking} {unknown}");
    }
}

#[test]
fn combinators_end_by_their_budget_and_without_all_memory() {
    let nest = |keyword: &str, shift: usize| {
        let mut leaves =
            (0..256).map(|index| json!({"required": [format!("field{:05}", index + shift)]})).collect::<Vec<_>>();
        while leaves.len() > 1 {
            leaves = leaves.chunks(2).map(|pair| one(keyword, pair.to_vec().into())).collect();
        }
        let mut schema = object(properties(300, |_| json!({"type": "string"})));
        schema["allOf"] = leaves.into();
        schema
    };
    let clauses = |keyword: &str, from: usize| {
        let clause = |number: usize| {
            let branch = |index: usize| {
                let name = format!("field{:05}", (number * 7 + index * 13) % 40);
                json!({"properties": {(&name): {"pattern": format!("^a{index}")}}, "required": [name]})
            };
            one(keyword, (0..6).map(branch).collect())
        };
        let mut schema = object(properties(40, |_| json!({"type": "string"})));
        schema["allOf"] = (from..from + 60).map(clause).collect();
        schema
    };
    for keyword in ["oneOf", "anyOf"] {
        let [safe, ..] = judged(nest(keyword, 0), nest(keyword, 1));
        assert_eq!(safe, 0, "{keyword} nest");
        let [safe, ..] = judged(clauses(keyword, 0), clauses(keyword, 2));
        assert_eq!(safe, 0, "{keyword} clauses");
    }
    let branches = |count: usize| {
        let each: Vec<Value> = (0..count).map(|index| json!({"enum": [format!("v{index}")]})).collect();
        json!({"type": "string", "oneOf": each})
    };
    assert_eq!(judged(branches(800), branches(799))[0], 0, "a branch less");
    let values: Vec<String> = (0..400).map(|index| format!("v{index}")).collect();
    assert_eq!(judged(json!({"type": "string", "enum": values}), branches(399))[0], 1, "only the enum goes");
    let nots = |leaf: &str| {
        let nested =
            wrapped(json!({"pattern": leaf}), 40, |inner| json!({"not": {"oneOf": [inner, {"minLength": 3}]}}));
        json!({"type": "string", "allOf": [nested]})
    };
    assert_eq!(judged(nots("a"), nots("b"))[0], 0, "nots");
}

#[test]
fn sizes_that_multiply_do_not_take_all_memory() {
    let lists = |most: i64| {
        wrapped(
            json!({"type": "string", "maxLength": most}),
            4,
            |inner| json!({"type": "array", "minItems": 1000, "items": inner}),
        )
    };
    assert_eq!(judged(lists(9), lists(3))[0], 0);
    let maps = |most: i64| {
        wrapped(
            json!({"type": "string", "maxLength": most}),
            3,
            |inner| json!({"type": "object", "minProperties": 1000, "additionalProperties": inner}),
        )
    };
    assert_eq!(judged(maps(9), maps(3))[0], 0);
    let sets = |most: i64| {
        json!({
            "type": "array", "minItems": 300, "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": most},
        })
    };
    let (counts, spent) = counted(sets(9), sets(3));
    assert_eq!(counts, [0, 1, 0], "a set");
    assert!(spent.automata < 10_000, "items are not searched one by one: {spent:?}");
    let listed = |most: i64| {
        let item = json!({
            "type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "maxLength": 9}, "size": {"type": "string", "maxLength": most}},
        });
        json!({
            "type": "array", "minItems": 300, "items": item,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        })
    };
    let (counts, spent) = counted(listed(9), listed(3));
    assert_eq!(counts, [0, 1, 0], "a list of maps");
    assert!(spent.automata < 10_000, "items are not searched one by one: {spent:?}");
    let sized = |least: Option<i64>| {
        let mut fields = json!({
            "list": {"type": "array", "items": {"type": "string"}},
            "text": {"type": "string"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        });
        if let Some(least) = least {
            fields["list"]["minItems"] = least.into();
            fields["text"]["minLength"] = least.into();
            fields["map"]["minProperties"] = least.into();
        }
        object(fields)
    };
    assert_eq!(judged(sized(None), sized(Some(i64::MAX)))[0], 0);
    assert_eq!(judged(sized(Some(i64::MAX)), sized(Some(i64::MIN)))[1], 0);
}

#[test]
fn hard_patterns_end_by_their_budget() {
    let with = |pattern: &str| object(properties(6, |_| json!({"type": "string", "pattern": pattern})));
    let [_, breaking, unknown] = judged(with("^[ab]*a[ab]{18}$"), with("^[ab]*a[ab]{17}[ab]$"));
    assert_eq!((breaking, breaking + unknown), (0, 6));
    let long = (0..1000).map(|index| format!("v{index}x")).collect::<Vec<_>>().join("|");
    let [safe, ..] = judged(with(&format!("^({long})$")), with(&format!("^({long}y)$")));
    assert_eq!(safe, 0);
}

#[test]
fn large_enums_and_their_order() {
    const MANY: usize = 10_000;
    let values = |range: std::ops::Range<usize>| range.map(|index| format!("v{index}")).collect::<Vec<_>>();
    let listed = |values: Vec<String>| object(json!({"e": {"type": "string", "enum": values}}));
    let (counts, spent) = counted(listed(values(0..MANY)), listed(values(1..MANY)));
    assert_eq!(counts, [0, 1, 0], "a value less");
    assert!(spent.steps + spent.values < 1_000, "{spent:?}");
    let mut more = values(0..MANY + 1);
    more.reverse();
    assert_eq!(counted(listed(values(0..MANY)), listed(more)).0, [1, 0, 0], "a value more, in another order");
    let numbers = |kind: &str, range: &mut dyn Iterator<Item = usize>| {
        object(json!({"e": {"type": kind, "enum": range.collect::<Vec<_>>()}}))
    };
    let (before, after) = (numbers("number", &mut (0..MANY)), numbers("number", &mut (0..MANY).rev()));
    assert_eq!(counted(before, after), ([0, 0, 0], Spent::default()), "only the order");
    let objects = |from: usize| {
        let each: Vec<Value> = (from..MANY).map(|index| json!({"a": index})).collect();
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "enum": each})
    };
    assert_eq!(judged(objects(0), objects(1))[1], 1, "objects");
}

#[test]
fn what_does_not_differ_costs_nothing_however_much_it_is() {
    let text = json!({"type": "string", "pattern": "^[a-z]+$", "description": "what it is for ".repeat(8)});
    let cost = |count: usize| {
        let old = object(properties(count, |_| text.clone()));
        let mut new = old.clone();
        new["properties"]["field00007"]["maxLength"] = 5.into();
        let (counts, spent) = counted(old, new);
        assert_eq!(counts, [0, 1, 0]);
        spent
    };
    assert_eq!(cost(10_000), cost(10));
    // More than two megabytes of schema, on several levels.
    let two_megabytes = |levels: u32, wide: usize| {
        let nested = (0..levels).fold(text.clone(), |inner, _| object(properties(wide, |_| inner.clone())));
        let mut new = nested.clone();
        let leaf = "/properties/field00001".repeat(levels as usize);
        new.pointer_mut(&leaf).expect("a leaf")["maxLength"] = 5.into();
        (nested, new)
    };
    let (old, new) = two_megabytes(4, 11);
    assert!(old.to_string().len() > 2_000_000);
    let (counts, large) = counted(old, new);
    let (old, new) = two_megabytes(4, 2);
    assert_eq!((counts, large), counted(old, new));
}

#[test]
fn many_rules_are_told_apart_by_what_they_say() {
    let with = |rules: Vec<String>| {
        let rules: Vec<Value> = rules.into_iter().map(|rule| json!({"rule": rule})).collect();
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rules})
    };
    let rules = |numbers: &mut dyn Iterator<Item = usize>, blank: &str| {
        with(numbers.map(|number| format!("!has(self.a){blank}||{blank}self.a != {number}")).collect())
    };
    const MANY: usize = 1_500;
    let (counts, spent) = counted(rules(&mut (0..MANY), " "), rules(&mut (0..MANY).rev(), ""));
    assert_eq!((counts, spent.values), ([1, 0, 0], 0), "the same rules, in another order and spelling");
    let (counts, spent) = counted(rules(&mut (0..MANY), " "), rules(&mut (0..MANY + 1), ""));
    assert_eq!(counts, [0, 1, 0], "one more");
    assert!(spent.values < 100_000, "{spent:?}");
}

#[test]
fn names_of_any_kind_are_only_names() {
    let hostile = [
        "",
        ".",
        "a.b",
        "items",
        "not",
        "properties",
        "additionalProperties",
        "a[0]",
        "[*]",
        "'",
        "\"",
        "\\",
        "\n",
        "\0",
        "\u{202e}gnp",
        "\u{200b}",
        "*",
        "apiVersion",
        "kind",
        "metadata",
        "~0",
        "~1",
        "/",
        "{}",
        "é",
        "e\u{301}",
    ];
    let with = |schema: Value| {
        object(hostile.iter().map(|name| ((*name).to_owned(), schema.clone())).collect::<Map<_, _>>().into())
    };
    let (text, short) = (json!({"type": "string"}), json!({"type": "string", "maxLength": 3}));
    assert_eq!(judged(with(text.clone()), with(short)), [0, hostile.len(), 0]);
    let report = run(update(
        live(&["v1"]),
        edited(|definition| {
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = with(text);
        }),
    ));
    assert!(lines(&report).contains("may not be removed"), "{}", lines(&report));
}

#[test]
fn rules_that_never_end_are_not_waited_for() {
    let with = |bound: usize| {
        let ones = vec!["1"; 300].join(",");
        json!({
            "type": "array", "minItems": 60, "items": {"type": "integer"},
            "x-kubernetes-validations": [
                {"rule": format!("self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d != {bound}))))")},
                {"rule": format!("[{ones}].all(x, [{ones}].all(y, x != {bound} + y))")},
                {"rule": format!("{}true{}", "(".repeat(5000), ")".repeat(5000))},
            ],
        })
    };
    assert_eq!(judged(with(9), with(8))[0], 0);
}

#[test]
fn the_same_definitions_always_give_the_same_report() {
    let whole = |change: Change| serde_json::to_string(&run(change)).expect("JSON");
    let mut old = real("karpenter-0.37.7-nodeclaims");
    old["status"] = json!({"storedVersions": ["v1beta1"]});
    let new = real("karpenter-1.0.9-nodeclaims");
    let hostile = |pattern: &str| {
        let mut schema = object(properties(20, |_| json!({"type": "string", "pattern": pattern})));
        schema["oneOf"] = (0..20).map(|index| json!({"required": [format!("field{index:05}")]})).collect();
        definition(schema)
    };
    let pairs = [(old, new), (hostile("^[a-m]+$"), hostile("^[a-z]{2,9}$"))];
    for (old, new) in pairs {
        let first = whole(update(old.clone(), new.clone()));
        assert!(first.contains("\"witness\":{"), "{first}");
        for _ in 0..8 {
            assert_eq!(whole(update(old.clone(), new.clone())), first);
        }
    }
}
