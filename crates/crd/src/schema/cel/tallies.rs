//! Counts over a list of conditions that is written out: `[has(self.a), has(self.b)].filter(x, x == true).size() == 1`, the
//! union markers of controller-gen. Such a count is a combination of the conditions.

use super::syntax::{Expression, Node};

/// Maximum number of combinations of conditions.
const COMBINATIONS: usize = 256;

/// Returns the conditions of a list whose items cannot fail: tests for fields of a name.
pub(super) fn conditions(range: &Node) -> Option<Vec<&Node>> {
    let Expression::List(items) = &range.expression else { return None };
    let is_sure = |node: &Node| match &node.expression {
        Expression::Has { operand, .. } => matches!(operand.expression, Expression::Name(_)),
        _ => false,
    };
    items.iter().map(|(optional, item)| (!optional && is_sure(item)).then_some(item)).collect()
}

/// Returns true if a body counts the conditions that are true, false if it counts those that are false; `None` for other
/// bodies.
pub(super) fn counts_true(variable: &str, body: &Node) -> Option<bool> {
    let is_variable = |node: &Node| matches!(&node.expression, Expression::Name(name) if name == variable);
    match &body.expression {
        Expression::Name(name) => (name == variable).then_some(true),
        Expression::Unary { operator: "!", operand } => is_variable(operand).then_some(false),
        Expression::Binary { operator: "==", left, right } => match (&left.expression, &right.expression) {
            (Expression::Bool(value), _) => is_variable(right).then_some(*value),
            (_, Expression::Bool(value)) => is_variable(left).then_some(*value),
            _ => None,
        },
        _ => None,
    }
}

/// Returns all sets of this many of the first `length` numbers; `None` if there are too many. Of a negative number there
/// is one, the empty set.
pub(super) fn subsets(length: usize, count: i64) -> Option<Vec<Vec<usize>>> {
    let count = usize::try_from(count).unwrap_or_default();
    let mut chosen: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..count.min(length.saturating_add(1)) {
        let next = |one: Vec<usize>| {
            let first = one.last().map_or(0, |last| last + 1);
            (first..length).map(move |index| [one.as_slice(), &[index]].concat())
        };
        chosen = chosen.into_iter().flat_map(next).take(COMBINATIONS + 1).collect();
        if chosen.len() > COMBINATIONS {
            return None;
        }
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_have_as_many_members_as_asked_for() {
        assert_eq!(subsets(3, 2), Some(vec![vec![0, 1], vec![0, 2], vec![1, 2]]));
        assert_eq!(subsets(3, 0), Some(vec![vec![]]));
        assert_eq!(subsets(3, -1), Some(vec![vec![]]));
        assert_eq!(subsets(3, 4), Some(Vec::new()));
        assert_eq!(subsets(0, i64::MAX), Some(Vec::new()));
        assert_eq!(subsets(40, 20), None);
    }
}
