//! The hostile CRDs: rules, patterns, combinators, sizes and versions whose proofs could take far more than they are long.

use serde_json::{Map, Value, json};

/// An upgrade of one CRD.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

/// Returns all hostile upgrades.
pub(crate) fn pairs() -> Vec<Pair> {
    let schemas = [rules(), patterns(), combinators(), sizes()].into_iter().flatten();
    let pairs = schemas.map(|(name, [old, new])| Pair { name, old: crd(&old), new: crd(&new) });
    pairs.chain(versions()).collect()
}

fn crd(spec: &Value) -> Value {
    crd_of_versions(&[version("v1", true, spec)])
}

fn version(name: &str, is_stored: bool, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": schema}})
}

fn crd_of_versions(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "versions": versions,
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        },
    })
}

fn fields(count: usize, field: impl Fn(usize) -> Value) -> Value {
    let fields: Map<String, Value> = (0..count).map(|index| (format!("f{index}"), field(index))).collect();
    json!({"type": "object", "properties": fields})
}

fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    schema[keyword] = value;
    schema
}

fn ruled(schema: Value, rules: &[String]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    with(schema, "x-kubernetes-validations", rules.into())
}

fn joined(count: usize, between: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(between)
}

/// A name, and the old and the new schema of `spec`.
type Schemas = (String, [Value; 2]);

/// Builds a pair of schemas of which only the rule differs.
fn rule(name: &str, schema: &Value, old: String, new: String) -> Schemas {
    (format!("rule-{name}"), [ruled(schema.clone(), &[old]), ruled(schema.clone(), &[new])])
}

fn rules() -> Vec<Schemas> {
    let booleans = |count| fields(count, |_| json!({"type": "boolean"}));
    let integers = |count| fields(count, |_| json!({"type": "integer", "minimum": 0, "maximum": 1000}));
    let texts = |count| fields(count, |_| json!({"type": "string", "maxLength": 30}));
    let list = json!({"type": "array", "maxItems": 100, "items": {"type": "integer"}});
    let map =
        json!({"type": "object", "maxProperties": 100, "additionalProperties": {"type": "string", "maxLength": 30}});
    let has = |index: usize| format!("has(self.f{index})");
    let mut rules = Vec::new();
    for count in [15, 40, 120] {
        let unequal = |last: &str| format!("{} != {last}", joined(count, " != ", |index| format!("({})", has(index))));
        rules.push(rule(&format!("unequal-{count}"), &booleans(count), unequal("true"), unequal("false")));
        let chain = |last: &str| {
            (0..count).fold(last.to_owned(), |inner, index| format!("{} ? {} : ({inner})", has(index), has(index / 2)))
        };
        rules.push(rule(&format!("conditional-{count}"), &booleans(count), chain("true"), chain("false")));
        let union = |compared: &str| format!("[{}].filter(x, x == true).size() {compared}", joined(count, ", ", has));
        rules.push(rule(&format!("union-{count}"), &texts(count), union("<= 3"), union("== 3")));
        let clauses = |shift: usize| {
            joined(count, " && ", |index| format!("({} || !{})", has(index), has((index * 7 + shift) % count)))
        };
        rules.push(rule(&format!("clauses-{count}"), &booleans(count), clauses(1), clauses(2)));
        let three = |shift: usize| {
            joined(count * 4, " && ", |index| {
                let [a, b, c] = [index * 5, index * 11 + 1, index * 17 + shift].map(|index| has(index % count));
                format!("({a} || !{b} || {})", if index % 3 == 0 { c } else { format!("!{c}") })
            })
        };
        rules.push(rule(&format!("three-literals-{count}"), &booleans(count), three(2), three(3)));
        let sum = |bound: usize| {
            format!("{} <= {bound}", joined(count, " + ", |index| format!("(has(self.f{index}) ? self.f{index} : 0)")))
        };
        rules.push(rule(&format!("sum-{count}"), &integers(count), sum(5_000), sum(4_999)));
        let order = |last: usize| {
            joined(count - 1, " && ", |index| {
                let next = (index + 1) % last;
                format!("(!has(self.f{index}) || !has(self.f{next}) || self.f{index} <= self.f{next})")
            })
        };
        rules.push(rule(&format!("order-{count}"), &integers(count), order(count), order(count - 1)));
        let prefixes = |letter: &str| {
            joined(count, " || ", |index| {
                format!("(has(self.f{index}) && self.f{index}.startsWith('{letter}{index}'))")
            })
        };
        rules.push(rule(&format!("prefixes-{count}"), &texts(count), prefixes("a"), prefixes("b")));
        let bounded = |order: &str| {
            let rules = (0..count).map(|index| format!("!has(self.f{index}) || self.f{index} {order} 900"));
            ruled(integers(count), &rules.collect::<Vec<_>>())
        };
        rules.push((format!("rule-many-{count}"), [bounded("<="), bounded("<")]));
    }
    // Each level names the inner one twice.
    let doubled =
        |last: &str| (0..10).fold(last.to_owned(), |inner, index| format!("{} ? ({inner}) : !({inner})", has(index)));
    rules.push(rule("conditional-doubled", &booleans(10), doubled("true"), doubled("false")));
    for depth in [2, 3, 4] {
        let nested = |list_macro: &str, operator: &str, bound: usize| {
            let names = &["a", "b", "c", "d"][..depth];
            let inner = format!("{} != {bound}", names.join(operator));
            names.iter().rev().fold(inner, |inner, name| format!("self.{list_macro}({name}, {inner})"))
        };
        for (list_macro, operator) in [("all", " + "), ("exists", " * ")] {
            let [old, new] = [7, 8].map(|bound| nested(list_macro, operator, bound));
            rules.push(rule(&format!("{list_macro}-{depth}-deep"), &list, old, new));
        }
    }
    let digits = joined(300, ", ", |index| index.to_string());
    let literal = |bound: usize| format!("[{digits}].all(x, [{digits}].all(y, x + y != {bound}))");
    rules.push(rule("literal-lists", &list, literal(1_000), literal(1_001)));
    let mapped =
        |text: &str| format!("self.map(x, x * 3 % 7).filter(x, x > 2).map(x, string(x)).join('{text}').size() < 200");
    rules.push(rule("mapped", &list, mapped(","), mapped(",,")));
    let grown = |count: usize| {
        let text = (0..count).fold("'a'".to_owned(), |text, _| format!("({text} + {text})"));
        format!("{text}.size() > self.size()")
    };
    rules.push(rule("text-that-doubles", &list, grown(9), grown(10)));
    let keys = |letter: &str| format!("self.all(k, self.exists(l, l.contains(k) && self[l].startsWith('{letter}')))");
    rules.push(rule("keys", &map, keys("a"), keys("b")));
    let matched = |letter: &str| {
        format!("self.all(k, k.matches('^([a-z]+{letter})*$') && self[k].matches('^(a|b|ab)*{letter}$'))")
    };
    rules.push(rule("matches", &map, matched("x"), matched("y")));
    let replaced =
        |letter: &str| format!("self.all(k, k.replace('a', '{letter}').replace('{letter}', 'aaaa').size() < 90)");
    rules.push(rule("replace", &map, replaced("bb"), replaced("cc")));
    let sorted = |order: &str| format!("self.sort().isSorted() && self.distinct().size() {order} self.size()");
    rules.push(rule("sort", &list, sorted("=="), sorted("<")));
    let parens = |leaf: &str| format!("{}{leaf}{}", "(".repeat(3_000), ")".repeat(3_000));
    rules.push(rule("parentheses", &list, parens("true"), parens("self.size() < 9")));
    let nots = |leaf: &str| format!("{}{leaf}", "!".repeat(2_000));
    rules.push(rule("nots", &list, nots("true"), nots("(self.size() < 9)")));
    let quantities = |last: &str| {
        joined(60, " && ", |index| {
            format!(
                "(!has(self.f{index}) || !isQuantity(self.f{index}) || quantity(self.f{index}).isLessThan(quantity('{index}{last}')))"
            )
        })
    };
    rules.push(rule("quantities", &texts(60), quantities("Gi"), quantities("Mi")));
    let transition = |order: &str| format!("self.all(x, oldSelf.all(y, oldSelf.exists(z, x + y {order} z)))");
    rules.push(rule("transition", &list, transition("<"), transition("<=")));
    rules
}

fn patterns() -> Vec<Schemas> {
    let pattern = |name: &str, old: String, new: String| {
        let side = |pattern: &String| fields(4, |_| json!({"type": "string", "maxLength": 4_000, "pattern": pattern}));
        (format!("pattern-{name}"), [side(&old), side(&new)])
    };
    let words = |count: usize, end: &str| joined(count, "|", |index| format!("w{}{end}", index * 7919 % 100_003));
    let mut patterns = vec![
        pattern("automaton-of-2-to-20", "^[ab]*a[ab]{20}$".into(), "^[ab]*a[ab]{19}[ab]$".into()),
        pattern("automaton-of-2-to-200", "^[ab]*a[ab]{200}$".into(), "^[ab]*a[ab]{199}b$".into()),
        pattern("two-automata", "^([ab]*a[ab]{12})+$".into(), "^([ab]*b[ab]{13})+$".into()),
        pattern("repeats-of-repeats", "^((a{1,10}){1,10}){1,9}$".into(), "^((a{1,10}){1,9}){1,10}$".into()),
        pattern("optional", "^(a?){400}a{400}$".into(), "^(a?){399}a{400}$".into()),
        pattern("words", format!("^({})$", words(2_000, "")), format!("^({})$", words(2_000, "x"))),
        pattern("classes", format!("^{}$", r"[\p{L}\p{N}]".repeat(300)), format!("^{}$", r"[\p{L}]".repeat(300))),
        pattern("primes", "^((a{7})*|(a{11})*|(a{13})*)$".into(), "^((a{7})*|(a{11})*|(a{17})*)$".into()),
        pattern("common-multiples", "^(a{97})*$".into(), "^((a{97})*|(a{89})*)$".into()),
        pattern("folded", format!("(?i)^{}$", "[a-k]".repeat(500)), format!("(?i)^{}$", "[a-l]".repeat(500))),
        pattern("boundaries", r"^(\b[a-z]+\b ?){1,200}$".into(), r"^(\b[a-y]+\b ?){1,200}$".into()),
    ];
    let several = |letters: &str| {
        let all: Vec<Value> =
            letters.chars().map(|letter| json!({"pattern": format!("^[a-z]*{letter}[a-z]*$")})).collect();
        json!({"type": "string", "maxLength": 4_000, "allOf": all})
    };
    patterns.push(("pattern-permutations".into(), [several("abcdefghijklmn"), several("abcdefghijklmno")]));
    patterns
}

fn combinators() -> Vec<Schemas> {
    let clause = |count: usize, shift: usize| {
        let clauses = (0..60).map(|number: usize| {
            let branch = |index: usize| {
                let name = format!("f{}", (number * 7 + index * 13 + shift) % count);
                json!({"properties": {(&name): {"pattern": format!("^a{index}")}}, "required": [name]})
            };
            json!({"anyOf": (0..6).map(branch).collect::<Vec<_>>()})
        });
        with(fields(count, |_| json!({"type": "string"})), "allOf", clauses.collect())
    };
    let required = |keyword: &str, count: usize, shift: usize| {
        let branches: Vec<Value> =
            (0..count).map(|index| json!({"required": [format!("f{}", index + shift)]})).collect();
        with(fields(count + 2, |_| json!({"type": "string"})), keyword, branches.into())
    };
    let nested = |keyword: &str, shift: usize| {
        let mut leaves: Vec<Value> =
            (0..256).map(|index| json!({"required": [format!("f{}", index + shift)]})).collect();
        while leaves.len() > 1 {
            leaves = leaves.chunks(2).map(|pair| json!({keyword: pair})).collect();
        }
        with(fields(300, |_| json!({"type": "string"})), "allOf", leaves.into())
    };
    let nots = |leaf: &str| {
        let inner =
            (0..60).fold(json!({"pattern": leaf}), |inner, _| json!({"not": {"oneOf": [inner, {"minLength": 3}]}}));
        json!({"type": "string", "allOf": [inner]})
    };
    let values = |count: usize| (0..count).map(|index| format!("v{index}"));
    let one_enum = |count: usize| json!({"type": "string", "enum": values(count).collect::<Vec<_>>()});
    let one_of_values = |count: usize| {
        let branches: Vec<Value> = values(count).map(|value| json!({"enum": [value]})).collect();
        json!({"type": "string", "oneOf": branches})
    };
    let named = |name: &str, old: Value, new: Value| (format!("combinator-{name}"), [old, new]);
    vec![
        named("clauses", clause(40, 0), clause(40, 3)),
        named("one-of-40", required("oneOf", 40, 0), required("oneOf", 40, 1)),
        named("one-of-400", required("oneOf", 400, 0), required("oneOf", 400, 1)),
        named("any-of-400", required("anyOf", 400, 0), required("anyOf", 400, 1)),
        named("nested-one-of", nested("oneOf", 0), nested("oneOf", 1)),
        named("nested-any-of", nested("anyOf", 0), nested("anyOf", 1)),
        named("nots", nots("a"), nots("b")),
        named("enum-20000", one_enum(20_000), one_enum(19_999)),
        named("one-of-values", one_of_values(900), one_of_values(899)),
    ]
}

fn sizes() -> Vec<Schemas> {
    let text = |most: i64| json!({"type": "string", "maxLength": most});
    let nested =
        |wrap: &dyn Fn(Value) -> Value, depth: usize, most: i64| (0..depth).fold(text(most), |inner, _| wrap(inner));
    let list = |inner: Value| json!({"type": "array", "minItems": 1000, "items": inner});
    let map = |inner: Value| json!({"type": "object", "minProperties": 1000, "additionalProperties": inner});
    let object = |inner: Value| json!({"type": "object", "required": ["a"], "properties": {"a": inner}});
    let tree = |most: i64| nested(&|inner| fields(7, |_| inner.clone()), 4, most);
    let required = |count: usize, most: i64| {
        let names: Vec<String> = (0..count).map(|index| format!("f{index}")).collect();
        with(fields(count, |_| text(most)), "required", json!(names))
    };
    let defaults = |count: usize, value: &str| fields(count, |_| json!({"type": "string", "default": value}));
    let set =
        |most: i64| json!({"type": "array", "minItems": 800, "x-kubernetes-list-type": "set", "items": text(most)});
    let keyed = |most: i64| {
        let list =
            json!({"type": "array", "minItems": 300, "x-kubernetes-list-type": "map", "items": required(20, most)});
        with(list, "x-kubernetes-list-map-keys", json!(["f0", "f1", "f2"]))
    };
    let multiples =
        |divisor: f64| fields(50, |index| json!({"type": "number", "multipleOf": divisor * (index + 1) as f64}));
    let named = |name: &str, old: Value, new: Value| (format!("size-{name}"), [old, new]);
    vec![
        named("lists-of-lists", nested(&list, 4, 9), nested(&list, 4, 3)),
        named("maps-of-maps", nested(&map, 4, 9), nested(&map, 4, 3)),
        named("deep", nested(&object, 300, 9), nested(&object, 300, 3)),
        named("deeper", nested(&object, 470, 9), nested(&object, 470, 3)),
        named("tree", tree(9), tree(3)),
        named("wide", fields(4_000, |_| text(9)), fields(4_000, |_| text(3))),
        named("wide-and-removed", fields(4_000, |_| text(9)), fields(0, |_| text(9))),
        named("wide-and-required", required(1_500, 9), required(1_500, 3)),
        named("wide-and-newly-required", fields(3_000, |_| text(9)), required(3_000, 9)),
        named("defaults", defaults(2_000, "a"), defaults(2_000, "b")),
        named("set", set(9), set(3)),
        named("list-of-maps", keyed(9), keyed(3)),
        named("multiples", multiples(0.1), multiples(0.3)),
        named(
            "large-limits",
            json!({"type": "string", "minLength": i64::MAX}),
            json!({"type": "string", "minLength": i64::MAX, "pattern": "^a*$"}),
        ),
    ]
}

/// Builds a CRD of versions with these schemas; the last one is stored.
fn crd_of_schemas(count: usize, schema: impl Fn(usize) -> Value) -> Value {
    let versions: Vec<Value> =
        (0..count).map(|index| version(&format!("v{}", index + 1), index + 1 == count, &schema(index))).collect();
    crd_of_versions(&versions)
}

fn versions() -> Vec<Pair> {
    let short = |most: usize| json!({"type": "string", "maxLength": most});
    let alike = |count: usize, most: usize| crd_of_schemas(count, |_| fields(40, |_| short(most)));
    let differ = |count: usize, most: usize| {
        crd_of_schemas(count, |index| fields(40, |field| short(most + (index * 3 + field) % 17)))
    };
    let losing = |count: usize, fields_of_most: usize, least: fn(usize) -> usize, most: usize| {
        crd_of_schemas(count, |index| {
            let pattern = |field: usize| format!("^[a-z]{{{},{}}}$", least(index), most + field);
            fields(fields_of_most - index % 5, |field| json!({"type": "string", "pattern": pattern(field)}))
        })
    };
    let lose = |count: usize| losing(count, count, |index| index % 3, 20);
    let patterns = |fields: usize| losing(50, fields, |index| index, 60);
    let automata = |more: &str| {
        crd_of_schemas(8, |index| {
            let end =
                |field: usize| joined(field / 20 + 1, "", |_| char::from(b'c' + ((field + index) % 20) as u8).into());
            let pattern = |field: usize| format!("^(a|b)*a(a|b){{13}}{}$", end(field));
            fields(40, |field| json!({"type": "string", "pattern": pattern(field) + more}))
        })
    };
    let named = |name: &str, old: Value, new: Value| Pair { name: format!("versions-{name}"), old, new };
    vec![
        named("30-alike", alike(30, 40), alike(30, 20)),
        named("100-alike", alike(100, 40), alike(100, 20)),
        named("20-differ", differ(20, 40), differ(20, 20)),
        named("50-differ", differ(50, 40), differ(50, 20)),
        named("50-lose", lose(50), lose(49)),
        named("50-patterns", patterns(50), patterns(49)),
        named("100-patterns", patterns(100), patterns(99)),
        named("8-automata", automata(""), automata("|^z$")),
    ]
}
