//! Examples of lists: required items, the number of items, and which of them may be equal.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use super::constraints::is_excepted;
use super::constraints::{Constraints, Lists};
use super::constraints::{holds, identity, repeats};
use super::formula::{Formula, Level, Role, Unique};
use super::outcome::Outcome;
use super::solve::{STEPS, Solver, size_of};
use crate::schema::model::Schema;

/// Maximum number of items added only to reach a required count: one more than the bounds that people write.
const MOST_ITEMS: i64 = 10_001;

impl Solver {
    /// Finds a list that meets the constraints.
    pub(super) fn list(&mut self, constraints: &Constraints<'_>) -> Outcome {
        let list = &constraints.list;
        if list.count.is_empty() {
            return Outcome::Empty;
        }
        let outcome = match list.repeated.as_slice() {
            [] => self.with_items(list, Vec::new()),
            [repeated] => match self.twins(list, repeated) {
                Ok(twins) => self.with_items(list, twins),
                Err(outcome) => outcome,
            },
            _ => Outcome::Unknown("x-kubernetes-list-type".to_owned()),
        };
        match outcome {
            Outcome::Found(value) if is_excepted(&value, constraints) => {
                let longer = Lists {
                    count: super::range::Range {
                        least: value.as_array().map_or(0, |items| items.len() as i64) + 1,
                        ..list.count
                    },
                    ..list.clone()
                };
                match self.with_items(&longer, Vec::new()) {
                    Outcome::Found(value) if !is_excepted(&value, constraints) && list.repeated.is_empty() => {
                        Outcome::Found(value)
                    }
                    _ => Outcome::Unknown("enum".to_owned()),
                }
            }
            other => other,
        }
    }

    /// Finds `count` items that satisfy all schemas and are distinct in the required way.
    pub(super) fn items_apart(&mut self, items: &[&Schema], unique: &Unique<'_>, count: i64) -> Outcome {
        let list = Lists {
            count: super::range::Range { least: count, most: None },
            items: items.iter().map(|schema| (*schema, Role::Stored(Level::Item))).collect(),
            unique: vec![unique.clone()],
            ..Lists::default()
        };
        self.bounded(|solver| solver.with_items(&list, Vec::new()))
    }

    /// The required items, filled up to the minimum count.
    fn with_items(&mut self, list: &Lists<'_>, mut items: Vec<Value>) -> Outcome {
        let given = items.len();
        let steps = Cell::new(STEPS);
        for wanted in &list.has {
            if items.iter().any(|item| holds(wanted, item, &steps) == Some(true)) {
                continue;
            }
            match self.item(list, &items, Some(wanted.clone())) {
                Outcome::Found(value) => items.push(value),
                // Another choice of the earlier items might have left room for this one.
                Outcome::Empty if !items.is_empty() && !list.unique.is_empty() => {
                    return Outcome::Unknown("x-kubernetes-list-type".to_owned());
                }
                other => return other,
            }
        }
        if !list.count.holds(items.len().max(usize::try_from(list.count.least).unwrap_or(0))) {
            return match (given, list.has.len()) {
                (0, 0 | 1) => Outcome::Empty,
                (0, _) => self.in_one_item(list),
                // Other twins might have left room.
                _ => Outcome::Unknown("maxItems".to_owned()),
            };
        }
        if list.count.least > MOST_ITEMS {
            return Outcome::Unknown("minItems".to_owned());
        }
        while i64::try_from(items.len()).is_ok_and(|count| count < list.count.least) {
            let may_repeat = list.unique.is_empty() && list.has.is_empty();
            if let Some(last) = items.last().filter(|_| may_repeat).cloned() {
                if !self.spend_on(&last, list.count.least) {
                    return Outcome::Unknown("minItems".to_owned());
                }
                items.resize(usize::try_from(list.count.least).unwrap_or(0), last);
                continue;
            }
            if self.add_variants(list, &mut items) {
                continue;
            }
            match self.item(list, &items, None) {
                Outcome::Found(value) => items.push(value),
                Outcome::Empty if !list.has.is_empty() || given > 0 => {
                    // Without required items, any order of distinct items reaches the maximum count.
                    let plain = Lists { has: Vec::new(), repeated: Vec::new(), ..list.clone() };
                    return match self.with_items(&plain, Vec::new()) {
                        Outcome::Empty => Outcome::Empty,
                        _ => Outcome::Unknown("x-kubernetes-list-type".to_owned()),
                    };
                }
                other => return other,
            }
        }
        Outcome::Found(Value::Array(items))
    }

    /// Adds variants of the last item up to the minimum count, as long as they fit; false if none does. A search for each
    /// item would have to exclude all others.
    fn add_variants(&mut self, list: &Lists<'_>, items: &mut Vec<Value>) -> bool {
        let Some(last) = items.last().cloned() else { return false };
        if !self.spend(items.iter().map(size_of).sum()) {
            return false;
        }
        let seen = |unique| items.iter().map(|item| identity(unique, item)).collect::<BTreeSet<_>>();
        let mut seen: Vec<(&Unique<'_>, BTreeSet<_>)> =
            list.unique.iter().map(|unique| (unique, seen(unique))).collect();
        let steps = Cell::new(STEPS);
        let before = items.len();
        for number in 0..list.count.least {
            if i64::try_from(items.len()).is_ok_and(|count| count >= list.count.least) || !self.spend(size_of(&last)) {
                break;
            }
            let Some(variant) = list.unique.iter().try_fold(last.clone(), |item, unique| varied(unique, item, number))
            else {
                break;
            };
            let fits = |(schema, role): &(&Schema, Role<'_>)| {
                holds(&Formula::Satisfies(schema, *role), &variant, &steps) == Some(true)
            };
            if seen.iter().any(|(unique, seen)| seen.contains(&identity(unique, &variant))) {
                continue;
            }
            if !list.items.iter().all(fits) {
                break;
            }
            for (unique, seen) in &mut seen {
                seen.insert(identity(unique, &variant));
            }
            items.push(variant);
        }
        items.len() > before
    }

    /// Combines all required items into one if there is no room for more.
    fn in_one_item(&mut self, list: &Lists<'_>) -> Outcome {
        match self.item(list, &[], Some(Formula::All(list.has.clone()))) {
            Outcome::Found(value) if list.count.holds(1) => Outcome::Found(Value::Array(vec![value])),
            Outcome::Empty if list.count.most.is_some_and(|most| most <= 1) => Outcome::Empty,
            _ => Outcome::Unknown("maxItems".to_owned()),
        }
    }

    /// One more item that satisfies the schemas, is distinct from the earlier ones if required, and satisfies `wanted`.
    fn item(&mut self, list: &Lists<'_>, before: &[Value], wanted: Option<Formula<'_>>) -> Outcome {
        if !self.spend(before.iter().map(size_of).sum()) {
            return Outcome::Unknown("budget".to_owned());
        }
        let mut formulas: Vec<Formula<'_>> =
            list.items.iter().map(|(schema, role)| Formula::Satisfies(schema, *role)).collect();
        for unique in &list.unique {
            formulas.extend(before.iter().map(|other| differs(unique, other)));
        }
        formulas.extend(wanted);
        self.solve(formulas)
    }

    /// Two items that are equal in the required way and in no forbidden way.
    fn twins(&mut self, list: &Lists<'_>, repeated: &Unique<'_>) -> Result<Vec<Value>, Outcome> {
        if list.count.most.is_some_and(|most| most < 2) {
            return Err(Outcome::Empty);
        }
        let implied = |unique: &Unique<'_>| match (unique, repeated) {
            (Unique::Items, Unique::Keys(_)) => false,
            (Unique::Items | Unique::Keys(_), Unique::Items) => true,
            (Unique::Keys(forbidden), Unique::Keys(asked)) => forbidden.iter().all(|key| asked.contains(key)),
        };
        if list.unique.iter().any(implied) {
            return Err(Outcome::Empty);
        }
        let wanted = list.has.first().cloned();
        let first = match self.item(list, &[], wanted) {
            Outcome::Found(value) => value,
            other => return Err(other),
        };
        if list.unique.is_empty() {
            return Ok(vec![first.clone(), first]);
        }
        let Unique::Keys(keys) = repeated else { return Err(Outcome::Empty) };
        let alike = keys.iter().map(|key| match first.get(key) {
            Some(value) => Formula::has(key, Formula::Is(Rc::new(vec![value.clone()]))),
            None => Formula::lacks(key),
        });
        match self.item(list, std::slice::from_ref(&first), Some(Formula::All(alike.collect()))) {
            Outcome::Found(second) if repeats(repeated, &[first.clone(), second.clone()]) => Ok(vec![first, second]),
            _ => Err(Outcome::Unknown("x-kubernetes-list-type".to_owned())),
        }
    }
}

/// Returns an item of the same kind that differs from this one in the way that `unique` asks for, another for each number.
fn varied(unique: &Unique<'_>, mut item: Value, number: i64) -> Option<Value> {
    let place = match unique {
        Unique::Items => &mut item,
        Unique::Keys(keys) => {
            keys.iter().find_map(|key| item.get(key).map(|_| key)).and_then(|key| item.get_mut(key))?
        }
    };
    *place = match &*place {
        Value::String(text) => format!("{text}{number}").into(),
        Value::Number(value) => value.as_i64()?.checked_add(number)?.into(),
        _ => return None,
    };
    Some(item)
}

/// The formula of not being equal to another item in the way that `unique` forbids.
fn differs<'f>(unique: &Unique<'f>, other: &Value) -> Formula<'f> {
    match unique {
        Unique::Items => Formula::IsNot(Rc::new(vec![other.clone()])),
        Unique::Keys(keys) => Formula::Any(
            keys.iter()
                .flat_map(|key| match other.get(key) {
                    Some(value) => {
                        let differs = Formula::IsNot(Rc::new(vec![value.clone()]));
                        vec![Formula::has(key, differs), Formula::lacks(key)]
                    }
                    None => vec![Formula::has(key, Formula::anything())],
                })
                .collect(),
        ),
    }
}
