//! Values that tell whether a rule holds which computes with a function: an upper-case letter for `lowerAscii`, a list that
//! is not sorted, quantities and durations of every size.

use std::rc::Rc;

use serde_json::{Value, json};

use super::formula::Formula;
use super::probe::{lifted, node_at};
use crate::schema::cel::Program;
use crate::schema::model::{CelRule, Schema, Type};

/// Functions with texts that most rules about them reject.
const TEXTS: [(&str, &[&str]); 9] = [
    ("lowerAscii", &["A", "Aa"]),
    ("upperAscii", &["a", "aA"]),
    ("trim", &[" a", "a "]),
    (
        "quantity",
        &[
            "0",
            "1",
            "1000",
            "1000000000000",
            "1m",
            "999m",
            "1Ki",
            "1Mi",
            "1024Mi",
            "2048Mi",
            "9999Mi",
            "1Gi",
            "1025Gi",
            "9Ti",
            "1Ei",
            "-1",
            "x",
        ],
    ),
    ("duration", &["0s", "1ms", "1s", "61s", "2h", "9999h", "-1s", "x"]),
    ("semver", &["0.0.1", "1.0.0", "99.0.0", "1.0.0-a", "x"]),
    ("ip", &["10.0.0.1", "127.0.0.1", "::1", "x"]),
    ("cidr", &["10.0.0.0/8", "::/0", "x"]),
    ("url", &["http://a", "https://a:8443/b?c=d", "/a", "x"]),
];

/// Functions of lists, with lists that most rules about them reject.
const LISTS: [(&str, [[i64; 2]; 2]); 5] = [
    ("isSorted", [[2, 1], [1, 2]]),
    ("sort", [[2, 1], [1, 2]]),
    ("distinct", [[1, 1], [1, 2]]),
    ("sum", [[1000, 1000], [-9, -9]]),
    ("slice", [[2, 1], [1, 2]]),
];

/// Formulas of objects with such values at the paths that a rule reads.
pub(super) fn telling_values<'s>(rule: &CelRule, node: &'s Schema) -> Vec<Formula<'s>> {
    let Ok(program) = Program::shared(rule) else { return Vec::new() };
    let uses = |function: &str| rule.rule.contains(&format!("{function}("));
    let texts: Vec<Value> = TEXTS
        .iter()
        .filter(|(function, _)| uses(function))
        .flat_map(|(_, texts)| *texts)
        .map(|text| json!(text))
        .collect();
    let lists: Vec<[i64; 2]> =
        LISTS.iter().filter(|(function, _)| uses(function)).flat_map(|(_, lists)| *lists).collect();
    if texts.is_empty() && lists.is_empty() {
        return Vec::new();
    }
    let text = |number: i64| if number == 1 { "a" } else { "b" };
    let mut found = Vec::new();
    for path in program.hints().paths.into_keys() {
        let Some(target) = node_at(node, &path) else { continue };
        let items = target.items.as_deref().and_then(|items| items.kind);
        let values: Vec<Value> = match (target.kind, items) {
            (Some(Type::String), _) => texts.clone(),
            (None, _) if target.int_or_string => texts.clone(),
            (Some(Type::Array), Some(Type::Integer | Type::Number)) => lists.iter().map(|list| json!(list)).collect(),
            (Some(Type::Array), Some(Type::String)) => {
                lists.iter().map(|list| json!(list.map(text))).chain(texts.iter().map(|text| json!([text]))).collect()
            }
            _ => continue,
        };
        found.extend(values.into_iter().map(|value| lifted(&path, node, Formula::Is(Rc::new(vec![value])))));
    }
    found
}
