//! Makes an object as small as a defect allows: without every field that it does not need, and with the simplest values.

use pushback_crd::path::{PathSegment, pointer_key};
use serde_json::Value;

use super::constants::Constants;
use crate::prune::OF_EVERY_RESOURCE;

/// Maximum number of objects that are tried.
const TRIALS: usize = 400;

/// Returns the smallest object found that shows the same, and what it shows.
pub(super) fn smallest<T>(
    object: &Value,
    shows: T,
    constants: &Constants,
    look: impl Fn(&Value) -> Option<T>,
) -> (Value, T) {
    let (mut object, mut shows) = (object.clone(), shows);
    let mut trials = 0;
    let mut attempt = |candidate: Value, object: &mut Value, shows: &mut T| {
        trials += 1;
        let found = look(&candidate);
        let is_smaller = found.is_some();
        if let Some(found) = found {
            (*object, *shows) = (candidate, found);
        }
        (is_smaller, trials < TRIALS)
    };
    loop {
        let mut is_smaller = false;
        // Parents come before their parts; a removed parent takes its parts with it.
        for pointer in places(&object) {
            let Some(candidate) = without(&object, &pointer) else { continue };
            let (was_smaller, may_go_on) = attempt(candidate, &mut object, &mut shows);
            is_smaller |= was_smaller;
            if !may_go_on {
                return (object, shows);
            }
        }
        for pointer in places(&object) {
            let Some(value) = object.pointer(&pointer) else { continue };
            for simple in simpler(value, constants) {
                let mut candidate = object.clone();
                let Some(place) = candidate.pointer_mut(&pointer) else { continue };
                *place = simple;
                let (was_smaller, may_go_on) = attempt(candidate, &mut object, &mut shows);
                is_smaller |= was_smaller;
                if !may_go_on {
                    return (object, shows);
                }
                if was_smaller {
                    break;
                }
            }
        }
        if !is_smaller {
            return (object, shows);
        }
    }
}

/// Pointers to everything but the type and the name, parents first.
fn places(object: &Value) -> Vec<String> {
    fn below(at: &str, value: &Value, found: &mut Vec<String>) {
        let inner: Vec<(PathSegment, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.as_str().into(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.into(), value)).collect(),
            _ => return,
        };
        for (segment, value) in inner {
            let pointer = match &segment {
                PathSegment::Key(key) if at.is_empty() && OF_EVERY_RESOURCE.contains(&key.as_str()) => continue,
                PathSegment::Key(key) => format!("{at}/{}", pointer_key(key)),
                PathSegment::Index(index) => format!("{at}/{index}"),
            };
            found.push(pointer.clone());
            below(&pointer, value, found);
        }
    }
    let mut found = Vec::new();
    below("", object, &mut found);
    found
}

fn without(object: &Value, pointer: &str) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    let mut smaller = object.clone();
    match smaller.pointer_mut(parent)? {
        Value::Object(fields) => fields.shift_remove(&key.replace("~1", "/").replace("~0", "~"))?,
        Value::Array(items) => {
            let index = key.parse::<usize>().ok().filter(|index| *index < items.len())?;
            items.remove(index)
        }
        _ => return None,
    };
    Some(smaller)
}

/// Simpler values of the same type, the simplest first.
fn simpler(value: &Value, constants: &Constants) -> Vec<Value> {
    match value {
        Value::Number(number) => {
            let Some(number) = number.as_i64() else { return Vec::new() };
            let mut smaller: Vec<i64> =
                constants.numbers.iter().filter_map(Value::as_i64).chain([0, 1, number / 2]).collect();
            if number > 0 {
                smaller.push(number - 1);
            }
            smaller.retain(|other| other.unsigned_abs() < number.unsigned_abs());
            smaller.sort_unstable_by_key(|other| (other.unsigned_abs(), *other < 0));
            smaller.dedup();
            smaller.into_iter().map(Value::from).collect()
        }
        Value::String(text) => {
            let half: String = text.chars().take(text.chars().count() / 2).collect();
            let mut shorter = vec![String::new(), "a".to_owned(), half];
            shorter.retain(|other| other.len() < text.len());
            shorter.dedup();
            shorter.into_iter().map(Value::from).collect()
        }
        _ => Vec::new(),
    }
}
