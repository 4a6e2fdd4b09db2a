//! Regular expressions: `matches`, `find` and `findAll`.

use super::super::evaluate::{Evaluator, Outcome, Stop};
use super::super::value::Value;

pub(in super::super) fn call<'a>(
    _evaluator: &Evaluator<'a>,
    function: &str,
    _member: bool,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    match (function, arguments) {
        ("matches" | "find" | "findAll", [Value::String(_), Value::String(_), ..]) => {
            Some(Err(Stop::unknown(format!("function {function}()"))))
        }
        _ => None,
    }
}
