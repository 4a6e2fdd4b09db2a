//! Sums, differences and products of integer fields and sizes, for proofs by the bounds of the fields.

use super::names::FieldPath;
use super::syntax::{Expression, Node};

/// An integer that a rule computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Arithmetic {
    /// A literal.
    Number(i64),
    /// The value of a field.
    Field(FieldPath),
    /// The size of a field.
    Size(FieldPath),
    /// `-x`
    Negative(Box<Arithmetic>),
    /// `x + y`
    Sum(Box<[Arithmetic; 2]>),
    /// `x - y`
    Difference(Box<[Arithmetic; 2]>),
    /// `x * y`
    Product(Box<[Arithmetic; 2]>),
}

impl Arithmetic {
    /// Reads an expression; `None` if it has other parts. `path` returns the path of a field.
    pub(super) fn read(node: &Node, path: &dyn Fn(&Node) -> Option<FieldPath>) -> Option<Self> {
        let read = |node: &Node| Self::read(node, path);
        match &node.expression {
            Expression::Int(number) => Some(Self::Number(*number)),
            Expression::Unary { operator: "-", operand } => Some(Self::Negative(Box::new(read(operand)?))),
            Expression::Binary { operator, left, right } => {
                let combine: fn(Box<[Self; 2]>) -> Self = match *operator {
                    "+" => Self::Sum,
                    "-" => Self::Difference,
                    "*" => Self::Product,
                    _ => return None,
                };
                Some(combine(Box::new([read(left)?, read(right)?])))
            }
            Expression::Call { function, target, arguments } if function == "size" => {
                match (target.as_deref(), arguments.as_slice()) {
                    (Some(operand), []) | (None, [operand]) => path(operand).map(Self::Size),
                    _ => None,
                }
            }
            _ => path(node).map(Self::Field),
        }
    }
}
