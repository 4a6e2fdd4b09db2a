//! Random pairs of rules over a small object, and all objects that matter: a change called safe must accept every
//! object that the old rules accept. `PUSHBACK_ROUNDS` and `PUSHBACK_SEED` are those of the other fuzz test.

use serde_json::{Value, json};

use crate::schema::contain::{SchemaProof, affected_object, compare};
use crate::schema::model::Schema;
use crate::schema::pipeline::{Server, create};
use crate::schema::testing::edit::number;
use crate::schema::testing::{Generator, resource};

/// One of the texts.
fn one_of<'t>(generator: &mut Generator, texts: &[&'t str]) -> &'t str {
    texts[generator.below(texts.len())]
}

/// A rule about `spec`.
fn rule(generator: &mut Generator, depth: usize) -> String {
    if depth > 0 && generator.chance(65) {
        let mut part = || rule(generator, depth - 1);
        let (one, other) = (part(), part());
        return match generator.below(6) {
            0 | 1 => format!("({one}) || ({other})"),
            2 => format!("({one}) && ({other})"),
            3 => format!("!({one})"),
            4 => format!("({one}) == ({other})"),
            _ => format!("({one}) ? ({other}) : ({})", rule(generator, depth - 1)),
        };
    }
    let count = generator.below(4);
    let order = one_of(generator, &["==", "!=", "<", "<=", ">", ">="]);
    let number = one_of(generator, &["a", "b", "d", "n.c"]);
    let text = one_of(generator, &["s", "n.t"]);
    let word = one_of(generator, &["", "x", "xy", "y"]);
    let inner = one_of(generator, &["x > 1", "x <= 2", "x != 0", "x == self.a", "x in [0, 1]", "!(x < 1)"]);
    match generator.below(23) {
        0..3 => format!("self.{number} {order} {count}"),
        3 => format!("{count} {order} self.{number}"),
        4 => format!("has(self.{})", one_of(generator, &["a", "b", "d", "s", "n", "n.c", "l", "m", "e"])),
        5 => format!("!has(self.{number}) || self.{number} {order} {count}"),
        6 => format!("self.{number} {order} self.{}", one_of(generator, &["a", "b", "n.c"])),
        7 => format!("self.{text} {} '{word}'", one_of(generator, &["==", "!="])),
        8 => format!("self.{text}.{}('{word}')", one_of(generator, &["startsWith", "endsWith", "contains", "matches"])),
        9 => format!("self.{text} in ['{word}', 'x', 'z']"),
        10 => format!("{} {order} {count}", one_of(generator, &["size(self.l)", "self.s.size()", "size(self.m)"])),
        11 => format!("self.l.{}(x, {inner})", one_of(generator, &["all", "exists"])),
        12 => format!("{count} in self.l"),
        13 => one_of(generator, &["'k' in self.m", "self.m.all(k, k == 'k')", "self.e", "self.e == false"]).to_owned(),
        17 => format!("self.l.filter(x, {inner}).size() {order} {count}"),
        18 => format!("self.m.all(k, k.startsWith('{word}'))"),
        19 => format!("self.m.exists(k, k.contains('{word}'))"),
        20 => format!("self.l[{}] {order} {count}", generator.below(2)),
        21 => {
            format!("self.{} {order} self.{}", one_of(generator, &["a", "b", "f"]), one_of(generator, &["a", "b", "f"]))
        }
        22 => one_of(
            generator,
            &[
                "self.u.all(x, self.u.exists_one(y, x == y))",
                "!has(self.u) || self.u.all(i, self.u.exists_one(j, i == j))",
                "self.d > 0",
            ],
        )
        .to_owned(),
        14 => format!("self.a + self.b {order} {count}"),
        15 => format!("self.?{}.orValue({count}) {order} 2", one_of(generator, &["a", "b", "d"])),
        _ => {
            one_of(generator, &["self.?n.?c.hasValue()", "self.?e.orValue(true)", "true", "self.a % 2 == 0"]).to_owned()
        }
    }
}

/// The same rule with one number or operator changed, or a condition added.
fn changed(generator: &mut Generator, rule_before: &str) -> String {
    match generator.below(6) {
        0 => format!("({rule_before}) || ({})", rule(generator, 1)),
        1 => format!("({}) || ({rule_before})", rule(generator, 0)),
        2 => {
            let (was, is) = (one_of(generator, &["0", "1", "2", "3"]), one_of(generator, &["0", "1", "2", "3"]));
            rule_before.replacen(was, is, 1)
        }
        3 => rule_before.replacen(
            one_of(generator, &["<", ">", "&&", "=="]),
            one_of(generator, &["<=", ">=", "||", "!="]),
            1,
        ),
        4 => format!("!({}) || ({rule_before})", rule(generator, 0)),
        _ => rule(generator, 2),
    }
}

/// Bounds are those of `a`, `f` and the size of `l`, which are then required.
fn spec(generator: &mut Generator, rules: &[String], bounds: Option<(u32, u32, u32)>, is_new: bool) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let mut schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer", "nullable": true}, "d": {"type": "integer", "default": 1},
            "s": {"type": "string"}, "e": {"type": "boolean"},
            "n": {"type": "object", "nullable": true,
                "properties": {"c": {"type": "integer"}, "t": {"type": "string", "enum": ["", "x", "xy"]}}},
            "l": {"type": "array", "items": {"type": "integer"}}, "f": {"type": "integer"},
            "u": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "x-kubernetes-validations": rules,
    });
    if let Some((least, most, items)) = bounds {
        schema["properties"]["a"]["minimum"] = least.into();
        schema["properties"]["f"]["maximum"] = most.into();
        schema["properties"]["l"]["minItems"] = items.into();
        schema["required"] = json!(["a", "f", "l", "u"]);
    }
    let fields = &mut schema["properties"];
    if is_new {
        match generator.below(12) {
            0 => fields["a"]["default"] = json!(generator.below(3)),
            1 => fields["d"]["default"] = json!(2),
            2 => fields["b"]["nullable"] = json!(false),
            3 => fields["z"] = json!({"type": "string", "default": "x"}),
            4 => fields["a"]["x-kubernetes-validations"] = json!([{"rule": "self < 3"}]),
            5 => fields["l"]["items"]["x-kubernetes-validations"] = json!([{"rule": "self < 3"}]),
            6 => fields["a"]["maximum"] = json!(2),
            7 => fields["l"]["maxItems"] = json!(1),
            8 => schema["required"] = json!(["a"]),
            9 => fields["s"]["enum"] = json!(["", "x", "y"]),
            _ => {}
        }
    } else {
        match generator.below(6) {
            0 => fields["a"]["x-kubernetes-validations"] = json!([{"rule": "self < 2"}]),
            1 => fields["l"]["items"]["x-kubernetes-validations"] = json!([{"rule": "self <= 2"}]),
            2 => fields["n"]["x-kubernetes-validations"] = json!([{"rule": "has(self.c)"}]),
            _ => {}
        }
    }
    json!({"type": "object", "properties": {"spec": schema}})
}

fn object(generator: &mut Generator) -> Value {
    let mut spec = json!({});
    let number = |generator: &mut Generator| json!(generator.below(5) as i64 - 1);
    for name in ["a", "b", "d", "f"] {
        if generator.chance(65) {
            spec[name] = number(generator);
        }
    }
    if generator.chance(10) {
        spec["b"] = Value::Null;
    }
    if generator.chance(60) {
        spec["s"] = json!(one_of(generator, &["", "x", "xy", "y", "yx", "z"]));
    }
    if generator.chance(60) {
        spec["e"] = json!(generator.chance(50));
    }
    if generator.chance(60) {
        spec["n"] = if generator.chance(15) { Value::Null } else { json!({}) };
        if spec["n"].is_object() && generator.chance(60) {
            spec["n"]["c"] = number(generator);
        }
        if spec["n"].is_object() && generator.chance(60) {
            spec["n"]["t"] = json!(one_of(generator, &["", "x", "xy"]));
        }
    }
    if generator.chance(70) {
        spec["l"] = (0..generator.below(4)).map(|_| number(generator)).collect();
    }
    if generator.chance(70) {
        spec["u"] = json!([["x"], ["x", "y"], ["y", "y"], []])[generator.below(4)].take();
    }
    if generator.chance(60) {
        spec["m"] = json!({});
        for key in ["k", "x", "yxy"] {
            if generator.chance(50) {
                spec["m"][key] = json!("v");
            }
        }
    }
    json!({"apiVersion": "example.com/v1", "kind": "Test", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures of a run by hand; the harness keeps them back otherwise")]
fn rules_that_are_called_implied_are() {
    let (rounds, seed) = (number("PUSHBACK_ROUNDS", 40), number("PUSHBACK_SEED", 1));
    let (mut safe, mut breaking, mut unknown, mut tried) = (0, 0, 0, 0);
    for round in 0..rounds {
        let mut generator = Generator::new(seed.wrapping_mul(7_000_003).wrapping_add(round));
        let count = 1 + generator.below(3);
        let before: Vec<String> = (0..count).map(|_| rule(&mut generator, 2)).collect();
        let mut after = before.clone();
        let place = generator.below(after.len());
        after[place] = changed(&mut generator, &before[place]);
        let bounds = generator
            .chance(40)
            .then(|| (generator.below(3) as u32, generator.below(4) as u32, generator.below(3) as u32));
        let old_value = spec(&mut generator, &before, bounds, false);
        let new_value = spec(&mut generator, &after, bounds, true);
        let (old_schema, new_schema) = (Schema::of(&old_value), Schema::of(&new_value));
        let (old, new) = (resource(&old_schema), resource(&new_schema));
        let differences = compare(&old, &new, Server::default());
        if differences.iter().any(|it| matches!(it.proof, SchemaProof::Breaking { .. })) {
            breaking += 1;
            continue;
        }
        if differences.iter().any(|it| matches!(it.proof, SchemaProof::Unknown { .. })) {
            if std::env::var_os("PUSHBACK_SHOW").is_some() {
                eprintln!("round {round}: {old_value}\n  => {new_value}");
            }
            unknown += 1;
            continue;
        }
        safe += 1;
        for _ in 0..150 {
            let object = object(&mut generator);
            let before = create(&old, Server::default(), &object);
            if before.accepted() != Some(true) || before.loses() {
                continue;
            }
            tried += 1;
            let places = affected_object(&old, &new, Server::default(), &object).nodes;
            assert!(places.is_empty(), "round {round}: {places:?}\n  {object}\n  {old_value}\n  => {new_value}");
        }
    }
    eprintln!("{rounds} pairs of rules: {safe} safe ({tried} objects tried), {breaking} breaking, {unknown} unknown");
    assert!(safe > 0 && tried > 0, "nothing was tried");
}
