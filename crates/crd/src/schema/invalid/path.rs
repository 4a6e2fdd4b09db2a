//! Field paths as in `fieldPath` of a rule and in `selectableFields`: `.spec.size`, `.spec['a.b']`.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`ValidFieldPath`) and
//! `pkg/apis/apiextensions/validation` (`selectableFields`).

use serde_json::Value;

use super::{Collector, at, field, items, text};

/// Why a path cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldPath {
    Invalid(String),
    Unknown,
}

/// Maximum number of selectable fields of a version.
const MOST: usize = 8;

/// The next token of a path: a dot, a bracket, a quoted text, or everything up to the next dot or bracket.
fn token(rest: &str) -> (&str, &str) {
    let end = match rest.as_bytes() {
        [b'\'', ..] => {
            let bytes = rest.as_bytes();
            let quote = (1..bytes.len()).find(|index| bytes[*index] == b'\'' && bytes[index - 1] != b'\\');
            quote.map_or(rest.len(), |quote| quote + 1)
        }
        [b'.' | b'[' | b']', ..] => 1,
        _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
    };
    rest.split_at(end)
}

/// The node at a path, and the names in the path.
pub(super) fn resolve<'s>(
    schema: &'s Value,
    path: &str,
    allows_brackets: bool,
) -> Result<(Vec<String>, &'s Value), FieldPath> {
    let invalid = |why: &str| FieldPath::Invalid(why.to_owned());
    let (mut node, mut names, mut rest) = (schema, Vec::new(), path);
    while !rest.is_empty() {
        let (mark, behind) = token(rest);
        let (word, behind) = match mark {
            "." | "[" if behind.is_empty() => return Err(invalid("it ends too early")),
            "." => token(behind),
            "[" if !allows_brackets => return Err(invalid("brackets are not allowed")),
            "[" => {
                let (quoted, behind) = token(behind);
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let Some(inner) = inner else { return Err(invalid("a quoted name is expected in brackets")) };
                if inner.contains('\\') {
                    return Err(FieldPath::Unknown);
                }
                let Some(behind) = behind.strip_prefix(']') else { return Err(invalid("a bracket is not closed")) };
                (inner, behind)
            }
            _ => return Err(invalid("each name stands behind a dot or in brackets")),
        };
        let properties = at(node, "properties").as_object().filter(|properties| !properties.is_empty());
        let additional = field(node, "additionalProperties");
        node = match (properties, additional) {
            (Some(properties), _) => match properties.get(word) {
                Some(inner) => inner,
                None => return Err(invalid(&format!("there is no field {word:?}"))),
            },
            (None, Some(inner @ Value::Object(_))) => inner,
            // The server's own code does not expect that case.
            (None, Some(_)) => return Err(FieldPath::Unknown),
            (None, None) => return Err(invalid(&format!("there is no field {word:?}"))),
        };
        names.push(word.to_owned());
        rest = behind;
    }
    Ok((names, node))
}

/// Checks `selectableFields` of a version.
pub(super) fn selectable_fields(found: &mut Collector, version: &Value, schema: &Value) {
    let mut seen: Vec<Vec<String>> = Vec::new();
    found.below("selectableFields", |found| {
        for (index, selected) in items(version, "selectableFields") {
            found.below(index, |found| {
                let path = text(selected, "jsonPath");
                if path.is_empty() {
                    return found.at("jsonPath", "is required");
                }
                let (names, node) = match resolve(schema, path, false) {
                    Ok(resolved) => resolved,
                    Err(FieldPath::Invalid(why)) => {
                        return found.at("jsonPath", format!("must be a valid path: {why}"));
                    }
                    Err(FieldPath::Unknown) => {
                        return found.below("jsonPath", |found| {
                            found.perhaps("whether the path is valid is not known here".to_owned());
                        });
                    }
                };
                if names.first().is_some_and(|name| name == "metadata") {
                    found.at("jsonPath", "must not lead into metadata");
                }
                if !matches!(text(node, "type"), "string" | "boolean" | "integer") {
                    found.at("jsonPath", "must lead to a string, boolean or integer");
                }
                if seen.contains(&names) {
                    found.at("jsonPath", "must be unique");
                } else {
                    seen.push(names);
                }
            });
        }
        if seen.len() > MOST {
            found.here(format!("must be at most {MOST}"));
        }
    });
}
