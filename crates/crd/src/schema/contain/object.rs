//! Examples of objects: required fields, their values, and the number of fields.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::constraints::is_excepted;
use super::constraints::is_named;
use super::constraints::{Constraints, Objects};
use super::formula::{Formula, Level, Role};
use super::outcome::Outcome;
use super::solve::{Solver, size_of};
use crate::schema::model::Schema;

/// Maximum number of fields added only to reach a required count.
const MOST_FIELDS: i64 = 10_001;

impl Solver {
    /// Finds an object that meets the constraints.
    pub(super) fn object(&mut self, constraints: &Constraints<'_>) -> Outcome {
        if constraints.object.has_other.is_empty() {
            return self.with_fields(constraints);
        }
        let mut constraints = constraints.clone();
        let Some((schemas, formula)) = constraints.object.has_other.pop() else { return Outcome::Empty };
        // A field with an undeclared name stands for all undeclared ones; declared ones are tried too.
        let declared = constraints.object.declared();
        if !self.spend(declared.len() as u64) {
            return Outcome::Unknown("budget".to_owned());
        }
        let free = free_name(&declared, |name| is_named(&schemas, name));
        let ways = std::iter::once(free)
            .chain(declared.into_iter().filter(|name| !is_named(&schemas, name)))
            .filter(|name| constraints.object.constraints_on(name).is_some())
            .map(|name| Formula::Has(name, Box::new(formula.clone())))
            .collect();
        constraints.choices.push(ways);
        self.meet(constraints)
    }

    fn with_fields(&mut self, constraints: &Constraints<'_>) -> Outcome {
        let object = &constraints.object;
        if object.count.is_empty() {
            return Outcome::Empty;
        }
        let defaults = defaults(object);
        let copies = defaults.values().map(|default| size_of(default)).sum::<u64>() + object.has.len() as u64;
        // Each is looked up twice, copied and inserted.
        if !self.spend(32 * copies) {
            return Outcome::Unknown("budget".to_owned());
        }
        let mut fields = Map::with_capacity(object.has.len() + defaults.len());
        let mut unknown = None;
        for name in object.has.keys() {
            match self.field(object, name) {
                Outcome::Found(value) => {
                    fields.insert(name.to_string(), value);
                }
                Outcome::Empty => return Outcome::Empty,
                Outcome::Unknown(reason) => unknown = unknown.or(Some(reason)),
            }
        }
        if let Some(reason) = unknown {
            return Outcome::Unknown(reason);
        }
        for (name, default) in defaults {
            if fields.contains_key(name) {
                continue;
            }
            // A default is its own example if only its own schema constrains it.
            let names_it = |(schema, _): &&(&Schema, Role<'_>)| schema.properties.contains_key(name);
            let plain = object.schemas.len() == 1 || object.schemas.iter().filter(names_it).count() == 1;
            let outcome = if plain { Outcome::Found(default.clone()) } else { self.field(object, name) };
            match outcome {
                Outcome::Found(value) => {
                    fields.insert(name.to_string(), value);
                }
                other => return other,
            }
        }
        if object.count.most.is_some_and(|most| i64::try_from(fields.len()).is_ok_and(|count| count > most)) {
            return Outcome::Empty;
        }
        match self.fill(object, &mut fields, object.count.least) {
            Outcome::Found(_) => {}
            other => return other,
        }
        let mut value = Value::Object(fields);
        if is_excepted(&value, constraints) {
            // Adding a field makes a different object.
            let Value::Object(fields) = &mut value else { return Outcome::Empty };
            let more = i64::try_from(fields.len()).unwrap_or(i64::MAX) + 1;
            let allowed = object.count.most.is_none_or(|most| more <= most);
            let was_empty = fields.is_empty();
            match self.fill(object, fields, more) {
                Outcome::Found(_) if allowed => {}
                // There is only the empty object.
                Outcome::Empty if was_empty => return Outcome::Empty,
                _ => return Outcome::Unknown("enum".to_owned()),
            }
            if is_excepted(&value, constraints) {
                return Outcome::Unknown("enum".to_owned());
            }
        }
        Outcome::Found(value)
    }

    /// Finds a value for one field.
    fn field(&mut self, object: &Objects<'_>, name: &str) -> Outcome {
        let Some(mut formulas) = object.constraints_on(name) else { return Outcome::Empty };
        match formulas.as_slice() {
            [Formula::Satisfies(schema, Role::Stored(Level::Field))] => {
                let schema = *schema;
                self.example_of(schema, formulas.remove(0))
            }
            _ => self.solve(formulas),
        }
    }

    /// Adds fields until there are `least`.
    fn fill(&mut self, object: &Objects<'_>, fields: &mut Map<String, Value>, least: i64) -> Outcome {
        let lacking = |fields: &Map<String, Value>| i64::try_from(fields.len()).is_ok_and(|count| count < least);
        if !lacking(fields) {
            return Outcome::Found(Value::Null);
        }
        if least > MOST_FIELDS {
            return Outcome::Unknown("minProperties".to_owned());
        }
        let declared = object.declared();
        if !self.spend(declared.len() as u64) {
            return Outcome::Unknown("budget".to_owned());
        }
        let mut unknown = None;
        for name in declared.iter().filter(|name| !object.lacks.contains(*name)) {
            if !lacking(fields) {
                break;
            }
            if fields.contains_key(&**name) {
                continue;
            }
            match self.field(object, name) {
                Outcome::Found(value) => {
                    fields.insert(name.to_string(), value);
                }
                Outcome::Empty => {}
                Outcome::Unknown(reason) => unknown = unknown.or(Some(reason)),
            }
        }
        let taken: BTreeSet<Rc<str>> = declared;
        while lacking(fields) {
            let name = free_name(&taken, |name| object.lacks.contains(name));
            match self.field(object, &name) {
                Outcome::Found(value) => {
                    // The others will have the same size.
                    let rest = least - i64::try_from(fields.len()).unwrap_or(least);
                    if !self.spend_on(&value, rest) {
                        return Outcome::Unknown("minProperties".to_owned());
                    }
                    fields.insert(name.to_string(), value.clone());
                    // What is allowed under one name that nobody declares is allowed under the others.
                    for name in free_names(&taken).filter(|free| !object.lacks.contains(free.as_str())) {
                        if !lacking(fields) {
                            break;
                        }
                        fields.entry(name).or_insert_with(|| value.clone());
                    }
                }
                Outcome::Empty => return unknown.map_or(Outcome::Empty, Outcome::Unknown),
                other @ Outcome::Unknown(_) => return other,
            }
        }
        Outcome::Found(Value::Null)
    }
}

/// Fields that a stored object always has because of their defaults.
fn defaults<'s>(object: &Objects<'s>) -> BTreeMap<&'s str, &'s Value> {
    let mut found = BTreeMap::new();
    for (schema, role) in &object.schemas {
        if !matches!(role, Role::Stored(_)) {
            continue;
        }
        for (name, field) in schema.defaulted_properties() {
            if let (Some(default), false) = (&field.default, object.lacks.contains(name)) {
                found.insert(name, default);
            }
        }
    }
    found
}

/// A name that is not declared.
fn free_name(declared: &BTreeSet<Rc<str>>, is_taken: impl Fn(&str) -> bool) -> Rc<str> {
    free_names(declared).find(|name| !is_taken(name)).unwrap_or_default().into()
}

/// Names that are not declared.
fn free_names(declared: &BTreeSet<Rc<str>>) -> impl Iterator<Item = String> {
    let words = ["key", "other", "another"].into_iter().map(str::to_owned);
    let names = words.chain((1_u64..).map(|number| format!("key{number}")));
    names.filter(|name| !declared.contains(name.as_str()))
}
