//! Places in objects, as findings and the API server write them, and where two objects differ.

use serde_json::Value;

/// Keys and indices from the root; `*` stands for all of them.
pub(super) type Place = Vec<String>;

/// `spec.items[*].name` and `spec.items[0].name` as steps.
pub(super) fn place(path: &str) -> Place {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let step;
        (step, rest) = match rest.strip_prefix('[') {
            Some(bracket) => bracket.split_once(']').unwrap_or((bracket, "")),
            None => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        rest = rest.strip_prefix('.').unwrap_or(rest);
        // The server has no better name for the object itself.
        if step != "<nil>" {
            steps.push(step.trim_matches('"').to_owned());
        }
    }
    steps
}

/// Whether one is the other, or within it.
pub(super) fn meet(one: &Place, other: &Place) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other || one == "*" || other == "*")
}

/// Where something is otherwise: gone, new, or another value.
pub(super) fn differences(before: &Value, now: &Value) -> Vec<Place> {
    let mut found = Vec::new();
    compare(Some(before), Some(now), &mut Place::new(), &mut found);
    found
}

fn compare(before: Option<&Value>, now: Option<&Value>, at: &mut Place, found: &mut Vec<Place>) {
    let mut both = |step: String, before: Option<&Value>, now: Option<&Value>| {
        at.push(step);
        compare(before, now, at, found);
        at.pop();
    };
    match (before, now) {
        (Some(Value::Object(before)), Some(Value::Object(now))) => {
            before.iter().for_each(|(key, value)| both(key.clone(), Some(value), now.get(key)));
            let new = now.iter().filter(|(key, _)| !before.contains_key(*key));
            new.for_each(|(key, value)| both(key.clone(), None, Some(value)));
        }
        (Some(Value::Array(before)), Some(Value::Array(now))) => {
            (0..before.len().max(now.len()))
                .for_each(|index| both(index.to_string(), before.get(index), now.get(index)));
        }
        _ if before == now => {}
        _ => found.push(at.clone()),
    }
}

/// Where something that was there is gone.
pub(super) fn losses(before: &Value, now: &Value) -> Vec<Place> {
    let at = |object: &Value, place: &Place| {
        place
            .iter()
            .try_fold(object, |value, step| value.get(step).or_else(|| value.get(step.parse::<usize>().ok()?)))
            .is_some()
    };
    differences(before, now).into_iter().filter(|place| at(before, place) && !at(now, place)).collect()
}
