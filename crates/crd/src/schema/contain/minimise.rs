//! Makes a witness small and readable: removes everything that the damage does not need, and gives it a telling name.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::confirm::{Confirmed, Damage};
use super::difference::SchemaProof;
use super::solve::size_of;
use crate::path::PathSegment;

/// Maximum number of runs of the pipeline.
const TRIALS: u64 = 400;
/// Maximum number of values in all runs together.
const VALUES: u64 = 40_000;
/// With fewer trials a large object would remain unreadable.
const FEWEST: u64 = 8;

/// A breaking proof, with the object made as small as the damage allows.
pub(super) fn breaking(object: Value, damage: Damage, look: &impl Fn(&Value) -> Confirmed) -> SchemaProof {
    let (witness, damage) = minimise(object, damage, look);
    SchemaProof::Breaking { witness, damage }
}

fn minimise(mut object: Value, mut damage: Damage, look: &impl Fn(&Value) -> Confirmed) -> (Value, Damage) {
    let tried = Cell::new(0);
    let same_damage = |candidate: &Value, damage: &Damage| {
        tried.set(tried.get() + 1);
        match look(candidate) {
            Confirmed::Damaged(found) => {
                let is_same = found.effect == damage.effect && found.keyword == damage.keyword;
                // What else is wrong with the object would only distract.
                (is_same && found.others <= damage.others).then_some(found)
            }
            _ => None,
        }
    };
    if size_of(&object) > TRIALS {
        // Too many fields to try one by one: remove all except those that lead to the damage.
        let candidate = along(&object, &damage.path, &super::walk::BUILT_IN);
        if let Some(found) = same_damage(&candidate, &damage) {
            (object, damage) = (candidate, found);
        }
    }
    // A large object gets fewer trials than a small one.
    let trials = Some(TRIALS.min(VALUES / (size_of(&object) + 1))).filter(|trials| *trials > FEWEST).unwrap_or(0);
    loop {
        let mut smaller = false;
        // From the end, so that the remaining places stay valid.
        for place in places(&object).into_iter().rev() {
            if tried.get() >= trials {
                break;
            }
            let mut candidate = object.clone();
            if remove(&mut candidate, &place).is_none() {
                continue;
            }
            if let Some(found) = same_damage(&candidate, &damage) {
                (object, damage, smaller) = (candidate, found, true);
            }
        }
        if !smaller {
            break;
        }
    }
    let mut named = object.clone();
    if let Some(name) = named.pointer_mut("/metadata/name") {
        *name = "witness".into();
        if let Some(found) = same_damage(&named, &damage) {
            return (named, found);
        }
    }
    (object, damage)
}

/// The parts of a value on the way to a place or below it, and the kept fields beside it.
fn along(value: &Value, path: &[PathSegment], kept: &[&str]) -> Value {
    match (path.split_first(), value) {
        (Some((PathSegment::Key(key), rest)), Value::Object(fields)) => {
            let stays = |name: &str| name == key || kept.contains(&name);
            let field = |(name, value): (&String, &Value)| {
                (name.clone(), if name == key { along(value, rest, &[]) } else { value.clone() })
            };
            fields.iter().filter(|(name, _)| stays(name)).map(field).collect::<Map<_, _>>().into()
        }
        (Some((PathSegment::Index(index), rest)), Value::Array(items)) => {
            items.get(*index).map(|item| along(item, rest, &[])).into_iter().collect()
        }
        _ => value.clone(),
    }
}

/// Every removable place below the root, parents before their children.
fn places(object: &Value) -> Vec<Vec<PathSegment>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), object)];
    while let Some((path, value)) = open.pop() {
        let inner: Vec<(PathSegment, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.as_str().into(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.into(), value)).collect(),
            _ => Vec::new(),
        };
        for (segment, value) in inner {
            let mut path: Vec<PathSegment> = path.clone();
            path.push(segment);
            let built_in = matches!(path.as_slice(), [PathSegment::Key(key)] if super::walk::BUILT_IN.contains(&key.as_str()))
                || matches!(path.as_slice(), [PathSegment::Key(one), PathSegment::Key(two)] if one == "metadata" && two == "name");
            if !built_in {
                found.push(path.clone());
            }
            open.push((path, value));
        }
    }
    found.sort();
    found
}

fn remove(object: &mut Value, path: &[PathSegment]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut current = object;
    for segment in parents {
        current = match segment {
            PathSegment::Key(key) => current.get_mut(key)?,
            PathSegment::Index(index) => current.get_mut(index)?,
        };
    }
    match (last, current) {
        (PathSegment::Key(key), Value::Object(fields)) => fields.shift_remove(key),
        (PathSegment::Index(index), Value::Array(items)) if *index < items.len() => Some(items.remove(*index)),
        _ => None,
    }
}
