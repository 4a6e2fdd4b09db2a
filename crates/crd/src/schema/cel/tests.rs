//! Replays answers of the API server's own code, and feeds hostile rules to the parser.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::*;

/// Rows of rule, schema, object and the answer of `apiextensions-apiserver` 0.36.3; the first line holds what rows
/// share.
const ANSWERS: &str = include_str!("answers.jsonl");

fn shared<'j>(shared: &'j Json, group: &str, value: &'j Json) -> &'j Json {
    value.as_str().and_then(|name| shared[group].get(name)).unwrap_or(value)
}

#[test]
fn answers_are_those_of_the_api_server() {
    let mut lines = ANSWERS.lines().map(|line| serde_json::from_str::<Json>(line).expect("a line of JSON"));
    let names = lines.next().expect("a first line");
    let (mut rows, mut unknown, mut wrong) = (0, Vec::new(), Vec::new());
    let mut schemas = BTreeMap::new();
    for row in lines {
        rows += 1;
        let rule = row["rule"].as_str().expect("a rule");
        let schema = shared(&names, "schemas", &row["schema"]);
        let schema = &*schemas.entry(schema.to_string()).or_insert_with(|| Schema::of(schema));
        let object = shared(&names, "objects", &row["object"]);
        let old = row.get("old").map(|old| shared(&names, "objects", old));
        let program = Program::of(&CelRule {
            rule: rule.to_owned(),
            optional_old_self: row["optional"] == true,
            ..CelRule::default()
        })
        .unwrap_or_else(|error| panic!("{rule}: {error}"));
        let (truth, cost) = program.evaluate_with_cost(schema, object, old);
        let most = program.maximum_cost(schema);
        assert!(cost <= most, "{rule} on {object}: costs {cost}, more than {most}");
        let answer = match &truth {
            Truth::True => "true",
            Truth::False => "false",
            Truth::Error(_) => "error",
            Truth::Unknown(why) => {
                unknown.push(format!("{rule}: {why}"));
                continue;
            }
        };
        if row["answer"] != answer {
            wrong.push(format!("{rule} on {object}: {truth}, server {}", row["answer"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {rows} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 1000, "only {rows} rows");
    assert!(unknown.len() * 20 <= rows, "{} of {rows} not known:\n{}", unknown.len(), unknown.join("\n"));
}

#[test]
fn hostile_texts_end_in_an_error_and_not_in_a_crash() {
    let many = 20_000;
    for text in [
        format!("{}1{}", "(".repeat(many), ")".repeat(many)),
        format!("{}x", "-".repeat(many)),
        format!("{}1", "1+".repeat(many / 4)),
        format!("a{}", ".a".repeat(many / 4)),
        format!("a{}", ".f()".repeat(many / 8)),
        format!("a{}", "[0]".repeat(many / 4)),
        "a?b:".repeat(many / 4),
        "[".repeat(many),
        "{".repeat(many),
        "a[".repeat(many / 2),
        format!("{}true{}", "[1].all(x, ".repeat(100), ")".repeat(100)),
        "'".to_owned(),
        "'\\".to_owned(),
        "'\\u12".to_owned(),
        "'\\ud800'".to_owned(),
        "b'\\400'".to_owned(),
        "99999999999999999999".to_owned(),
        "1.5.".to_owned(),
        "0x".to_owned(),
        "`a".to_owned(),
        "has(1)".to_owned(),
        "[1].all(x.y, true)".to_owned(),
        "a.b{c: 1}".to_owned(),
        "a b".to_owned(),
        "a = b".to_owned(),
        "\u{0}".to_owned(),
        String::new(),
        "x".repeat(1 << 20),
    ] {
        let error = Program::compile(&text).map(|program| program.normalised().len());
        let shown: String = text.chars().take(20).collect();
        match shown.as_str() {
            // An odd number of signs is one sign, an even number none.
            "--------------------" => assert!(error.is_ok(), "{shown}"),
            _ => assert!(error.is_err(), "{shown}"),
        }
    }
}

#[test]
fn the_deepest_rules_that_are_read_are_evaluated() {
    let schema = Schema::of(&json!({"type": "string"}));
    let evaluate = |open: &str, inner: &str, close: &str| {
        let deepest = (1..200)
            .rev()
            .map(|depth| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)))
            .find_map(|rule| Program::compile(&rule).ok())
            .expect("one that is read");
        let _ = (deepest.normalised(), deepest.hints(), deepest.uses_old_self());
        deepest.evaluate(&schema, &json!("a"), None)
    };
    assert_eq!(evaluate("[1].all(x, ", "self == 'a'", ")"), Truth::True);
    assert_eq!(evaluate("(", "self == 'a'", ")"), Truth::True);
    assert_eq!(evaluate("self == 'b' ? false : (", "true", ")"), Truth::True);
    assert_eq!(evaluate("optional.of(", "1", ").hasValue()"), Truth::True);
    assert_eq!(evaluate("size([", "1", "])"), Truth::Unknown("the rule gives a int".to_owned()));
    assert_eq!(evaluate("true && (false || ", "self == 'a'", ")"), Truth::True);
}

#[test]
fn long_chains_of_and_are_flat() {
    let rule = vec!["self != 3"; 2000].join(" && ");
    let program = Program::compile(&rule).expect("a long rule");
    let schema = Schema::of(&json!({"type": "integer"}));
    assert_eq!(program.evaluate(&schema, &json!(4), None), Truth::True);
}

/// An operand that is looked at twice would double the work with each call.
#[test]
fn cost_of_chained_calls_is_estimated_once_for_each() {
    let schema = Schema::of(&json!({"type": "string", "maxLength": 10}));
    let cost = |calls: usize| {
        let rule = format!("self{} == ''", ".trim()".repeat(calls));
        Program::compile(&rule).expect("a rule").maximum_cost(&schema)
    };
    assert!(cost(55) > cost(2) && cost(2) > cost(1));
}

#[test]
fn rules_that_take_too_long_are_given_up() {
    let schema = Schema::of(&json!({"type": "array", "items": {"type": "string"}}));
    let list = json!(vec!["aaaaaaaaaaaaaaaaaaaa"; 1000]);
    for rule in [
        "self.all(a, self.all(b, self.all(c, a == b && b == c)))",
        "self.map(a, self.map(b, self.map(c, a + b + c))).size() > 0",
        "lists.range(1000000000).size() > 0",
        "self.map(a, self + self + self).flatten().map(a, self.join(a)).size() > 0",
        "self.all(a, self.distinct().sort().reverse().size() > 0)",
        "[self, self, self, self].map(w, [w, w, w, w].map(x, [x, x, x].map(y, [y, y].map(z, z.join().replace('', 'aaaaaaaaaaaaaaaaaaaa'))))).size() > 0",
    ] {
        let program = Program::compile(rule).expect(rule);
        let truth = program.evaluate(&schema, &list, None);
        let ends = [
            Truth::Unknown("the rule takes too many steps".to_owned()),
            Truth::Error("it costs more than the server allows for one call".to_owned()),
        ];
        assert!(ends.contains(&truth), "{rule}: {truth}");
    }
}

#[test]
fn what_the_schema_does_not_show_is_not_known() {
    let schema = Schema::of(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "free": {"x-kubernetes-preserve-unknown-fields": true}, "name": {"type": "string"},
    }}));
    let object = json!({"free": 1, "other": 2, "name": "n"});
    for rule in ["self.other == 2", "has(self.other)", "self.free == 1", "nothing == 1", "self.name.strange()"] {
        let truth = Program::compile(rule).expect(rule).evaluate(&schema, &object, None);
        assert!(matches!(truth, Truth::Unknown(_)), "{rule}: {truth}");
    }
    for (rule, truth) in
        [("self.name == 'n' || self.other == 2", Truth::True), ("self.name == 'x' && has(self.free)", Truth::False)]
    {
        assert_eq!(Program::compile(rule).expect(rule).evaluate(&schema, &object, None), truth, "{rule}");
    }
}

#[test]
fn what_makes_the_server_stumble_is_not_absorbed() {
    let schema = Schema::of(&json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "string"}},
    }}));
    for rule in
        ["self.list.sort() == [] && false", "self.list.distinct() == [] && false", "true || self.list.size() > 0"]
    {
        let truth = Program::compile(rule).expect(rule).evaluate(&schema, &json!({}), None);
        assert_eq!(matches!(truth, Truth::Unknown(_)), !rule.starts_with("true"), "{rule}: {truth}");
    }
}

#[test]
fn rules_on_transitions_hold_where_there_is_none() {
    let schema = Schema::of(&json!({"type": "string"}));
    let program = Program::compile("self == oldSelf").expect("a rule");
    assert!(program.uses_old_self());
    assert!(!Program::compile("['a'].all(oldSelf, oldSelf == self)").expect("a rule").uses_old_self());
    assert_eq!(program.evaluate(&schema, &json!("a"), None), Truth::True);
    assert_eq!(program.evaluate(&schema, &json!("a"), Some(&json!("b"))), Truth::False);
    assert_eq!(program.evaluate(&schema, &json!(null), Some(&json!("b"))), Truth::True);
}

#[test]
fn spelling_does_not_matter_to_the_normalised_text() {
    let normalised = |rule: &str| Program::compile(rule).expect(rule).normalised();
    for (one, other) in [
        ("self.a=='b'", "(self.a) == \"b\" // same"),
        ("self.l.all(x, x > 1 && (x < 3 && true))", "self.l.all(item,\n  (item > 1 && item < 3) && true)"),
        ("!!has(self.a)", "has(self.a)"),
        ("r'\\d' == '\\\\d'", "'\\\\d' == \"\\\\d\""),
        ("self.a.existsOne(x, x)", "self.a.exists_one(y, y)"),
    ] {
        assert_eq!(normalised(one), normalised(other));
    }
    for (one, other) in [
        ("self.a == 'b'", "self.b == 'b'"),
        ("a - (b - c) == d", "a - b - c == d"),
        ("self.l.all(x, y > x)", "self.l.all(y, y > x)"),
        ("'1' == a", "1 == a"),
        ("1 == a", "1u == a"),
        ("1 == a", "1.0 == a"),
        ("self.a && self.b || self.c", "self.a && (self.b || self.c)"),
        ("self.l.all(x, true)", "self.l.all(i, x, true)"),
        ("a.?b == c", "a.b == c"),
    ] {
        assert_ne!(normalised(one), normalised(other));
    }
}

#[test]
fn hints_name_paths_literals_and_sizes() {
    let hints = Program::compile(
        "has(self.a__dash__b) && self.spec.mode in ['A', 'B'] && self.list.all(x, x.size() <= 5 && x.startsWith('p')) \
         && self.m['k'] != 3",
    )
    .expect("a rule")
    .hints();
    let field = |name: &str| Step::Field(name.to_owned());
    assert!(hints.paths[&vec![field("a-b")]].presence);
    assert_eq!(hints.paths[&vec![field("spec"), field("mode")]].literals, [json!("A"), json!("B")]);
    assert_eq!(hints.paths[&vec![field("list"), Step::Item]].sizes, [5]);
    assert_eq!(hints.paths[&vec![field("list"), Step::Item]].literals, [json!("p")]);
    assert_eq!(hints.paths[&vec![field("m"), field("k")]].literals, [json!(3)]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
        std::env::var("PUSHBACK_PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
    ))]

    #[test]
    fn no_text_breaks_the_reader(pieces in proptest::collection::vec(proptest::sample::select(vec![
        "self", "oldSelf", ".a", ".?a", "[0]", "[?'k']", "(", ")", "[", "]", "{", "}", ",", ":", "?", "!", "-", "+", "*", "/",
        "%", "&&", "||", "==", "<", " in ", "has(", ".all(x, ", ".map(x, ", ".exists_one(x, ", "size(", "x", "1", "2u", "1.5",
        "'s'", "b'y'", "true", "null", ".size()", ".matches('a')", "quantity('1')", "ip(", "duration('1s')", "`", "'", "é",
    ]), 0..24)) {
        let text = pieces.concat();
        let schema = Schema::of(&json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true}}}));
        if let Ok(program) = Program::compile(&text) {
            let normalised = program.normalised();
            let _ = program.evaluate(&schema, &json!({"a": 1}), Some(&json!({"a": "b"})));
            let _ = program.hints();
            proptest::prop_assert!(!normalised.is_empty());
        }
    }
}

/// The longest lists were found on an API server 1.36.3.
#[test]
fn macro_is_charged_for_the_items_that_it_keeps() {
    let schema = Schema::of(&json!({"type": "array", "items": {"type": "integer"}}));
    let numbers: Vec<u32> = (0..700).collect();
    for (inner, longest) in [
        ("self.map(y, y)", Some(276)),
        ("self.map(y, true, y)", Some(276)),
        ("self.transformList(i, y, y)", Some(276)),
        ("self.map(y, false, y)", None),
        ("self.filter(y, true)", Some(275)),
        ("self.filter(y, y > x)", Some(323)),
        ("self.filter(y, false)", None),
    ] {
        let program = Program::compile(&format!("self.map(x, {inner}).size() >= 0")).expect(inner);
        let judge = |count: usize| program.evaluate(&schema, &json!(numbers[..count]), None);
        assert_eq!(judge(longest.unwrap_or(700)), Truth::True, "{inner}");
        let more = longest.map(|longest| judge(longest + 3));
        assert!(more.is_none_or(|more| matches!(more, Truth::Error(_))), "{inner}");
    }
}

#[test]
fn maximum_cost_depends_on_the_sizes_of_all_operands() {
    let list = |most: u32| json!({"type": "array", "maxItems": most, "items": {"type": "string", "maxLength": 5}});
    let cost = |rule: &str, one: u32, other: u32| {
        let schema = Schema::of(&json!({"type": "object", "properties": {"a": list(one), "b": list(other)}}));
        Program::compile(rule).expect("a rule").maximum_cost(&schema)
    };
    for function in ["sets.contains", "sets.intersects", "sets.equivalent"] {
        let rule = format!("{function}(self.a, self.b)");
        assert!(cost(&rule, 10, 10) < 1_000, "{rule}");
        assert!((20_000..60_000).contains(&cost(&rule, 10, 2_000)), "{rule}");
        assert!(cost(&rule, 10, 2_000).abs_diff(cost(&rule, 2_000, 10)) < 100, "{rule}");
    }
    assert!(cost("'x' in self.a", 1_000, 1) >= 1_000);
}

#[test]
fn maximum_cost_of_a_result_that_is_not_larger_depends_on_its_input() {
    let schema = Schema::of(&json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 10,
        "items": {"type": "string", "maxLength": 5}}}}));
    for range in [
        "self.l.reverse()",
        "self.l.slice(0, 2)",
        "self.l.sort()",
        "self.l.distinct()",
        "self.l.filter(x, x != '')",
        "self.l.map(x, x + 'a')",
        "(self.l + self.l)",
        "(true ? self.l : [])",
        "'a,b'.split(',')",
    ] {
        let rule = format!("{range}.all(x, x != 'a')");
        let cost = Program::compile(&rule).expect(&rule).maximum_cost(&schema);
        assert!(cost < 200_000, "{rule}: {cost}");
    }
}

/// The API server charges the comparison of texts by their length, and of the items of a list by their pairs.
#[test]
fn calls_are_charged_by_the_sizes_of_their_operands() {
    let list = |item: serde_json::Value| Schema::of(&json!({"type": "array", "items": item}));
    let texts: Vec<String> = (0..200).map(|index| format!("{}{index:03}", "a".repeat(297))).collect();
    let pairs = Program::compile("self.all(x, self.exists_one(y, y == x))").expect("a rule");
    let judged = pairs.evaluate(&list(json!({"type": "string"})), &json!(texts), None);
    assert!(matches!(judged, Truth::Error(_)), "{judged:?}");
    assert_eq!(pairs.evaluate(&list(json!({"type": "string"})), &json!(texts[..100]), None), Truth::True);
    let numbers: Vec<u32> = (0..720).collect();
    for rule in ["self.sort().size() > 0", "self.distinct().size() > 0", "sets.equivalent(self, self)"] {
        let program = Program::compile(rule).expect("a rule");
        let judge = |count: usize| program.evaluate(&list(json!({"type": "integer"})), &json!(numbers[..count]), None);
        assert!(matches!(judge(720), Truth::Error(_)), "{rule}: {:?}", judge(720));
        assert_eq!(judge(690), Truth::True, "{rule}");
    }
}

#[test]
fn rule_that_reads_no_object_is_decided_without_one() {
    let decided = |rule: &str| {
        let rule = CelRule { rule: rule.to_owned(), ..CelRule::default() };
        Program::of(&rule).expect("a rule").decide(&|_| None)
    };
    assert_eq!(decided("lists.range(3).all(x, x < 3)"), Some(true));
    assert_eq!(decided("duration('1h') < duration('1m')"), Some(false));
    assert_eq!(decided("1 / 0 == 1"), None);
    assert_eq!(decided("self.n < 3"), None);
}
