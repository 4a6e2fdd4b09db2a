//! Executes a conversion on a value in place, in time proportional to its nodes.

use std::mem;
use std::sync::Arc;

use pushback_crd::schema::cel::Computed;
use pushback_objects::source::PathSegment;
use serde_json::{Map, Value};

use super::operation::{as_quantity, as_scalar};
use super::plan::Keyed;
use super::step::{Aside, Assignment, Convert, FEW, Field, Move, ObjectStep, Pull};

/// Objects with up to so many fields are converted in place.
const SMALL: usize = 32;

/// Why a value cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Innermost first.
    pub(super) path: Vec<PathSegment>,
    pub(super) message: String,
}

/// One execution.
#[derive(Debug)]
pub(super) struct Run<'r> {
    /// Name of the bag.
    pub(super) bag: &'r str,
    /// Paths of lost fields, innermost step first.
    pub(super) lost: Vec<Vec<PathSegment>>,
}

impl Run<'_> {
    /// Does something with a part of a value, and completes the paths that come out of it.
    fn within<T>(
        &mut self,
        segment: impl FnOnce() -> PathSegment,
        inner: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let before = self.lost.len();
        let mut result = inner(self);
        if self.lost.len() > before || result.is_err() {
            let segment = segment();
            for path in &mut self.lost[before..] {
                path.push(segment.clone());
            }
            if let Err(failure) = &mut result {
                failure.path.push(segment);
            }
        }
        result
    }
}

impl Convert {
    /// Converts a value; false if the destination has no value for it, and then it is left in some state.
    pub(super) fn apply(&self, value: &mut Value, run: &mut Run<'_>) -> Result<bool, Failure> {
        let put = |place: &mut Value, found: Option<Value>| match found {
            Some(found) => {
                *place = found;
                true
            }
            None => false,
        };
        Ok(match self {
            Self::Same => true,
            Self::Object(step) => {
                step.apply(value, run)?;
                true
            }
            Self::Each(inner) => each(inner, value, run)?,
            Self::NotNull(_) if value.is_null() => false,
            Self::NotNull(inner) => inner.apply(value, run)?,
            _ if value.is_null() => true,
            Self::Scalar { to, quantity: false } => {
                let found = as_scalar(value, *to);
                put(value, found)
            }
            Self::Scalar { to, quantity: true } => {
                let found = as_quantity(value, *to);
                put(value, found)
            }
            Self::Enum(names) => {
                let new = match &*value {
                    Value::String(text) => names.get(text),
                    Value::Number(number) => names.get(&number.to_string()),
                    _ => None,
                };
                if let Some(new) = new.cloned() {
                    *value = new;
                }
                true
            }
            Self::Wrap(inner) => {
                let fits = inner.apply(value, run)?;
                *value = Value::Array(vec![value.take()]);
                fits
            }
            Self::Unwrap(inner) => match value {
                Value::Array(items) if !items.is_empty() => {
                    *value = items.swap_remove(0);
                    inner.apply(value, run)?
                }
                _ => false,
            },
            Self::ToMap(keyed, inner) => match to_map(keyed, value) {
                Some(map) => {
                    *value = map;
                    each(inner, value, run)?
                }
                None => false,
            },
            Self::ToList(keyed, inner) => {
                let fits = each(inner, value, run)?;
                let found = to_list(keyed, value);
                put(value, found) && fits
            }
        })
    }
}

fn each(inner: &Convert, value: &mut Value, run: &mut Run<'_>) -> Result<bool, Failure> {
    let mut all = true;
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                all &= run.within(|| index.into(), |run| inner.apply(item, run))?;
            }
        }
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                all &= run.within(|| key.as_str().into(), |run| inner.apply(value, run))?;
            }
        }
        _ => {}
    }
    Ok(all)
}

/// A list of objects as a map by one of their fields; `None` if that is no key.
fn to_map(keyed: &Keyed, value: &mut Value) -> Option<Value> {
    let mut map = Map::new();
    for item in value.as_array_mut()? {
        let fields = item.as_object_mut()?;
        let Some(Value::String(key)) = fields.shift_remove(&keyed.key) else { return None };
        let value = match &keyed.value {
            None => item.take(),
            Some(field) => {
                let value = fields.shift_remove(field)?;
                if !fields.is_empty() {
                    return None;
                }
                value
            }
        };
        if map.insert(key, value).is_some() {
            return None;
        }
    }
    Some(Value::Object(map))
}

fn to_list(keyed: &Keyed, value: &mut Value) -> Option<Value> {
    let Value::Object(map) = value else { return None };
    let mut items = Vec::with_capacity(map.len());
    for (key, value) in mem::take(map) {
        let mut fields = Map::new();
        fields.insert(keyed.key.clone(), Value::String(key));
        match (&keyed.value, value) {
            (Some(field), value) => {
                fields.insert(field.clone(), value);
            }
            (None, Value::Object(rest)) if !rest.contains_key(&keyed.key) => fields.extend(rest),
            (None, _) => return None,
        }
        items.push(Value::Object(fields));
    }
    Some(Value::Array(items))
}

impl ObjectStep {
    /// Converts an object; anything else stays as it is.
    pub(super) fn apply(&self, value: &mut Value, run: &mut Run<'_>) -> Result<(), Failure> {
        let assigned = if value.is_object() { self.assigned(value)? } else { Vec::new() };
        let Value::Object(map) = value else { return Ok(()) };
        let mut bag = match has(map, run.bag).then(|| map.shift_remove(run.bag)).flatten() {
            Some(Value::Object(bag)) => bag,
            Some(other) => {
                map.insert(run.bag.to_owned(), other);
                return Err(Failure {
                    path: vec![run.bag.into()],
                    message: "this is where values of other versions are kept, and it is not a map".to_owned(),
                });
            }
            None => Map::new(),
        };
        // What this step puts into the bag, it does not take out again.
        let mut stashed = Map::new();
        let moved: Vec<Option<Value>> = self.moves.iter().map(|moving| take(map, &moving.from)).collect();
        if self.rewrites {
            self.rewrite(map, &mut stashed, run)?;
        } else if !self.fields.is_empty() {
            self.convert_in_place(map, run)?;
        }
        if !bag.is_empty() && !self.pulls.is_empty() {
            self.pull(map, &mut bag, run)?;
        }
        for (moving, value) in self.moves.iter().zip(moved) {
            let value = match value {
                Some(value) => moving.converted(value, &mut stashed, run)?,
                None => None,
            };
            let value = moving.original(value, &mut bag, run)?;
            if let Some(value) = value {
                put(map, &moving.to, value, true);
            }
        }
        for (assignment, value) in self.assignments.iter().zip(assigned) {
            let Some(value) = value else { continue };
            let is_partial = assignment.needs_first
                && assignment.field.first().is_some_and(|first| !map.contains_key(first))
                && assignment.field.len() > 1;
            if !is_partial {
                put(map, &assignment.field, value, assignment.always);
            }
        }
        if bag.is_empty() {
            bag = stashed;
        } else if !stashed.is_empty() {
            bag.extend(stashed);
        }
        if !bag.is_empty() {
            map.insert(run.bag.to_owned(), Value::Object(bag));
        }
        Ok(())
    }

    /// The values of the expressions, which are about the object before it is converted.
    fn assigned(&self, value: &Value) -> Result<Vec<Option<Value>>, Failure> {
        self.assignments.iter().map(|assignment| assignment.value(value)).collect()
    }

    fn convert_in_place(&self, map: &mut Map<String, Value>, run: &mut Run<'_>) -> Result<(), Failure> {
        let mut convert = |key: &str, value: &mut Value, field: &Field| match field {
            Field::Keep { convert, .. } => run.within(|| key.into(), |run| convert.apply(value, run)).map(|_| ()),
            Field::Stash { .. } | Field::Drop => Ok(()),
        };
        if self.fields.len() < map.len() {
            for (key, field) in self.fields.iter() {
                if let Some(value) = map.get_mut(key) {
                    convert(key, value, field)?;
                }
            }
        } else {
            for (key, value) in map.iter_mut() {
                if let Some(field) = self.fields.get(key) {
                    convert(key, value, field)?;
                }
            }
        }
        Ok(())
    }

    fn rewrite(
        &self,
        map: &mut Map<String, Value>,
        stashed: &mut Map<String, Value>,
        run: &mut Run<'_>,
    ) -> Result<(), Failure> {
        if self.rest.is_none() && self.fields.is_short() && map.len() <= SMALL {
            return self.rewrite_few(map, stashed, run);
        }
        let old = mem::take(map);
        *map = Map::with_capacity(old.len());
        let mut rest = Map::new();
        for (key, mut value) in old {
            match self.fields.get(&key) {
                None if self.rest.as_ref().is_some_and(|rest| !rest.stays(&key)) => {
                    rest.insert(key, value);
                }
                None => {
                    map.insert(key, value);
                }
                Some(Field::Keep { to, convert, aside }) => {
                    let converted = run.within(
                        || key.as_str().into(),
                        |run| converted(convert, aside.as_ref(), &mut value, stashed, run),
                    )?;
                    if converted {
                        map.insert(if *to == key { key } else { to.clone() }, value);
                    }
                }
                Some(Field::Stash { key, raw }) => {
                    stashed.insert(key.clone(), encode(value, *raw));
                }
                Some(Field::Drop) => run.lost.push(vec![PathSegment::Key(key)]),
            }
        }
        if let Some(plan) = self.rest.as_ref().filter(|_| !rest.is_empty()) {
            stashed.insert(plan.key.clone(), encode(Value::Object(rest), false));
        }
        Ok(())
    }

    /// The same for a few fields of a small object, without making the others anew. Fields keep their places.
    fn rewrite_few(
        &self,
        map: &mut Map<String, Value>,
        stashed: &mut Map<String, Value>,
        run: &mut Run<'_>,
    ) -> Result<(), Failure> {
        let mut found: [Option<(usize, &(String, Field))>; FEW] = [const { None }; FEW];
        let fields = map.keys().enumerate().filter_map(|(place, key)| Some((place, self.fields.entry(key)?)));
        found.iter_mut().zip(fields).for_each(|(slot, field)| *slot = Some(field));
        // All are taken out before any comes back: names may be swapped.
        let mut taken: [Option<(usize, String, Value)>; FEW] = [const { None }; FEW];
        let mut gone = 0;
        for (slot, (place, (key, field))) in taken.iter_mut().zip(found.into_iter().flatten()) {
            if let Field::Keep { to, convert, aside: None } = field
                && to == key
            {
                if let Some(value) = map.get_mut(key) {
                    run.within(|| key.as_str().into(), |run| convert.apply(value, run))?;
                }
                continue;
            }
            let Some((mut name, mut value)) = map.shift_remove_entry(key) else { continue };
            match field {
                Field::Keep { to, convert, aside } => {
                    let aside = aside.as_ref();
                    let converted = |run: &mut Run<'_>| converted(convert, aside, &mut value, stashed, run);
                    if run.within(|| key.as_str().into(), converted)? {
                        name.clone_from(to);
                        *slot = Some((place - gone, name, value));
                        continue;
                    }
                }
                Field::Stash { key, raw } => {
                    stashed.insert(key.clone(), encode(value, *raw));
                }
                Field::Drop => run.lost.push(vec![key.as_str().into()]),
            }
            gone += 1;
        }
        for (place, name, value) in taken.into_iter().flatten() {
            map.shift_insert(place.min(map.len()), name, value);
        }
        Ok(())
    }

    /// Takes out of the bag what the destination has fields for.
    fn pull(
        &self,
        map: &mut Map<String, Value>,
        bag: &mut Map<String, Value>,
        run: &mut Run<'_>,
    ) -> Result<(), Failure> {
        let pulls: Vec<&(String, Pull)> = bag.keys().filter_map(|key| self.pulls.entry(key)).collect();
        for (key, pull) in pulls {
            let Some(Value::String(text)) = bag.get(key) else { continue };
            match pull {
                Pull::Field { to, raw, shape } => {
                    let found = decode(text, *raw).filter(|value| shape.fits(value));
                    if let Some(value) = found.filter(|_| !map.contains_key(to)) {
                        map.insert(to.clone(), value);
                        bag.shift_remove(key);
                    }
                }
                Pull::Original { to, there, back } => {
                    let Some(original) = decode(text, false) else { continue };
                    let canonical = round_trip(original.clone(), there, back, run.bag)?;
                    if canonical.as_ref() == map.get(to) {
                        map.insert(to.clone(), original);
                    }
                    bag.shift_remove(key);
                }
                Pull::Rest => {
                    let Some(Value::Object(rest)) = decode(text, false) else { continue };
                    for (name, value) in rest {
                        map.entry(name).or_insert(value);
                    }
                    bag.shift_remove(key);
                }
            }
        }
        Ok(())
    }
}

/// Converts a value, and keeps the original if it does not come back from what it became.
fn converted(
    convert: &Convert,
    aside: Option<&Aside>,
    value: &mut Value,
    stashed: &mut Map<String, Value>,
    run: &mut Run<'_>,
) -> Result<bool, Failure> {
    let Some(aside) = aside else { return convert.apply(value, run) };
    let original = value.clone();
    let fits = convert.apply(value, run)?;
    let back = if fits { applied(value.clone(), &aside.back, run.bag)? } else { None };
    if back.as_ref() != Some(&original) {
        stashed.insert(aside.key.clone(), encode(original, false));
    }
    Ok(fits)
}

fn applied(mut value: Value, convert: &Convert, bag: &str) -> Result<Option<Value>, Failure> {
    let mut run = Run { bag, lost: Vec::new() };
    Ok(convert.apply(&mut value, &mut run)?.then_some(value))
}

fn round_trip(value: Value, there: &Convert, back: &Convert, bag: &str) -> Result<Option<Value>, Failure> {
    match applied(value, there, bag)? {
        Some(value) => applied(value, back, bag),
        None => Ok(None),
    }
}

impl Move {
    fn converted(
        &self,
        mut value: Value,
        stashed: &mut Map<String, Value>,
        run: &mut Run<'_>,
    ) -> Result<Option<Value>, Failure> {
        let fits = converted(&self.convert, self.aside.as_ref(), &mut value, stashed, run)?;
        Ok(fits.then_some(value))
    }

    /// The original in the bag, if the value was not changed since.
    fn original(
        &self,
        value: Option<Value>,
        bag: &mut Map<String, Value>,
        run: &Run<'_>,
    ) -> Result<Option<Value>, Failure> {
        let Some(Aside { key, back }) = &self.originals else { return Ok(value) };
        let Some(Value::String(text)) = bag.shift_remove(key) else { return Ok(value) };
        let Some(original) = decode(&text, false) else { return Ok(value) };
        let canonical = round_trip(original.clone(), back, &self.convert, run.bag)?;
        Ok(if canonical == value { Some(original) } else { value })
    }
}

impl Assignment {
    fn value(&self, source: &Value) -> Result<Option<Value>, Failure> {
        match self.program.compute(&self.schema, source) {
            Computed::Value(Value::Null) | Computed::Nothing => Ok(None),
            Computed::Value(value) => Ok(Some(value)),
            Computed::Failed(why) => {
                let path = self.field.iter().rev().map(|name| name.as_str().into()).collect();
                Err(Failure { path, message: format!("the expression that sets it fails: {why}") })
            }
        }
    }
}

/// A value as an entry of the bag: strings as they are, anything else as JSON.
fn encode(value: Value, raw: bool) -> Value {
    match value {
        Value::String(text) if raw => Value::String(text),
        value => Value::String(value.to_string()),
    }
}

fn decode(text: &str, raw: bool) -> Option<Value> {
    if raw { Some(text.into()) } else { serde_json::from_str(text).ok() }
}

/// Whether there is a field of this name. Comparing a few names takes less time than hashing one.
fn has(map: &Map<String, Value>, name: &str) -> bool {
    if map.len() <= 2 * FEW { map.keys().any(|key| key == name) } else { map.contains_key(name) }
}

/// Takes a value out of nested objects. An object that has nothing else goes with it.
fn take(map: &mut Map<String, Value>, names: &[String]) -> Option<Value> {
    match names {
        [] => None,
        [name] => map.shift_remove(name),
        [name, rest @ ..] => {
            let inner = map.get_mut(name)?.as_object_mut()?;
            let value = take(inner, rest);
            if value.is_some() && inner.is_empty() {
                map.shift_remove(name);
            }
            value
        }
    }
}

/// Puts a value into nested objects, which are made where they are missing.
fn put(map: &mut Map<String, Value>, names: &[String], value: Value, replaces: bool) {
    match names {
        [] => {}
        [name] => {
            if replaces || map.get(name).is_none_or(Value::is_null) {
                map.insert(name.clone(), value);
            }
        }
        [name, rest @ ..] => {
            let inner = map.entry(name.as_str()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value, replaces);
            }
        }
    }
}

/// Shares a step unless nothing happens in it.
pub(super) fn object(step: ObjectStep) -> Convert {
    if step.is_same() { Convert::Same } else { Convert::Object(Arc::new(step)) }
}
