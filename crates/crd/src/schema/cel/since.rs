//! Functions, macros and operators of CEL that are newer than a Kubernetes release.

use super::parser::parse;
use super::syntax::{Expression, Node};
use crate::schema::releases::{OPTIONAL, TWO_VARIABLES, of_function};

/// Returns the functions, macros and operators of an expression that are newer than a minor release, each once with the
/// release that introduced it. Empty if the expression cannot be parsed.
pub(in crate::schema) fn newer_than(minor: u32, expression: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    if let Ok(node) = parse(expression) {
        collect(&node, minor, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn collect(node: &Node, minor: u32, found: &mut Vec<(String, u32)>) {
    let mut note = |name: &str| {
        if let Some(since) = of_function(name).filter(|since| *since > minor) {
            found.push((name.to_owned(), since));
        }
    };
    match &node.expression {
        Expression::Call { function, target, .. } => match target.as_deref().map(|target| &target.expression) {
            Some(Expression::Name(library)) if of_function(&format!("{library}.{function}")).is_some() => {
                note(&format!("{library}.{function}"));
            }
            _ => note(function),
        },
        Expression::Macro { function, variables, .. } => {
            if variables.len() > 1 {
                note(TWO_VARIABLES);
            }
            note(function);
        }
        Expression::Select { optional: true, .. } | Expression::Index { optional: true, .. } => note(OPTIONAL),
        _ => {}
    }
    node.expression.for_each_child(|child| collect(child, minor, found));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_parts_of_an_expression_are_named_once() {
        let names = |minor: u32, expression: &str| {
            let found = newer_than(minor, expression);
            found.into_iter().map(|(name, since)| format!("{name} {since}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names(33, "isSemver(self.a) && isSemver(self.b)"), "isSemver 34");
        assert_eq!(names(34, "isSemver(self.a)"), "");
        assert_eq!(
            names(29, "sets.contains(self.a, ['b']) && self.c.format(['d']) == ''"),
            "format 30, sets.contains 30"
        );
        assert_eq!(names(31, "!format.dns1123Label().validate(self.a).hasValue()"), "format.dns1123Label 32");
        assert_eq!(names(32, "self.a.all(i, v, i > 0)"), "macros with two variables 33");
        assert_eq!(
            names(28, "self.?a.orValue('') == '' || quantity(self.b).isInteger()"),
            "optional selection 29, quantity 29"
        );
        assert_eq!(names(34, "self.a.map(x, x.b).distinct().size() == 1"), "distinct 35");
        assert_eq!(names(25, "self.a.matches('x') && self.b.exists(x, x == 1)"), "");
    }
}
