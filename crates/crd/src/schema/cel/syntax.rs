//! The tree of a CEL rule and its canonical text. Macros stay macros; they are not expanded into loops.

use std::fmt::Write as _;

/// A node with the height of its tree, which the parser bounds so that later walks cannot overflow the stack.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) expression: Expression,
    pub(super) height: usize,
}

/// The meaning of names at a node.
struct Names<'n> {
    this: &'n str,
    bound: Vec<&'n str>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    Name(String),
    /// `operand.field`, `operand.?field`
    Select {
        operand: Box<Node>,
        field: String,
        optional: bool,
    },
    /// `has(operand.field)`
    Has {
        operand: Box<Node>,
        field: String,
    },
    /// `operand[index]`, `operand[?index]`
    Index {
        operand: Box<Node>,
        index: Box<Node>,
        optional: bool,
    },
    Call {
        function: String,
        target: Option<Box<Node>>,
        arguments: Vec<Node>,
    },
    /// `!` or `-`
    Unary {
        operator: &'static str,
        operand: Box<Node>,
    },
    Binary {
        operator: &'static str,
        left: Box<Node>,
        right: Box<Node>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Conditional {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    /// Items with whether they are optional (`[?x]`).
    List(Vec<(bool, Node)>),
    /// Entries with whether they are optional (`{?k: x}`).
    Map(Vec<(bool, Node, Node)>),
    /// `range.all(x, body)` and similar.
    Macro {
        function: &'static str,
        range: Box<Node>,
        variables: Vec<String>,
        bodies: Vec<Node>,
    },
}

impl Node {
    pub(super) fn new(expression: Expression) -> Self {
        let mut height = 0;
        expression.for_each_child(|child| height = height.max(child.height));
        Self { expression, height: height + 1 }
    }

    /// Whether a name occurs free.
    pub(super) fn mentions(&self, name: &str) -> bool {
        match &self.expression {
            Expression::Name(text) => text == name,
            Expression::Macro { range, variables, bodies, .. } => {
                range.mentions(name)
                    || (!variables.iter().any(|variable| variable == name)
                        && bodies.iter().any(|body| body.mentions(name)))
            }
            expression => {
                let mut found = false;
                expression.for_each_child(|child| found = found || child.mentions(name));
                found
            }
        }
    }

    /// Whether the macro occurs anywhere in it.
    pub(super) fn has_macro(&self, name: &str) -> bool {
        let mut found = matches!(&self.expression, Expression::Macro { function, .. } if *function == name);
        self.expression.for_each_child(|child| found = found || child.has_macro(name));
        found
    }

    /// The canonical text: white space, quotes, redundant parentheses and the names of bound variables do not matter.
    pub(super) fn canonical(&self) -> String {
        self.canonical_where("self", &[])
    }

    /// The canonical text with another text for `self` and these bound variables.
    pub(super) fn canonical_where(&self, this: &str, bound: &[&str]) -> String {
        let mut text = String::new();
        self.write(&mut text, &mut Names { this, bound: bound.to_vec() });
        text
    }

    fn write_between<'n>(&'n self, before: &str, text: &mut String, names: &mut Names<'n>, after: &str) {
        text.push_str(before);
        self.write(text, names);
        text.push_str(after);
    }

    fn write<'n>(&'n self, text: &mut String, names: &mut Names<'n>) {
        match &self.expression {
            Expression::Null => text.push_str("null"),
            Expression::Bool(value) => push(text, value),
            Expression::Int(value) => push(text, value),
            Expression::Uint(value) => {
                push(text, value);
                text.push('u');
            }
            Expression::Double(value) => text.push_str(&format!("{value:?}")),
            Expression::String(value) => text.push_str(&format!("{value:?}")),
            Expression::Bytes(value) => text.push_str(&format!("b{value:?}")),
            Expression::Name(name) => match names.bound.iter().rposition(|variable| variable == name) {
                Some(position) => text.push_str(&format!("${position}")),
                None => text.push_str(if name == "self" { names.this } else { name }),
            },
            Expression::Select { operand, field, optional } => {
                let dot = if *optional { ".?" } else { "." };
                operand.write_between("", text, names, dot);
                text.push_str(field);
            }
            Expression::Has { operand, field } => {
                operand.write_between("has(", text, names, ".");
                text.push_str(field);
                text.push(')');
            }
            Expression::Index { operand, index, optional } => {
                operand.write(text, names);
                index.write_between(if *optional { "[?" } else { "[" }, text, names, "]");
            }
            Expression::Call { function, target, arguments } => {
                if let Some(target) = target {
                    target.write(text, names);
                    text.push('.');
                }
                text.push_str(function);
                write_all(text, names, "(", ", ", ")", arguments);
            }
            Expression::Unary { operator, operand } => {
                text.push_str(operator);
                operand.write_between("(", text, names, ")");
            }
            Expression::Binary { operator, left, right } => {
                left.write_between("(", text, names, &format!(" {operator} "));
                right.write_between("", text, names, ")");
            }
            Expression::And(operands) => write_all(text, names, "(", " && ", ")", operands),
            Expression::Or(operands) => write_all(text, names, "(", " || ", ")", operands),
            Expression::Conditional { condition, then, otherwise } => {
                condition.write_between("(", text, names, " ? ");
                then.write_between("", text, names, " : ");
                otherwise.write_between("", text, names, ")");
            }
            Expression::List(items) => {
                text.push('[');
                for (optional, item) in items {
                    item.write_between(if *optional { "?" } else { "" }, text, names, ",");
                }
                text.push(']');
            }
            Expression::Map(entries) => {
                text.push('{');
                for (optional, key, value) in entries {
                    key.write_between(if *optional { "?" } else { "" }, text, names, ":");
                    value.write_between("", text, names, ",");
                }
                text.push('}');
            }
            Expression::Macro { function, range, variables, bodies } => {
                range.write(text, names);
                text.push_str(&format!(".{function}/{}", variables.len()));
                let outside = names.bound.len();
                names.bound.extend(variables.iter().map(String::as_str));
                write_all(text, names, "(", ", ", ")", bodies);
                names.bound.truncate(outside);
            }
        }
    }
}

fn push(text: &mut String, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{value}");
}

fn write_all<'n>(text: &mut String, names: &mut Names<'n>, open: &str, between: &str, close: &str, nodes: &'n [Node]) {
    text.push_str(open);
    for (position, node) in nodes.iter().enumerate() {
        text.push_str(if position > 0 { between } else { "" });
        node.write(text, names);
    }
    text.push_str(close);
}

impl Expression {
    pub(super) fn for_each_child<'n>(&'n self, mut visit: impl FnMut(&'n Node)) {
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Name(_) => {}
            Self::Select { operand, .. } | Self::Has { operand, .. } | Self::Unary { operand, .. } => visit(operand),
            Self::Index { operand, index, .. } => {
                visit(operand);
                visit(index);
            }
            Self::Call { target, arguments, .. } => target.iter().map(|node| &**node).chain(arguments).for_each(visit),
            Self::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Self::And(operands) | Self::Or(operands) => operands.iter().for_each(visit),
            Self::Conditional { condition, then, otherwise } => {
                visit(condition);
                visit(then);
                visit(otherwise);
            }
            Self::List(items) => items.iter().for_each(|(_, item)| visit(item)),
            Self::Map(entries) => entries.iter().for_each(|(_, key, value)| {
                visit(key);
                visit(value);
            }),
            Self::Macro { range, bodies, .. } => {
                visit(range);
                bodies.iter().for_each(visit);
            }
        }
    }
}
