//! Rules that say what the server sees to in a set or a map list anyway: `l.all(x, l.exists_one(y, y == x))`.

use super::names::FieldPath;
use super::names::unescape;
use super::syntax::{Expression, Node};

/// A rule that is true if the items of a list differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinct {
    /// The list, below the value that has the rule.
    pub list: FieldPath,
    /// The field by which items differ; `None`: as a whole.
    pub key: Option<String>,
    /// Whether the rule is also true where the list is absent.
    pub guarded: bool,
}

/// What the rule says, if it is only that.
pub(super) fn distinct(node: &Node) -> Option<Distinct> {
    let parts = match &node.expression {
        Expression::Or(parts) => parts.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut found = parts.iter().find_map(unguarded)?;
    // Anything else beside it can only make the rule true more often, or fail: only a guard is known not to.
    let is_guard = |part: &Node| absent(part).is_some_and(|path| path == found.list);
    match parts {
        [_] => {}
        [one, other] if is_guard(one) || is_guard(other) => found.guarded = true,
        _ => return None,
    }
    Some(found)
}

/// `list.all(x, list.exists_one(y, y == x))`
fn unguarded(node: &Node) -> Option<Distinct> {
    let (list, one, body) = iterated(node, "all")?;
    let (again, other, same) = iterated(body, "exists_one")?;
    let list = path(list)?;
    let Expression::Binary { operator: "==", left, right } = &same.expression else { return None };
    let [left, right] = [item(left)?, item(right)?];
    let of_both = [left.0, right.0] == [one, other] || [left.0, right.0] == [other, one];
    let is_it =
        of_both && one != other && path(again)? == list && left.1 == right.1 && one != "self" && other != "self";
    is_it.then_some(Distinct { list, key: left.1, guarded: false })
}

/// Range, variable and body of a macro with one variable.
fn iterated<'n>(node: &'n Node, name: &str) -> Option<(&'n Node, &'n str, &'n Node)> {
    let Expression::Macro { function, range, variables, bodies } = &node.expression else { return None };
    match (variables.as_slice(), bodies.as_slice()) {
        ([variable], [body]) if *function == name => Some((range, variable, body)),
        _ => None,
    }
}

/// `x`, or `x.key`
fn item(node: &Node) -> Option<(&str, Option<String>)> {
    match &node.expression {
        Expression::Name(name) => Some((name, None)),
        Expression::Select { operand, field, optional: false } => match &operand.expression {
            Expression::Name(name) => Some((name, Some(unescape(field)?))),
            _ => None,
        },
        _ => None,
    }
}

/// The path of `!has(path)`.
fn absent(node: &Node) -> Option<FieldPath> {
    let Expression::Unary { operator: "!", operand } = &node.expression else { return None };
    let Expression::Has { operand, field } = &operand.expression else { return None };
    let mut found = path(operand)?;
    found.push(unescape(field)?);
    Some(found)
}

fn path(node: &Node) -> Option<FieldPath> {
    match &node.expression {
        Expression::Name(name) if name == "self" => Some(Vec::new()),
        Expression::Select { operand, field, optional: false } => {
            let mut found = path(operand)?;
            found.push(unescape(field)?);
            Some(found)
        }
        _ => None,
    }
}
