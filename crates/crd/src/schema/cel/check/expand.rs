//! A rule as the API server's checker sees it: macros are loops and operators are calls. Types and sizes are stored by
//! node number.
//!
//! Follows cel-go `parser/macro.go` and `ext/comprehensions.go`.

use super::super::syntax::{Expression, Node};

/// Number of a node.
pub(super) type Id = usize;

/// Name of the variable that accumulates the result of a loop.
const RESULT: &str = "@result";

/// An expanded node.
#[derive(Clone, Debug)]
pub(super) enum Term {
    Literal(Literal),
    Name(String),
    Select { operand: Id, field: String, is_test: bool },
    Call { function: String, target: Option<Id>, arguments: Vec<Id> },
    List(Vec<(bool, Id)>),
    Map(Vec<(bool, Id, Id)>),
    Loop(Loop),
}

/// A loop, such as `range.all(x, body)`.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) range: Id,
    pub(super) variables: Vec<String>,
    pub(super) result_name: String,
    pub(super) first: Id,
    pub(super) condition: Id,
    pub(super) step: Id,
    pub(super) result: Id,
    /// Whether it only binds a value and is not a loop.
    pub(super) is_binding: bool,
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool,
    Int(i64),
    Uint,
    Double,
    String(String),
    Bytes(usize),
}

/// All nodes of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    all: Vec<Term>,
}

/// A macro that is not expanded here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unexpanded(pub(super) String);

impl Terms {
    pub(super) fn get(&self, id: Id) -> &Term {
        &self.all[id]
    }

    /// The child nodes.
    pub(super) fn below(&self, id: Id) -> Vec<Id> {
        match self.get(id) {
            Term::Literal(_) | Term::Name(_) => Vec::new(),
            Term::Select { operand, .. } => vec![*operand],
            Term::Call { target, arguments, .. } => target.iter().chain(arguments).copied().collect(),
            Term::List(items) => items.iter().map(|(_, item)| *item).collect(),
            Term::Map(entries) => entries.iter().flat_map(|(_, key, value)| [*key, *value]).collect(),
            Term::Loop(inner) => vec![inner.range, inner.first, inner.condition, inner.step, inner.result],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    fn add(&mut self, term: Term) -> Id {
        self.all.push(term);
        self.all.len() - 1
    }

    fn call(&mut self, function: &str, arguments: Vec<Id>) -> Id {
        self.add(Term::Call { function: function.to_owned(), target: None, arguments })
    }

    fn name(&mut self, name: &str) -> Id {
        self.add(Term::Name(name.to_owned()))
    }

    fn literal(&mut self, literal: Literal) -> Id {
        self.add(Term::Literal(literal))
    }

    /// Adds the expanded tree of a node.
    pub(super) fn expand(&mut self, node: &Node) -> Result<Id, Unexpanded> {
        let term = match &node.expression {
            Expression::Null => Term::Literal(Literal::Null),
            Expression::Bool(_) => Term::Literal(Literal::Bool),
            Expression::Int(value) => Term::Literal(Literal::Int(*value)),
            Expression::Uint(_) => Term::Literal(Literal::Uint),
            Expression::Double(_) => Term::Literal(Literal::Double),
            Expression::String(text) => Term::Literal(Literal::String(text.clone())),
            Expression::Bytes(bytes) => Term::Literal(Literal::Bytes(bytes.len())),
            Expression::Name(name) => Term::Name(name.clone()),
            Expression::Select { operand, field, optional: false } => {
                Term::Select { operand: self.expand(operand)?, field: field.clone(), is_test: false }
            }
            Expression::Select { operand, field, optional: true } => {
                let arguments = vec![self.expand(operand)?, self.literal(Literal::String(field.clone()))];
                Term::Call { function: "_?._".to_owned(), target: None, arguments }
            }
            Expression::Has { operand, field } => {
                Term::Select { operand: self.expand(operand)?, field: field.clone(), is_test: true }
            }
            Expression::Index { operand, index, optional } => {
                let function = if *optional { "_[?_]" } else { "_[_]" };
                let arguments = vec![self.expand(operand)?, self.expand(index)?];
                Term::Call { function: function.to_owned(), target: None, arguments }
            }
            Expression::Call { function, target, arguments } => {
                let target = target.as_deref().map(|target| self.expand(target)).transpose()?;
                Term::Call { function: function.clone(), target, arguments: self.expand_all(arguments)? }
            }
            Expression::Unary { operator, operand } => {
                Term::Call { function: format!("{operator}_"), target: None, arguments: vec![self.expand(operand)?] }
            }
            Expression::Binary { operator, left, right } => {
                let function = if *operator == "in" { "@in".to_owned() } else { format!("_{operator}_") };
                Term::Call { function, target: None, arguments: vec![self.expand(left)?, self.expand(right)?] }
            }
            Expression::And(operands) => {
                Term::Call { function: "_&&_".to_owned(), target: None, arguments: self.expand_all(operands)? }
            }
            Expression::Or(operands) => {
                Term::Call { function: "_||_".to_owned(), target: None, arguments: self.expand_all(operands)? }
            }
            Expression::Conditional { condition, then, otherwise } => {
                let arguments = vec![self.expand(condition)?, self.expand(then)?, self.expand(otherwise)?];
                Term::Call { function: "_?_:_".to_owned(), target: None, arguments }
            }
            Expression::List(items) => Term::List(
                items.iter().map(|(optional, item)| Ok((*optional, self.expand(item)?))).collect::<Result<_, _>>()?,
            ),
            Expression::Map(entries) => Term::Map(
                entries
                    .iter()
                    .map(|(optional, key, value)| Ok((*optional, self.expand(key)?, self.expand(value)?)))
                    .collect::<Result<_, _>>()?,
            ),
            Expression::Macro { function, range, variables, bodies } => {
                return self.expand_macro(function, range, variables, bodies);
            }
        };
        Ok(self.add(term))
    }

    fn expand_all(&mut self, nodes: &[Node]) -> Result<Vec<Id>, Unexpanded> {
        nodes.iter().map(|node| self.expand(node)).collect()
    }

    fn expand_macro(
        &mut self,
        function: &str,
        range: &Node,
        variables: &[String],
        bodies: &[Node],
    ) -> Result<Id, Unexpanded> {
        if matches!(function, "optMap" | "optFlatMap") {
            return self.expand_optional(function, range, variables, bodies);
        }
        let range_id = self.expand(range)?;
        let body = |terms: &mut Self, index: usize| match bodies.get(index) {
            Some(body) => terms.expand(body),
            None => Err(Unexpanded(function.to_owned())),
        };
        let (first, condition, step, result) = match function {
            "all" | "exists" => {
                let operator = if function == "all" { "_&&_" } else { "_||_" };
                let first = self.literal(Literal::Bool);
                let mut gathered = self.name(RESULT);
                if function == "exists" {
                    gathered = self.call("!_", vec![gathered]);
                }
                let condition = self.call("@not_strictly_false", vec![gathered]);
                let arguments = vec![self.name(RESULT), body(self, 0)?];
                (first, condition, self.call(operator, arguments), self.name(RESULT))
            }
            "exists_one" => {
                let (first, condition) = (self.literal(Literal::Int(0)), self.literal(Literal::Bool));
                let found = body(self, 0)?;
                let arguments = vec![self.name(RESULT), self.literal(Literal::Int(1))];
                let more = self.call("_+_", arguments);
                let same = self.name(RESULT);
                let step = self.call("_?_:_", vec![found, more, same]);
                let arguments = vec![self.name(RESULT), self.literal(Literal::Int(1))];
                (first, condition, step, self.call("_==_", arguments))
            }
            "map" | "filter" | "transformList" => {
                let (first, condition) = (self.add(Term::List(Vec::new())), self.literal(Literal::Bool));
                let is_filtered = function == "filter" || bodies.len() == 2;
                let filter = if is_filtered { Some(body(self, 0)?) } else { None };
                let item = match (function, variables) {
                    ("filter", [variable, ..]) => self.name(variable),
                    _ => body(self, usize::from(is_filtered))?,
                };
                let gathered = self.name(RESULT);
                let added = self.add(Term::List(vec![(false, item)]));
                let mut step = self.call("_+_", vec![gathered, added]);
                if let Some(filter) = filter {
                    let same = self.name(RESULT);
                    step = self.call("_?_:_", vec![filter, step, same]);
                }
                (first, condition, step, self.name(RESULT))
            }
            other => return Err(Unexpanded(other.to_owned())),
        };
        Ok(self.add(Term::Loop(Loop {
            range: range_id,
            variables: variables.to_vec(),
            result_name: RESULT.to_owned(),
            first,
            condition,
            step,
            result,
            is_binding: false,
        })))
    }

    /// `target.hasValue() ? optional.of(BODY, with the value bound) : optional.none()`.
    fn expand_optional(
        &mut self,
        function: &str,
        target: &Node,
        variables: &[String],
        bodies: &[Node],
    ) -> Result<Id, Unexpanded> {
        let ([variable], [body]) = (variables, bodies) else { return Err(Unexpanded(function.to_owned())) };
        let asked = |terms: &mut Self, function: &str| {
            let target = terms.expand(target)?;
            Ok(terms.add(Term::Call { function: function.to_owned(), target: Some(target), arguments: Vec::new() }))
        };
        let has_value = asked(self, "hasValue")?;
        let range = self.add(Term::List(Vec::new()));
        let first = asked(self, "value")?;
        let condition = self.literal(Literal::Bool);
        let step = self.name(variable);
        let result = self.expand(body)?;
        let mut value = self.add(Term::Loop(Loop {
            range,
            variables: vec!["#unused".to_owned()],
            result_name: variable.clone(),
            first,
            condition,
            step,
            result,
            is_binding: true,
        }));
        if function == "optMap" {
            value = self.call("optional.of", vec![value]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call("_?_:_", vec![has_value, value, none]))
    }
}
