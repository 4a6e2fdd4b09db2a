//! Regular expressions: `matches`, `find` and `findAll`, with the server's grammar.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/regex.go`.

use std::rc::Rc;

use super::super::evaluator::Evaluator;
use super::super::stop::Stop;
use super::super::value::{Outcome, Value};
use super::Call;
use crate::schema::pattern::{Budget, NotFound, Pattern};

/// Maximum number of steps of one search, as the pattern counts them.
const SEARCH: u64 = 2_000_000;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { evaluator, function, arguments, .. } = *call;
    let [Value::String(text), Value::String(pattern), ..] = arguments else { return None };
    Some(match (function, &arguments[2..]) {
        ("matches", []) => matches(evaluator, text, pattern).map(Value::Bool),
        ("find", []) => all(evaluator, text, pattern, 1).map(|mut found| found.pop().unwrap_or(Value::text(""))),
        ("findAll", []) => all(evaluator, text, pattern, -1).map(Value::list),
        ("findAll", [Value::Int(most)]) => all(evaluator, text, pattern, *most).map(Value::list),
        _ => return None,
    })
}

fn matches(evaluator: &Evaluator<'_>, text: &str, pattern: &str) -> Result<bool, Stop> {
    let pattern = prepare(evaluator, text, pattern)?;
    pattern.is_match_within(text, &mut Budget::new(SEARCH)).ok_or(Stop::Budget)
}

/// Parses the pattern, if the search stays within the server's cost limit.
fn prepare(evaluator: &Evaluator<'_>, text: &str, pattern: &str) -> Result<Rc<Pattern>, Stop> {
    evaluator.charge((text.len() / 10 + 1).saturating_mul(pattern.len() / 4 + 1))?;
    evaluator.pattern(pattern)
}

/// The first `most` matches, or all; an empty match right after another does not count.
fn all<'a>(evaluator: &Evaluator<'a>, text: &str, pattern: &str, most: i64) -> Result<Vec<Value<'a>>, Stop> {
    let pattern = prepare(evaluator, text, pattern)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut budget = Budget::new(SEARCH);
    let (mut found, mut from, mut behind) = (Vec::new(), 0, None);
    while found.len() < most && from <= text.len() {
        let next = pattern.find_within(text, from, &mut budget).map_err(|reason| match reason {
            NotFound::Budget => Stop::Budget,
            NotFound::Unsupported => Stop::unknown(format!("where the pattern {:?} matches", pattern.as_str())),
        })?;
        let Some((start, end)) = next else { break };
        if start < end || behind != Some(start) {
            evaluator.charge_text(end - start)?;
            found.push(Value::text(text.get(start..end).unwrap_or_default()));
        }
        behind = Some(end);
        let step = text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        from = if start < end { end } else { end + step };
    }
    Ok(found)
}
