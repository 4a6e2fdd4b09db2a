//! Regular expressions: `matches`, `find` and `findAll`, in the grammar of the server.

use std::rc::Rc;

use super::super::evaluate::{Evaluator, Outcome, Stop};
use super::super::value::Value;
use crate::schema::pattern::{Budget, Pattern};

/// Steps of one search; the pattern's own count.
const SEARCH: u64 = 2_000_000;

pub(in super::super) fn call<'a>(
    evaluator: &Evaluator<'a>,
    function: &str,
    _member: bool,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    let [Value::String(text), Value::String(pattern), ..] = arguments else { return None };
    Some(match (function, &arguments[2..]) {
        ("matches", []) => matches(evaluator, text, pattern).map(Value::Bool),
        ("find", []) | ("findAll", [] | [Value::Int(_)]) => Err(Stop::unknown(format!("function {function}()"))),
        _ => return None,
    })
}

fn matches(evaluator: &Evaluator<'_>, text: &str, pattern: &str) -> Result<bool, Stop> {
    let pattern = prepare(evaluator, text, pattern)?;
    pattern.is_match_within(text, &mut Budget::new(SEARCH)).ok_or(Stop::Budget)
}

/// The pattern, when the search costs no more than the server grants.
fn prepare(evaluator: &Evaluator<'_>, text: &str, pattern: &str) -> Result<Rc<Pattern>, Stop> {
    evaluator.charge((text.len() / 10 + 1).saturating_mul(pattern.len() / 4 + 1))?;
    evaluator.pattern(pattern)
}
