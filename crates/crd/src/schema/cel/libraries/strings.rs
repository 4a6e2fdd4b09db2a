//! The strings library, version 2. All positions are in code points.
//!
//! Follows cel-go `ext/strings.go`.

use super::super::evaluator::Evaluator;
use super::super::stop::Stop;
use super::super::value::{Outcome, Value};
use super::Call;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { evaluator, function, is_member, arguments } = *call;
    match (function, arguments) {
        ("join", [Value::List(list)]) if is_member => Some(join(evaluator, list, "")),
        ("join", [Value::List(list), Value::String(between)]) if is_member => Some(join(evaluator, list, between)),
        ("strings.quote", _) => Some(Err(Stop::unknown("strings.quote()"))),
        (_, [Value::String(text), rest @ ..]) if is_member => {
            if let Err(stop) = evaluator.charge_text(text.len()) {
                return Some(Err(stop));
            }
            on_text(evaluator, function, text, rest)
        }
        _ => None,
    }
}

fn on_text<'a>(evaluator: &Evaluator<'a>, function: &str, text: &str, rest: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(match (function, rest) {
        ("charAt", [Value::Int(position)]) => char_at(text, *position),
        ("indexOf", [Value::String(part)]) => index_of(text, part, 0),
        ("indexOf", [Value::String(part), Value::Int(from)]) => index_of(text, part, *from),
        ("lastIndexOf", [Value::String(part)]) => last_index_of(text, part, None),
        ("lastIndexOf", [Value::String(part), Value::Int(from)]) => last_index_of(text, part, Some(*from)),
        ("lowerAscii", []) => Ok(Value::text(&text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::text(&text.to_ascii_uppercase())),
        // Go and Unicode agree on white space.
        ("trim", []) => Ok(Value::text(text.trim())),
        ("replace", [Value::String(old), Value::String(new)]) => replace(evaluator, text, old, new, -1),
        ("replace", [Value::String(old), Value::String(new), Value::Int(count)]) => {
            replace(evaluator, text, old, new, *count)
        }
        ("split", [Value::String(separator)]) => split(evaluator, text, separator, -1),
        ("split", [Value::String(separator), Value::Int(count)]) => split(evaluator, text, separator, *count),
        ("substring", [Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        ("format", [Value::List(list)]) => format(evaluator, text, &list.items),
        _ => return None,
    })
}

fn out_of_range<'a>(position: i64) -> Outcome<'a> {
    Err(Stop::error(format!("index out of range: {position}")))
}

fn int<'a>(position: usize) -> Outcome<'a> {
    Ok(Value::Int(i64::try_from(position).unwrap_or(i64::MAX)))
}

fn char_at<'a>(text: &str, position: i64) -> Outcome<'a> {
    let length = text.chars().count();
    match usize::try_from(position) {
        Ok(position) if position <= length => {
            Ok(Value::text(&text.chars().nth(position).map_or_else(String::new, String::from)))
        }
        _ => out_of_range(position),
    }
}

/// The byte offset of each character, and the end of the last one.
fn starts(text: &str) -> Vec<usize> {
    text.char_indices().map(|(start, _)| start).chain([text.len()]).collect()
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> Outcome<'a> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let Ok(start) = usize::try_from(from) else { return out_of_range(from) };
    let starts = starts(text);
    let found = starts.get(start).and_then(|offset| text[*offset..].find(part).map(|found| offset + found));
    match found {
        Some(offset) => int(starts.partition_point(|start| *start < offset)),
        None => Ok(Value::Int(-1)),
    }
}

fn last_index_of<'a>(text: &str, part: &str, from: Option<i64>) -> Outcome<'a> {
    let starts = starts(text);
    let length = starts.len() - 1;
    if part.is_empty() {
        return from.map_or_else(|| int(length), |from| Ok(Value::Int(from)));
    }
    let from = match from.map(usize::try_from) {
        None if text.len() < part.len() => return Ok(Value::Int(-1)),
        None => length - 1,
        Some(Ok(position)) => position,
        Some(Err(_)) => return out_of_range(from.unwrap_or_default()),
    };
    if from >= length {
        return Ok(Value::Int(-1));
    }
    let found = starts.iter().take(from + 1).rposition(|offset| text[*offset..].starts_with(part));
    found.map_or(Ok(Value::Int(-1)), int)
}

fn replace<'a>(evaluator: &Evaluator<'a>, text: &str, old: &str, new: &str, count: i64) -> Outcome<'a> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() }.min(most);
    evaluator.charge_text(text.len().saturating_add(places.saturating_mul(new.len())))?;
    Ok(Value::text(&text.replacen(old, new, most)))
}

fn split<'a>(evaluator: &Evaluator<'a>, text: &str, separator: &str, count: i64) -> Outcome<'a> {
    evaluator.charge(text.len())?;
    let pieces: Vec<Value<'a>> = match usize::try_from(count) {
        Ok(0) => Vec::new(),
        most if separator.is_empty() => {
            let most = most.unwrap_or(usize::MAX);
            let starts = starts(text);
            let whole = starts.len() - 1;
            let mut pieces: Vec<Value<'a>> = text
                .chars()
                .take(whole.min(most.saturating_sub(1)))
                .map(|character| Value::text(character.encode_utf8(&mut [0; 4])))
                .collect();
            let taken = pieces.len();
            if taken < whole {
                pieces.push(Value::text(&text[starts[taken]..]));
            }
            pieces
        }
        Ok(most) => text.splitn(most, separator).map(Value::text).collect(),
        Err(_) => text.split(separator).map(Value::text).collect(),
    };
    Ok(Value::list(pieces))
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Outcome<'a> {
    let starts = starts(text);
    if end.is_some_and(|end| start > end) {
        return Err(Stop::error("invalid substring range"));
    }
    let offset = |position: i64| usize::try_from(position).ok().and_then(|position| starts.get(position)).copied();
    let Some(from) = offset(start) else { return out_of_range(start) };
    let Some(to) = end.map_or(Some(text.len()), offset) else { return out_of_range(end.unwrap_or_default()) };
    Ok(Value::text(&text[from..to]))
}

fn join<'a>(evaluator: &Evaluator<'a>, list: &super::super::value::List<'a>, between: &str) -> Outcome<'a> {
    list.in_order()?;
    let mut text = String::new();
    for (position, item) in list.items.iter().enumerate() {
        let Value::String(item) = item else {
            return Err(Stop::error(format!("join: invalid input: {}", item.shown())));
        };
        evaluator.charge_text(item.len() + between.len())?;
        if position > 0 {
            text.push_str(between);
        }
        text.push_str(item);
    }
    Ok(Value::text(&text))
}

/// `%s` and `%d` of simple values; the rest is not implemented here.
fn format<'a>(evaluator: &Evaluator<'a>, text: &str, values: &[Value<'a>]) -> Outcome<'a> {
    let mut values = values.iter();
    let mut output = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            output.push(character);
            continue;
        }
        let verb = characters.next();
        if verb == Some('%') {
            output.push('%');
            continue;
        }
        match (verb, values.next()) {
            (Some('s'), Some(Value::String(value))) => {
                evaluator.charge_text(value.len())?;
                output.push_str(value);
            }
            (Some('s' | 'd'), Some(Value::Int(value))) => output.push_str(&value.to_string()),
            (Some('s' | 'd'), Some(Value::Uint(value))) => output.push_str(&value.to_string()),
            (Some('s'), Some(Value::Bool(value))) => output.push_str(&value.to_string()),
            (Some('s'), Some(Value::Null)) => output.push_str("null"),
            _ => return Err(Stop::unknown("format() with anything but %s and %d of plain values")),
        }
    }
    Ok(Value::text(&output))
}
