//! What the server takes for an element of an `enum`: it converts a value to the type of the element first. A fraction is
//! cut to a whole number, and a whole number becomes the character of that code point.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

/// The values of an enum, with what the server takes for one of them.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// The values that can be told one by one. Null is none of them: the server never takes it for an element.
    pub(super) values: Rc<Vec<Value>>,
    /// Whole numbers: fractions that are cut to one of them are taken too.
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

/// Of a text of one character.
fn code_point(text: &str) -> Option<u32> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none()).map(u32::from)
}
