//! Which values the server accepts as an element of an `enum`: it first converts a value to the type of the element. A
//! fraction is truncated, and an integer becomes the character with that code point.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

/// The values of an enum, including those that the server converts to one of them.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// The values that can be listed. Null is not among them: the server never accepts it as an element.
    pub(super) values: Rc<Vec<Value>>,
    /// Integers: fractions that truncate to one of them are accepted too.
    pub(super) whole: Rc<BTreeSet<i64>>,
}

impl Listed {
    pub(super) fn of(values: &[Value]) -> Self {
        let written = || values.iter().filter(|value| !value.is_null());
        let whole = written().filter_map(Value::as_i64).collect();
        let characters = written().filter_map(Value::as_str).filter_map(code_point).map(Value::from);
        Self { values: Rc::new(written().cloned().chain(characters).collect()), whole: Rc::new(whole) }
    }
}

/// The code point of a string of one character.
fn code_point(text: &str) -> Option<u32> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none()).map(u32::from)
}
