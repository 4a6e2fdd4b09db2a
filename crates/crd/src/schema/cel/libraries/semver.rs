//! Functions on semantic versions.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/semverlib.go`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::stop::Stop;
use super::super::value::semver::Semver;
use super::super::value::{Outcome, Value};
use super::Call;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { function, is_member, arguments, .. } = *call;
    let part = |number: u64| i64::try_from(number).map(Value::Int).map_err(|_| Stop::unknown("a very large version"));
    Some(match (function, arguments) {
        ("semver" | "isSemver", [Value::String(text), lenient @ ..]) if !is_member => {
            let version = match lenient {
                [] | [Value::Bool(false)] => Semver::parse(text),
                [Value::Bool(true)] => Semver::parse_leniently(text),
                _ => return None,
            };
            match (function, version) {
                ("isSemver", version) => Ok(Value::Bool(version.is_some())),
                (_, Some(version)) => Ok(Value::Semver(Rc::new(version))),
                (_, None) => Err(Stop::error(format!("{text:?} is not a version"))),
            }
        }
        ("isGreaterThan", [Value::Semver(left), Value::Semver(right)]) => {
            Ok(Value::Bool(left.compare(right) == Ordering::Greater))
        }
        ("isLessThan", [Value::Semver(left), Value::Semver(right)]) => {
            Ok(Value::Bool(left.compare(right) == Ordering::Less))
        }
        ("compareTo", [Value::Semver(left), Value::Semver(right)]) => Ok(Value::Int(left.compare(right) as i64)),
        ("major", [Value::Semver(version)]) => part(version.numbers[0]),
        ("minor", [Value::Semver(version)]) => part(version.numbers[1]),
        ("patch", [Value::Semver(version)]) => part(version.numbers[2]),
        _ => return None,
    })
}
