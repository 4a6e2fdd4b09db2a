//! Functions on lists: those of Kubernetes (sums, extremes, positions), CEL's list extension, and lists as sets.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/lists.go`, cel-go `ext/lists.go` and `ext/sets.go`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::evaluator::Evaluator;
use super::super::stop::Stop;
use super::super::value::{List, Outcome, Value};
use super::Call;
use crate::schema::Type;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { evaluator, function, is_member, arguments } = *call;
    if let ("lists.range", [Value::Int(count)]) = (function, arguments) {
        return Some(range(evaluator, *count));
    }
    let [Value::List(list), rest @ ..] = arguments else { return None };
    if !is_member {
        return None;
    }
    if let Err(stop) = evaluator.charge(list.items.len()) {
        return Some(Err(stop));
    }
    Some(match (function, rest) {
        ("isSorted", []) => list.in_order().and_then(|()| is_sorted(list)),
        ("sum", []) => sum(evaluator, list),
        ("min", []) => extreme(list, Ordering::Less),
        ("max", []) => extreme(list, Ordering::Greater),
        ("indexOf", [item]) => position(evaluator, list, item, false),
        ("lastIndexOf", [item]) => position(evaluator, list, item, true),
        ("distinct", []) => distinct(evaluator, list),
        ("reverse", []) => list.in_order().map(|()| Value::list(list.items.iter().rev().cloned().collect())),
        ("sort", []) => evaluator.sorted_positions(&list.items).map(|order| {
            Value::list(order.into_iter().filter_map(|position| list.items.get(position).cloned()).collect())
        }),
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(list, *start, *end),
        ("flatten", []) => flatten(evaluator, list, 1),
        ("flatten", [Value::Int(depth)]) => flatten(evaluator, list, *depth),
        ("first", []) => list.in_order().map(|()| Value::Optional(list.items.first().cloned().map(Rc::new))),
        ("last", []) => list.in_order().map(|()| Value::Optional(list.items.last().cloned().map(Rc::new))),
        _ => return None,
    })
}

fn range<'a>(evaluator: &Evaluator<'a>, count: i64) -> Outcome<'a> {
    evaluator.charge(usize::try_from(count).unwrap_or_default())?;
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn ordered(left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, Stop> {
    match left.compare(right) {
        Some(order) => order,
        None => Err(Stop::unknown("the order of values of different types")),
    }
}

fn is_sorted<'a>(list: &List<'a>) -> Outcome<'a> {
    for pair in list.items.windows(2) {
        if ordered(&pair[0], &pair[1])? == Ordering::Greater {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(evaluator: &Evaluator<'a>, list: &List<'a>) -> Outcome<'a> {
    let schema = list.schema.map(|schema| (schema.kind, schema.format.as_deref()));
    let zero = match list.items.first() {
        None if matches!(schema, Some((Some(Type::Number), _))) => Value::Double(0.0),
        None if matches!(schema, Some((_, Some("duration")))) => Value::Duration(0),
        // The item type of an empty list built by the rule is unknown; `no_overload` allows for this zero.
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        Some(other) => return Err(evaluator.no_overload("sum()", &[other])),
    };
    list.items.iter().try_fold(zero, |sum, item| evaluator.plus(&sum, item))
}

fn extreme<'a>(list: &List<'a>, wanted: Ordering) -> Outcome<'a> {
    let mut items = list.items.iter();
    let Some(mut best) = items.next() else { return Err(Stop::error("min or max called on empty list")) };
    for item in items {
        if ordered(item, best)? == wanted {
            best = item;
        }
    }
    Ok(best.clone())
}

fn position<'a>(evaluator: &Evaluator<'a>, list: &List<'a>, wanted: &Value<'a>, last: bool) -> Outcome<'a> {
    list.in_order()?;
    let mut found = -1;
    for (position, item) in (0..).zip(list.items.iter()) {
        if item.equals(wanted, evaluator)? {
            found = position;
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn distinct<'a>(evaluator: &Evaluator<'a>, list: &List<'a>) -> Outcome<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in list.items.iter() {
        let known = List::built(kept.clone(), false);
        evaluator.charge(kept.len())?;
        if !known.contains(item, evaluator)? {
            kept.push(item.clone());
        }
    }
    Ok(Value::List(List::built(kept, list.unordered)))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Outcome<'a> {
    list.in_order()?;
    let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match bounds.and_then(|(start, end)| list.items.get(start..end)) {
        Some(items) => Ok(Value::list(items.to_vec())),
        None => Err(Stop::error(format!("cannot slice({start}, {end})"))),
    }
}

fn flatten<'a>(evaluator: &Evaluator<'a>, list: &List<'a>, depth: i64) -> Outcome<'a> {
    if depth < 0 {
        return Err(Stop::error("level must be non-negative"));
    }
    let mut items = (*list.items).clone();
    for _ in 0..depth {
        let nested = items.iter().any(|item| matches!(item, Value::List(_)));
        if !nested {
            break;
        }
        let mut flat = Vec::new();
        for item in items {
            match item {
                Value::List(inner) => {
                    inner.in_order()?;
                    evaluator.charge(inner.items.len())?;
                    flat.extend(inner.items.iter().cloned());
                }
                other => flat.push(other),
            }
        }
        items = flat;
    }
    Ok(Value::List(List::built(items, list.unordered)))
}

pub(in super::super) fn sets<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { evaluator, function, arguments, .. } = *call;
    let [Value::List(left), Value::List(right)] = arguments else { return None };
    let covers = |whole: &List<'a>, part: &List<'a>| -> Result<bool, Stop> {
        for item in part.items.iter() {
            if !whole.contains(item, evaluator)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let answer = match function {
        "sets.contains" => covers(left, right),
        "sets.equivalent" => covers(left, right).and_then(|covered| Ok(covered && covers(right, left)?)),
        "sets.intersects" => {
            let mut shared = Ok(false);
            for item in left.items.iter() {
                match right.contains(item, evaluator) {
                    Ok(false) => {}
                    decided => {
                        shared = decided;
                        break;
                    }
                }
            }
            shared
        }
        _ => return None,
    };
    Some(answer.map(Value::Bool))
}
