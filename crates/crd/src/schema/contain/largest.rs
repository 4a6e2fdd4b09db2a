//! The largest object that a rule can meet: the server stops a rule whose evaluation costs too much, and rejects the
//! object, even if the rule is true of it. The size is tried where the bound of the cost exceeds what a call may cost.

use serde_json::{Map, Value};

use super::confirm::Confirmed;
use super::difference::SchemaProof;
use super::formula::Formula;
use super::judge::Judge;
use super::outcome::Outcome;
use super::step::{first_value_at, lifted};
use super::walk::Suspect;
use crate::schema::cel::{CALL_LIMIT, Program, Step as HintStep};
use crate::schema::model::{CelRule, Schema, Type};

/// Values in a largest object at most.
const MOST_VALUES: usize = 60_000;
/// Items of a list, and keys of a map, without a maximum: as many as the bound of the cost counts.
const UNBOUNDED: i64 = 10_000;
/// Characters of a text where texts are short: those of many items are small together.
const SHORT: usize = 40;
/// Characters of a long text without a maximum.
const LONG: usize = 10_000;
/// Characters of all long texts of an object at most: the server takes objects of 1.5 MiB.
const MOST_CHARACTERS: usize = 1_300_000;

/// What is left for a largest object.
struct Room {
    values: usize,
    characters: usize,
    texts: TextStyle,
}

/// Style of the generated texts.
#[derive(Clone, Copy, Debug)]
struct TextStyle {
    /// As long as can be.
    is_long: bool,
    /// Of digits, and not of small letters.
    has_digits: bool,
}

impl<'s> Judge<'s> {
    /// Returns the proof that the cost of a rule stops it; `None` if no rule can cost so much, or the largest object passes.
    pub(super) fn judge_costs(
        &mut self,
        suspect: &Suspect<'s>,
        rules: &[&CelRule],
        old: &Schema,
    ) -> Option<SchemaProof> {
        let costly =
            |rule: &&&CelRule| Program::shared(rule).is_ok_and(|program| program.maximum_cost(old) > CALL_LIMIT);
        let look = self.opinion(suspect);
        let mut open = None;
        for rule in rules.iter().filter(costly) {
            let found = match self.search(lifted(&suspect.steps, Formula::anything())) {
                Outcome::Found(object) => Some(object),
                Outcome::Empty => return None,
                Outcome::Unknown(_) => None,
            };
            for is_long in [false, true] {
                let mut is_tried = false;
                for has_digits in [false, true] {
                    let texts = TextStyle { is_long, has_digits };
                    let object = found.clone().and_then(|it| self.enlarged(suspect, rule, old, it, texts));
                    match object.map(|object| (look(&object), object)) {
                        // It cannot be made smaller.
                        Some((Confirmed::Damaged(damage), witness)) if damage.keyword == suspect.keyword => {
                            return Some(SchemaProof::Breaking { witness, damage });
                        }
                        Some((Confirmed::Unharmed, _)) => {
                            is_tried = true;
                            break;
                        }
                        // A pattern may allow other texts.
                        _ => {}
                    }
                }
                if !is_tried {
                    open = Some(unknown(suspect));
                }
            }
        }
        open
    }

    /// The object with everything that the rule reads as large as can be.
    fn enlarged(
        &self,
        suspect: &Suspect<'s>,
        rule: &CelRule,
        old: &Schema,
        mut object: Value,
        texts: TextStyle,
    ) -> Option<Value> {
        let program = Program::shared(rule).ok()?;
        let node = first_value_at(&mut object, &suspect.steps)?;
        let mut room = Room { values: MOST_VALUES, characters: MOST_CHARACTERS, texts };
        for path in program.hints().paths.keys() {
            match (path.first(), &mut *node) {
                (Some(HintStep::Field(name)), Value::Object(fields)) if old.properties.contains_key(name) => {
                    let field = old.properties.get(name)?;
                    fields.insert(name.clone(), largest(field, 0, &mut room)?);
                }
                (Some(_), node) => *node = largest(old, 0, &mut room)?,
                (None, _) => {}
            }
        }
        Some(object)
    }
}

fn unknown(suspect: &Suspect<'_>) -> SchemaProof {
    let reason = "whether the rule of the largest object exceeds the cost limit of the server is not known".to_owned();
    SchemaProof::Unknown { keyword: suspect.keyword.to_owned(), reason: Some(reason) }
}

/// A value as large as can be; those of different indices differ where the schema allows it. `None` if it is too large.
fn largest(schema: &Schema, index: usize, room: &mut Room) -> Option<Value> {
    room.values = room.values.checked_sub(1)?;
    if let Some(values) = &schema.enumeration {
        return values.get(index % values.len().max(1)).cloned();
    }
    let count = |most: Option<i64>| usize::try_from(most.unwrap_or(UNBOUNDED)).ok();
    Some(match schema.kind {
        Some(Type::Boolean) => (index.is_multiple_of(2)).into(),
        Some(Type::Integer | Type::Number) => number(schema, index)?,
        Some(Type::Array) => {
            let items = schema.items.as_deref()?;
            let list = (0..count(schema.item_count.most)?).map(|index| largest(items, index, room));
            Value::Array(list.collect::<Option<_>>()?)
        }
        Some(Type::Object) => {
            let named = |(name, field): (&String, &Schema)| Some((name.clone(), largest(field, index, room)?));
            let mut fields: Map<String, Value> = schema.properties.iter().map(named).collect::<Option<_>>()?;
            if let Some(values) = schema.additional_schema() {
                for index in 0..count(schema.property_count.most)? {
                    fields.insert(format!("key{index}"), largest(values, index, room)?);
                }
            }
            Value::Object(fields)
        }
        Some(Type::String) => {
            let most = schema.length.most.and_then(|most| usize::try_from(most).ok());
            let most = if room.texts.is_long {
                most.unwrap_or(LONG).min(room.characters.max(SHORT))
            } else {
                most.unwrap_or(SHORT).min(SHORT)
            };
            room.characters = room.characters.saturating_sub(most);
            text(index, most, room.texts.has_digits).into()
        }
        None => index.into(),
    })
}

/// Returns a text of this length that differs from those of other indices, if it is long enough.
fn text(index: usize, length: usize, has_digits: bool) -> String {
    let digits = index.to_string();
    let text = format!("{}{digits}", "0".repeat(length.saturating_sub(digits.len())));
    if has_digits { text } else { text.bytes().map(|digit| char::from(digit - b'0' + b'a')).collect() }
}

#[expect(clippy::cast_possible_truncation, reason = "out of range it is out of bounds, too, and refused")]
fn number(schema: &Schema, index: usize) -> Option<Value> {
    let index = i64::try_from(index).ok()?;
    let least = schema.minimum.map_or(0, |limit| limit.value.ceil() as i64 + i64::from(limit.exclusive));
    let most = schema.maximum.map(|limit| limit.value.floor() as i64 - i64::from(limit.exclusive));
    let value = match (schema.minimum, most) {
        (None, Some(most)) => most.saturating_sub(index),
        _ => least.saturating_add(index),
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::contain::compare;
    use crate::schema::pipeline::Server;
    use crate::schema::testing::resource;

    /// The proof of a rule that is added to a list of texts, all of which it accepts.
    fn proof_of(most: Option<u32>, pattern: &str, rule: &str) -> Option<SchemaProof> {
        let mut list = json!({"type": "array", "items": {"type": "string", "maxLength": 300, "pattern": pattern}});
        most.into_iter().for_each(|most| list["maxItems"] = most.into());
        let schema = |rules: Value| {
            let spec = json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": rules});
            Schema::of(&json!({"type": "object", "properties": {"spec": spec}}))
        };
        let (old, new) = (schema(json!([])), schema(json!([{"rule": format!("!has(self.l) || {rule} || true")}])));
        compare(&resource(&old), &resource(&new), Server::default()).pop().map(|found| found.proof)
    }

    #[test]
    fn costly_rule_of_texts_with_a_pattern_is_tried_on_texts_that_match() {
        let pairs = "self.l.all(x, self.l.all(y, x + y != ''))";
        for pattern in ["^[a-z]+$", "^[0-9]+$", "^[a-z0-9]+$"] {
            assert!(matches!(proof_of(Some(300), pattern, pairs), Some(SchemaProof::Breaking { .. })), "{pattern}");
            assert!(matches!(proof_of(Some(10), pattern, pairs), Some(SchemaProof::Safe) | None), "{pattern}");
        }
        let other = proof_of(Some(300), "^[A-Z]+$", pairs);
        assert!(matches!(other, Some(SchemaProof::Unknown { .. })), "{other:?}");
    }

    #[test]
    fn costly_rule_of_a_list_without_a_maximum_is_tried_on_ten_thousand_items() {
        let found = proof_of(None, "^[a-z]+$", "self.l.all(x, (x + x + x + x + x + x + x + x).size() > 0)");
        assert!(matches!(found, Some(SchemaProof::Breaking { .. })), "{found:?}");
    }

    #[test]
    fn rule_that_long_texts_make_too_costly_is_not_safe() {
        let schema = |count: i64, rules: Value| {
            let list = json!({"type": "array", "maxItems": count, "x-kubernetes-list-type": "set",
                "items": {"type": "string", "maxLength": 300}});
            let spec = json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": rules});
            Schema::of(&json!({"type": "object", "properties": {"spec": spec}}))
        };
        let rule = json!([{"rule": "!has(self.l) || self.l.all(x, self.l.exists_one(y, y == x))"}]);
        let proof = |count: i64| {
            let (old, new) = (schema(count, json!([])), schema(count, rule.clone()));
            compare(&resource(&old), &resource(&new), Server::default()).pop().map(|found| found.proof)
        };
        assert!(!matches!(proof(200), Some(SchemaProof::Safe) | None), "{:?}", proof(200));
        assert!(matches!(proof(100), Some(SchemaProof::Safe) | None));
    }
}
