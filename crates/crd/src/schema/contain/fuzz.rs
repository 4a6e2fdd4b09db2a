//! Random pairs of schemas and random objects: a difference called safe must let every accepted object through
//! unharmed. `PUSHBACK_ROUNDS` sets the number of pairs, `PUSHBACK_SEED` the first one.

use serde_json::{Value, json};

use super::{SchemaProof, affected_object, compare};
use crate::schema::invalid::problems;
use crate::schema::model::Schema;
use crate::schema::pipeline::agreement::{Oracle, normal};
use crate::schema::pipeline::{Server, create};
use crate::schema::testing::edit::{edit, number};
use crate::schema::testing::{Generator, resource};

/// Number of objects tried on each pair.
const OBJECTS: usize = 24;

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Test", "plural": "tests"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Two schemas; the second is the first with some edits.
fn pair(generator: &mut Generator) -> Option<(Value, Value)> {
    let old = generator.schema();
    let mut new = old.clone();
    for _ in 0..=generator.below(3) {
        edit(generator, &mut new["properties"]["spec"], 0);
    }
    // Objects never meet a definition that the server rejects.
    let is_valid = [&old, &new].into_iter().all(|schema| problems(&definition(schema)).is_empty());
    is_valid.then_some((old, new))
}

/// Whether everything from before is still there.
fn is_kept(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(name, value)| after.get(name).is_some_and(|after| is_kept(value, after)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| is_kept(before, after))
        }
        (before, after) => before == after,
    }
}

/// Checks safe differences against the server's own code: what it accepts under the old schema, it must accept and keep
/// under the new one. Needs `PUSHBACK_ORACLE`, like the comparison of the pipeline.
#[test]
#[expect(clippy::print_stderr, reason = "what was compared is the point of running this")]
fn what_is_called_safe_the_server_lets_through() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (rounds, seed) = (number("PUSHBACK_ROUNDS", 2_000), number("PUSHBACK_SEED", 1));
    let (mut safe, mut tried, mut wrong) = (0, 0, Vec::new());
    for round in 0..rounds {
        let mut generator = Generator::new(seed.wrapping_mul(2_000_003).wrapping_add(round));
        let Some((old_value, new_value)) = pair(&mut generator) else { continue };
        let (old_schema, new_schema) = (Schema::of(&old_value), Schema::of(&new_value));
        let (old, new) = (resource(&old_schema), resource(&new_schema));
        let is_safe = |schemas: &[super::Difference]| schemas.iter().all(|it| it.proof == SchemaProof::Safe);
        if !is_safe(&compare(&old, &new, Server::default())) {
            continue;
        }
        safe += 1;
        for number in 0..OBJECTS {
            let object = generator.object_of(if number % 3 == 2 { &new_value } else { &old_value });
            let before = oracle.ask(&json!({"schema": old_value, "object": object}));
            // As sent and as read back: 2.0 is read as 2, which some keywords treat differently.
            for sent in [&object, &before["object"]] {
                let mut ask = |schema: &Value| oracle.ask(&json!({"schema": schema, "object": sent}));
                let (was, is) = (ask(&old_value), ask(&new_value));
                let keeps =
                    |answer: &Value| answer["errors"].is_null() && is_kept(&normal(sent), &normal(&answer["object"]));
                if !was["failure"].is_null() || !is["failure"].is_null() || !keeps(&was) {
                    continue;
                }
                tried += 1;
                if !keeps(&is) || !is_kept(&normal(&was["object"]), &normal(&is["object"])) {
                    wrong.push(format!("round {round}: {sent}\n  {old_value}\n  => {new_value}\n  {is}"));
                    break;
                }
            }
        }
    }
    eprintln!("{rounds} pairs: {safe} safe, {tried} objects that the server took before, {} harmed", wrong.len());
    assert!(wrong.is_empty(), "{} called safe and harmed:\n{}", wrong.len(), wrong[..wrong.len().min(6)].join("\n"));
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures of a run by hand; the harness keeps them back otherwise")]
fn what_is_called_safe_lets_every_object_through() {
    let (rounds, seed) = (number("PUSHBACK_ROUNDS", 250), number("PUSHBACK_SEED", 1));
    let (mut valid, mut safe, mut breaking, mut unknown, mut tried) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    let mut reasons = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..rounds {
        let mut generator = Generator::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let Some((old_value, new_value)) = pair(&mut generator) else { continue };
        valid += 1;
        let (old_schema, new_schema) = (Schema::of(&old_value), Schema::of(&new_value));
        let (old, new) = (resource(&old_schema), resource(&new_schema));
        let differences = compare(&old, &new, Server::default());
        if differences.iter().any(|it| matches!(it.proof, SchemaProof::Breaking { .. })) {
            breaking += 1;
            continue;
        }
        if let Some(blocked) = differences.iter().find(|it| matches!(it.proof, SchemaProof::Unknown { .. })) {
            unknown += 1;
            if let SchemaProof::Unknown { keyword, reason } = &blocked.proof {
                let text = format!("{} {keyword} {}", blocked.keyword, reason.as_deref().unwrap_or_default());
                if std::env::var_os("PUSHBACK_SHOW").is_some() {
                    eprintln!("round {round}: {text}\n  {old_value}\n  => {new_value}");
                }
                *reasons.entry(text).or_default() += 1;
            }
            continue;
        }
        safe += 1;
        for number in 0..OBJECTS {
            let object = generator.object_of(if number % 3 == 2 { &new_value } else { &old_value });
            let before = create(&old, Server::default(), &object);
            if before.accepted() != Some(true) || before.loses() {
                continue;
            }
            tried += 1;
            let places = affected_object(&old, &new, Server::default(), &object).nodes;
            if !places.is_empty() {
                wrong.push(format!("round {round}: {places:?}\n  {object}\n  {old_value}\n  => {new_value}"));
                break;
            }
        }
    }
    eprintln!(
        "{valid} valid of {rounds} pairs: {safe} safe ({tried} objects tried), {breaking} breaking, {unknown} unknown, {} wrong",
        wrong.len()
    );
    for (reason, count) in reasons.iter().filter(|(_, count)| **count > 1).take(40) {
        eprintln!("  {count:4} {reason}");
    }
    assert!(wrong.is_empty(), "{} called safe and harmed:\n{}", wrong.len(), wrong[..wrong.len().min(4)].join("\n"));
    assert!(safe > 0 && tried > 0, "nothing was tried");
}
