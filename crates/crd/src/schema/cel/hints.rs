//! What a rule reads: paths below `self`, and the literals and sizes they are compared with, for the search for objects
//! that violate it.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::names::unescape;
use super::syntax::{Expression, Node};

/// One step of a path below `self`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field, by its name in the object.
    Field(String),
    /// Any item of a list, or any value of a map.
    Item,
}

/// What a rule does with one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hint {
    /// Values that it is compared with or tested to be in; substrings that are sought in it.
    pub literals: Vec<Json>,
    /// Sizes that its size is compared with.
    pub sizes: Vec<i64>,
    /// Whether the rule tests its presence.
    pub presence: bool,
    /// Whether the rule reads the value.
    pub read: bool,
    /// Whether the rule uses the value as a whole, to compare it or pass it on, not only a part of it or its size.
    pub whole: bool,
}

/// What a rule reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// The hints by path below `self`; the empty path is `self`.
    pub paths: BTreeMap<Vec<Step>, Hint>,
    /// Literals that are compared with something without a path.
    pub literals: Vec<Json>,
}

/// Variables in scope with the paths that they stand for.
type Names<'n> = Vec<(&'n str, Option<Vec<Step>>)>;

pub(super) fn collect(node: &Node) -> Hints {
    let mut hints = Hints::default();
    walk(node, true, &mut vec![("self", Some(Vec::new())), ("oldSelf", Some(Vec::new()))], &mut hints);
    hints
}

/// What an expression reads of a variable.
pub(super) fn collect_of(node: &Node, variable: &str) -> Hints {
    let mut hints = Hints::default();
    walk(node, true, &mut vec![(variable, Some(Vec::new()))], &mut hints);
    hints
}

/// Returns the numbers and strings of an expression.
pub(super) fn constants(node: &Node) -> Vec<Json> {
    let mut found = Vec::new();
    collect_constants(node, &mut found);
    found
}

fn collect_constants(node: &Node, found: &mut Vec<Json>) {
    let constant = match &node.expression {
        Expression::Int(value) => Some(Json::from(*value)),
        Expression::Uint(value) => Some(Json::from(*value)),
        Expression::Double(value) => Some(Json::from(*value)),
        Expression::String(value) => Some(Json::from(value.as_str())),
        _ => None,
    };
    if let Some(constant) = constant.filter(|constant| !found.contains(constant)) {
        found.push(constant);
    }
    node.expression.for_each_child(|child| collect_constants(child, found));
}

/// Collects hints; `whole` tells that the value itself is used.
fn walk<'n>(node: &'n Node, whole: bool, names: &mut Names<'n>, hints: &mut Hints) {
    if let Some(path) = path_of(node, names) {
        let hint = hints.paths.entry(path).or_default();
        hint.read = true;
        hint.whole |= whole;
    }
    match &node.expression {
        Expression::Has { operand, field } => {
            if let Some(path) = path_of(operand, names) {
                hints.paths.entry(with_field(path, field)).or_default().presence = true;
            }
        }
        Expression::Binary { operator: "in", left, right } => {
            if let Expression::List(items) = &right.expression {
                for (_, item) in items {
                    compared(left, item, names, hints);
                }
            }
            contained(left, right, names, hints);
            compared(right, left, names, hints);
        }
        Expression::Binary { left, right, .. } => {
            compared(left, right, names, hints);
            compared(right, left, names, hints);
        }
        Expression::Call { target: Some(target), arguments, .. } => {
            for argument in arguments {
                compared(target, argument, names, hints);
            }
        }
        Expression::Macro { function, range, variables, bodies } => {
            walk(range, false, names, hints);
            let outside = names.len();
            let below = path_of(range, names).map(|path| {
                let step = if *function == "optMap" || *function == "optFlatMap" { None } else { Some(Step::Item) };
                path.into_iter().chain(step).collect::<Vec<_>>()
            });
            names.extend(variables.iter().map(|variable| (variable.as_str(), below.clone())));
            for body in bodies {
                walk(body, true, names, hints);
            }
            names.truncate(outside);
            return;
        }
        _ => {}
    }
    let parted = parted(node);
    node.expression.for_each_child(|child| {
        let whole = !parted.is_some_and(|parted| std::ptr::eq(parted, child));
        walk(child, whole, names, hints);
    });
}

/// The operand of an expression that uses only a field, an item or the size of it.
fn parted(node: &Node) -> Option<&Node> {
    match &node.expression {
        Expression::Select { operand, .. } | Expression::Index { operand, .. } | Expression::Has { operand, .. } => {
            Some(operand)
        }
        _ => measured(node),
    }
}

/// Notes a literal that is sought in a list or among the keys of a map.
fn contained(literal: &Node, range: &Node, names: &Names<'_>, hints: &mut Hints) {
    let (Some(literal), Some(path)) = (literal_of(literal), path_of(range, names)) else { return };
    if let Some(key) = literal.as_str() {
        let key = Step::Field(key.to_owned());
        hints.paths.entry(path.iter().cloned().chain([key]).collect()).or_default().presence = true;
    }
    let items = &mut hints.paths.entry(path.into_iter().chain([Step::Item]).collect()).or_default().literals;
    if !items.contains(&literal) {
        items.push(literal);
    }
}

/// Notes a literal on one side under the path on the other.
fn compared(subject: &Node, other: &Node, names: &Names<'_>, hints: &mut Hints) {
    let Some(literal) = literal_of(other) else { return };
    if let Some(measured) = measured(subject)
        && let Some(path) = path_of(measured, names)
    {
        let hint = hints.paths.entry(path).or_default();
        if let Some(size) = literal.as_i64()
            && !hint.sizes.contains(&size)
        {
            hint.sizes.push(size);
        }
        return;
    }
    let literals = match path_of(subject, names) {
        Some(path) => &mut hints.paths.entry(path).or_default().literals,
        None => &mut hints.literals,
    };
    if !literals.contains(&literal) {
        literals.push(literal);
    }
}

/// The operand of `size()`.
fn measured(node: &Node) -> Option<&Node> {
    match &node.expression {
        Expression::Call { function, target: Some(target), arguments }
            if function == "size" && arguments.is_empty() =>
        {
            Some(target)
        }
        Expression::Call { function, target: None, arguments } if function == "size" => arguments.first(),
        _ => None,
    }
}

fn with_field(mut path: Vec<Step>, field: &str) -> Vec<Step> {
    path.push(Step::Field(unescape(field).unwrap_or_else(|| field.to_owned())));
    path
}

/// The path that an expression reads.
fn path_of(node: &Node, names: &Names<'_>) -> Option<Vec<Step>> {
    match &node.expression {
        Expression::Name(name) => names.iter().rev().find(|(bound, _)| bound == name)?.1.clone(),
        Expression::Select { operand, field, .. } => Some(with_field(path_of(operand, names)?, field)),
        Expression::Index { operand, index, .. } => {
            let path = path_of(operand, names)?;
            Some(match &index.expression {
                Expression::String(key) => path.into_iter().chain([Step::Field(key.clone())]).collect(),
                _ => path.into_iter().chain([Step::Item]).collect(),
            })
        }
        Expression::Macro { function: "filter", range, .. } => path_of(range, names),
        Expression::Call { function, target: None, arguments } => match (function.as_str(), arguments.as_slice()) {
            ("dyn" | "string" | "int" | "double" | "quantity" | "duration" | "url" | "ip" | "cidr", [only]) => {
                path_of(only, names)
            }
            _ => None,
        },
        Expression::Call { function, target: Some(target), .. } => match function.as_str() {
            "orValue" | "value" | "lowerAscii" | "upperAscii" | "trim" => path_of(target, names),
            _ => None,
        },
        _ => None,
    }
}

fn literal_of(node: &Node) -> Option<Json> {
    Some(match &node.expression {
        Expression::Null => Json::Null,
        Expression::Bool(value) => Json::from(*value),
        Expression::Int(value) => Json::from(*value),
        Expression::Uint(value) => Json::from(*value),
        Expression::Double(value) => Json::from(*value),
        Expression::String(value) => Json::from(value.as_str()),
        Expression::List(items) => Json::Array(items.iter().map(|(_, item)| literal_of(item)).collect::<Option<_>>()?),
        Expression::Call { target: None, arguments, .. } => literal_of(arguments.first()?)?,
        _ => return None,
    })
}
