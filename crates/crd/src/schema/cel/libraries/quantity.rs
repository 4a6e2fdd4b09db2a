//! Functions on quantities.
//!
//! Follows k8s.io/apiserver `pkg/cel/library/quantity.go`.

use std::cmp::Ordering;

use super::super::stop::Stop;
use super::super::value::quantity::{Integer, NANO, Quantity, Refusal, parse};
use super::super::value::{Outcome, Value};
use super::Call;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { function, is_member, arguments, .. } = *call;
    Some(match (function, arguments) {
        ("quantity" | "isQuantity", [Value::String(text)]) if !is_member => match (parse(text), function) {
            (Ok(quantity), "quantity") => Ok(Value::Quantity(quantity)),
            (Ok(_), _) => Ok(Value::Bool(true)),
            (Err(Refusal::Malformed), "quantity") => Err(Stop::error(format!("{text:?} is not a quantity"))),
            (Err(Refusal::Malformed), _) => Ok(Value::Bool(false)),
            (Err(Refusal::TooLarge), _) => Err(Stop::unknown(format!("the quantity {text:?}"))),
        },
        (_, [Value::Quantity(quantity)]) => match (function, quantity.integer) {
            ("sign", _) => Ok(Value::Int(i64::try_from(quantity.nanos.signum()).unwrap_or_default())),
            ("isInteger", Integer::Is(_)) => Ok(Value::Bool(true)),
            ("isInteger", Integer::IsNot) => Ok(Value::Bool(false)),
            ("asInteger", Integer::Is(value)) => Ok(Value::Int(value)),
            ("asInteger", Integer::IsNot) => Err(Stop::error("cannot convert value to integer")),
            #[expect(clippy::cast_precision_loss, reason = "as on the server")]
            ("asApproximateFloat", Integer::Is(value)) => Ok(Value::Double(value as f64)),
            ("isInteger" | "asInteger" | "asApproximateFloat", _) => {
                Err(Stop::unknown(format!("{function}() of a computed or fractional quantity")))
            }
            _ => return None,
        },
        (_, [Value::Quantity(left), right]) if is_member => {
            let right = match right {
                Value::Quantity(right) => right.nanos,
                Value::Int(number) if matches!(function, "add" | "sub") => i128::from(*number) * NANO,
                _ => return None,
            };
            let order = left.nanos.cmp(&right);
            match function {
                "isGreaterThan" => Ok(Value::Bool(order == Ordering::Greater)),
                "isLessThan" => Ok(Value::Bool(order == Ordering::Less)),
                "compareTo" => Ok(Value::Int(order as i64)),
                "add" => computed(left.nanos.checked_add(right)),
                "sub" => computed(left.nanos.checked_sub(right)),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn computed<'a>(nanos: Option<i128>) -> Outcome<'a> {
    match nanos {
        Some(nanos) => Ok(Value::Quantity(Quantity { nanos, integer: Integer::Unclear })),
        None => Err(Stop::unknown("a very large quantity")),
    }
}
