//! A rule split into claims about fields, combined by `and`, `or` and `not`, for use in proofs. A part without a simple
//! meaning remains a text; equal texts are the same claim.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use super::arithmetic::Arithmetic;
use super::decimal;
use super::names::{FieldPath, escape, unescape};
use super::order::Order;
use super::syntax::{Expression, Node};
use super::tallies;
use super::time::duration;
use super::value::quantity::exact_nanos;
use crate::schema::Schema;

/// A claim of a rule. It is true, false or an error, like the rule on the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The same for every object.
    Constant(bool),
    /// True if all are true; false if one is false, even if others fail.
    All(Vec<Claim>),
    /// True if one is true, even if others fail; false if all are false.
    Any(Vec<Claim>),
    /// The negation.
    Not(Box<Claim>),
    /// The second if the first is true, the third if it is false.
    If(Box<[Claim; 3]>),
    /// Both are true, or both are false.
    Same(Box<[Claim; 2]>),
    /// `has(path)`
    Present(FieldPath),
    /// A comparison with a literal.
    Compared(Term, Order, Json),
    /// A comparison of `size()` with a number.
    Counted(Term, Order, i64),
    /// How the number of items that satisfy `body` compares with `count`.
    Tallied {
        /// The list.
        range: Term,
        /// The claim about one item.
        body: Box<Claim>,
        /// The comparison.
        order: Order,
        /// The number compared with.
        count: i64,
        /// The canonical text of the number of items.
        text: String,
    },
    /// A comparison of two terms.
    Related(Term, Order, Term),
    /// The string matches the pattern of the schema.
    Matches(Term, Box<Schema>),
    /// All items of a list, or all keys of a map, satisfy `body`; some do if `all` is false. Paths in `body` are below
    /// the item.
    Each {
        /// The list or map.
        range: Term,
        /// Whether it is `all` rather than `exists`.
        all: bool,
        /// The claim about one item.
        body: Box<Claim>,
        /// The canonical text of the whole claim.
        text: String,
    },
    /// The literal is an item of a list, or a key of a map.
    Contains(Term, Json),
    /// A boolean term is true.
    True(Term),
    /// The first if the term is a string, the second otherwise.
    OfString(Term, Box<[Claim; 2]>),
    /// An error whatever the object is.
    Error,
}

/// A value that a rule refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Its path, if it is a field or the value that the claims concern.
    pub path: Option<FieldPath>,
    /// Its canonical text; within one object, equal texts have equal values.
    pub text: String,
    /// What it is an item of, `list[3]`.
    pub item: Option<Box<ItemOf>>,
    /// The fields that it is computed from, if it is not a field itself.
    pub arithmetic: Option<Box<Arithmetic>>,
}

/// An item of a list, by its index.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemOf {
    /// The list.
    pub list: Term,
    /// The index.
    pub index: i64,
    /// The item, as the value that claims about it concern.
    pub item: Term,
}

impl Term {
    /// A field, or the value that the claims concern.
    #[must_use]
    pub fn field(path: FieldPath, text: String) -> Self {
        Self { path: Some(path), text, item: None, arithmetic: None }
    }
}

/// The claim of the rule at the end of `below` about the value at its start; `None` if rules cannot name the path.
pub(super) fn claim(node: &Node, below: &[String], write: Write) -> Option<Claim> {
    let this = below_text("self", below)?;
    Some(Reader { root: "self", below, this: &this, bound: &[], write }.claim(node))
}

/// The write for which a rule is read; it decides what an optional `oldSelf` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// Any: the rule does not ask.
    Any,
    /// There is no old value.
    Creation,
    /// There is one.
    Update,
}

/// The path in the syntax of a rule.
fn below_text(root: &str, path: &[String]) -> Option<String> {
    path.iter().try_fold(root.to_owned(), |text, name| Some(format!("{text}.{}", escape(name)?)))
}

/// Extracts claims about one value: an object, or an item of a list.
struct Reader<'r> {
    /// The variable for the value.
    root: &'r str,
    /// The path of `root` from the start of all paths.
    below: &'r [String],
    /// The text that replaces `self`.
    this: &'r str,
    /// Variables of enclosing macros, outermost first; the last is `root`, if there are any.
    bound: &'r [&'r str],
    write: Write,
}

impl Reader<'_> {
    fn claim(&self, node: &Node) -> Claim {
        if self.write == Write::Creation && takes_old_value(node) {
            return Claim::Error;
        }
        let all = |nodes: &[Node]| nodes.iter().map(|node| self.claim(node)).collect();
        match &node.expression {
            Expression::Bool(value) => Claim::Constant(*value),
            Expression::And(parts) => Claim::All(all(parts)),
            Expression::Or(parts) => Claim::Any(all(parts)),
            Expression::Unary { operator: "!", operand } => Claim::Not(Box::new(self.claim(operand))),
            Expression::Conditional { condition, then, otherwise } => {
                Claim::If(Box::new([self.claim(condition), self.claim(then), self.claim(otherwise)]))
            }
            Expression::Has { operand, field } => match (self.path(operand), unescape(field)) {
                (Some(mut path), Some(field)) => {
                    path.push(field);
                    Claim::Present(path)
                }
                _ => self.truth(node),
            },
            Expression::Binary { operator: "in", left, right } => self.contained(node, left, right),
            Expression::Binary { operator, left, right } => match Order::of(operator) {
                Some(order) => self.compared(left, order, right),
                None => self.truth(node),
            },
            Expression::Call { function, target, arguments } => {
                self.called(function, target.as_deref(), arguments).unwrap_or_else(|| self.truth(node))
            }
            Expression::Macro { function, range, variables, bodies } => {
                match (*function, variables.as_slice(), bodies.as_slice()) {
                    ("all" | "exists", [variable], [body]) => {
                        self.each(node, *function == "all", range, variable, body)
                    }
                    _ => self.truth(node),
                }
            }
            _ => self.truth(node),
        }
    }

    fn each(&self, node: &Node, all: bool, range: &Node, variable: &str, body: &Node) -> Claim {
        let body = Box::new(self.of_item(variable, body));
        Claim::Each { range: self.term(range), all, body, text: self.text(node) }
    }

    fn of_item(&self, variable: &str, body: &Node) -> Claim {
        let bound: Vec<&str> = self.bound.iter().copied().chain([variable]).collect();
        Reader { root: variable, below: &[], this: self.this, bound: &bound, write: self.write }.claim(body)
    }

    fn contained(&self, node: &Node, left: &Node, right: &Node) -> Claim {
        if let Expression::List(items) = &right.expression
            && items.iter().all(|(optional, item)| !optional && literal(item).is_some())
        {
            let each = items.iter().map(|(_, item)| self.compared(left, Order::Equal, item));
            return if items.is_empty() { Claim::Constant(false) } else { Claim::Any(each.collect()) };
        }
        match literal(left) {
            Some(literal) => Claim::Contains(self.term(right), literal),
            None => self.truth(node),
        }
    }

    fn compared(&self, left: &Node, order: Order, right: &Node) -> Claim {
        let literal = |node| literal(node).or_else(|| measure(node));
        match (literal(left), literal(right)) {
            (Some(one), Some(other)) => constant(&one, order, &other)
                .map_or_else(|| Claim::Related(self.term(left), order, self.term(right)), Claim::Constant),
            (Some(literal), None) => self.with_literal(right, order.flipped(), literal),
            (None, Some(literal)) => self.with_literal(left, order, literal),
            (None, None) if is_truth(left) || is_truth(right) => {
                let (one, other) = (self.claim(left), self.claim(right));
                match order {
                    Order::Equal => Claim::Same(Box::new([one, other])),
                    Order::Unequal => Claim::Not(Box::new(Claim::Same(Box::new([one, other])))),
                    _ => Claim::Related(self.term(left), order, self.term(right)),
                }
            }
            (None, None) => Claim::Related(self.term(left), order, self.term(right)),
        }
    }

    fn with_literal(&self, node: &Node, order: Order, literal: Json) -> Claim {
        if let (Some(value), true) = (literal.as_bool(), matches!(order, Order::Equal | Order::Unequal))
            && is_truth(node)
        {
            let claim = self.claim(node);
            return if value == (order == Order::Equal) { claim } else { Claim::Not(Box::new(claim)) };
        }
        if let Some(measured) = measured(node)
            && let Some(count) = literal.as_i64()
        {
            if let Expression::Macro { function: "filter", range, variables, bodies } = &measured.expression
                && let ([variable], [body]) = (variables.as_slice(), bodies.as_slice())
            {
                if let (Some(conditions), Some(is_true)) =
                    (tallies::conditions(range), tallies::counts_true(variable, body))
                {
                    let one = |node: &&Node| {
                        let claim = self.claim(node);
                        if is_true { claim } else { Claim::Not(Box::new(claim)) }
                    };
                    let claims: Vec<Claim> = conditions.iter().map(one).collect();
                    if let Some(claim) = tally(&claims, order, count) {
                        return claim;
                    }
                }
                let body = Box::new(self.of_item(variable, body));
                let text = format!("size {}", self.text(measured));
                return Claim::Tallied { range: self.term(range), body, order, count, text };
            }
            return Claim::Counted(self.term(measured), order, count);
        }
        // The alternative for an absent field is a literal too.
        if let Expression::Call { function, target: Some(target), arguments } = &node.expression
            && let ("orValue", [otherwise]) = (function.as_str(), arguments.as_slice())
            && let (Some(path), Some(otherwise)) =
                (self.optional_path(target), literal_of_same_type(otherwise, &literal))
            && let Some(otherwise) = constant(&otherwise, order, &literal)
        {
            let there = Claim::Compared(self.field(&path), order, literal);
            return Claim::If(Box::new([presence(&path), there, Claim::Constant(otherwise)]));
        }
        let compared = Claim::Compared(self.term(node), order, literal.clone());
        match (converted(node), literal.as_i64()) {
            (Some(text), Some(number)) => {
                Claim::OfString(self.term(text), Box::new([self.of_decimal(text, order, number), compared]))
            }
            _ => compared,
        }
    }

    /// The claim that the number in a text compares like this. A text without one is an error.
    fn of_decimal(&self, text: &Node, order: Order, number: i64) -> Claim {
        let matches = |order| match decimal::pattern(order, number) {
            Some(pattern) => Claim::Matches(self.term(text), Box::new(Schema::of(&json!({"pattern": pattern})))),
            None => Claim::Constant(false),
        };
        let otherwise = Claim::If(Box::new([matches(order.opposite()), Claim::Constant(false), Claim::Error]));
        Claim::If(Box::new([matches(order), Claim::Constant(true), otherwise]))
    }

    fn called(&self, function: &str, target: Option<&Node>, arguments: &[Node]) -> Option<Claim> {
        let (target, rest) = match (target, arguments) {
            (Some(target), rest) => (target, rest),
            (None, [target, rest @ ..]) if function == "matches" => (target, rest),
            _ => return None,
        };
        let compared = match function {
            "isLessThan" => Some(Order::Less),
            "isGreaterThan" => Some(Order::Greater),
            _ => None,
        };
        if let (Some(order), [other]) = (compared, rest) {
            return Some(Claim::Compared(self.term(target), order, measure(other)?));
        }
        let pattern = match (function, rest) {
            ("matches", [pattern]) => text(pattern)?,
            ("startsWith", [start]) => format!("^{}", quoted(&text(start)?)?),
            ("endsWith", [end]) => format!("{}$", quoted(&text(end)?)?),
            ("contains", [part]) => quoted(&text(part)?)?.into_owned(),
            ("hasValue", []) if is_old_self(target) => {
                return (self.write != Write::Any).then_some(Claim::Constant(self.write == Write::Update));
            }
            ("hasValue", []) => return self.optional_path(target).map(|path| presence(&path)),
            ("orValue", [otherwise]) => {
                let Expression::Bool(otherwise) = otherwise.expression else { return None };
                let path = self.optional_path(target)?;
                let parts = [presence(&path), Claim::True(self.field(&path)), Claim::Constant(otherwise)];
                return Some(Claim::If(Box::new(parts)));
            }
            _ => return None,
        };
        // An empty pattern counts as absent in a schema.
        let pattern = if pattern.is_empty() { "^".to_owned() } else { pattern };
        Some(Claim::Matches(self.term(target), Box::new(Schema::of(&json!({"pattern": pattern})))))
    }

    fn truth(&self, node: &Node) -> Claim {
        Claim::True(self.term(node))
    }

    fn text(&self, node: &Node) -> String {
        node.canonical_where(self.this, self.bound)
    }

    fn field(&self, path: &[String]) -> Term {
        // Only terms without a simple meaning are identified by their text; a second text for the same field can only
        // prevent a proof.
        Term::field(path.to_vec(), format!("{}.?{path:?}", self.this))
    }

    fn term(&self, node: &Node) -> Term {
        let path = self.path(node);
        let arithmetic = match path {
            Some(_) => None,
            None => Arithmetic::read(node, &|node| self.path(node)).map(Box::new),
        };
        Term { path, text: self.text(node), item: self.item_of(node).map(Box::new), arithmetic }
    }

    fn item_of(&self, node: &Node) -> Option<ItemOf> {
        let Expression::Index { operand, index, optional: false } = &node.expression else { return None };
        let Expression::Int(index @ 0..) = index.expression else { return None };
        let list = Term::field(self.path(operand)?, self.text(operand));
        Some(ItemOf { list, index, item: Term::field(Vec::new(), self.text(node)) })
    }

    fn path(&self, node: &Node) -> Option<FieldPath> {
        match &node.expression {
            Expression::Name(name) if name == self.root => Some(self.below.to_vec()),
            Expression::Select { operand, field, optional: false } => {
                let mut path = self.path(operand)?;
                path.push(unescape(field)?);
                Some(path)
            }
            _ => None,
        }
    }

    /// The path of `root.?a.?b`; only if every step is optional, so that none can fail.
    fn optional_path(&self, node: &Node) -> Option<FieldPath> {
        match &node.expression {
            Expression::Select { operand, field, optional: true } => {
                let mut path = match &operand.expression {
                    Expression::Name(name) if name == self.root => self.below.to_vec(),
                    _ => self.optional_path(operand)?,
                };
                path.push(unescape(field)?);
                Some(path)
            }
            _ => None,
        }
    }
}

/// How the number of true claims compares with a count; `None` if that takes too many combinations.
fn tally(claims: &[Claim], order: Order, count: i64) -> Option<Claim> {
    let all = |subset: Vec<usize>| Claim::All(subset.into_iter().map(|index| claims[index].clone()).collect());
    let at_least = |count| Some(Claim::Any(tallies::subsets(claims.len(), count)?.into_iter().map(all).collect()));
    let (reached, exceeded) = (at_least(count)?, at_least(count.checked_add(1)?)?);
    let not = |claim: Claim| Claim::Not(Box::new(claim));
    Some(match order {
        Order::AtLeast => reached,
        Order::Greater => exceeded,
        Order::Less => not(reached),
        Order::AtMost => not(exceeded),
        Order::Equal => Claim::All(vec![reached, not(exceeded)]),
        Order::Unequal => Claim::Any(vec![not(reached), exceeded]),
    })
}

/// The claim that the last field is present; it is false, not an error, if an earlier one is absent.
fn presence(path: &[String]) -> Claim {
    Claim::All((1..=path.len()).map(|length| Claim::Present(path[..length].to_vec())).collect())
}

/// Whether an expression obviously has a boolean result.
fn is_truth(node: &Node) -> bool {
    match &node.expression {
        Expression::Bool(_) | Expression::And(_) | Expression::Or(_) | Expression::Has { .. } => true,
        Expression::Unary { operator, .. } => *operator == "!",
        Expression::Binary { operator, .. } => *operator == "in" || Order::of(operator).is_some(),
        Expression::Macro { function, .. } => matches!(*function, "all" | "exists" | "exists_one"),
        Expression::Call { function, .. } => {
            matches!(function.as_str(), "matches" | "startsWith" | "endsWith" | "contains" | "hasValue")
        }
        _ => false,
    }
}

/// A literal string, boolean or number.
fn literal(node: &Node) -> Option<Json> {
    Some(match &node.expression {
        Expression::Bool(value) => (*value).into(),
        Expression::Int(value) => (*value).into(),
        Expression::Double(value) => (*value).into(),
        Expression::String(value) => value.as_str().into(),
        Expression::Unary { operator: "-", operand } => match operand.expression {
            Expression::Int(value) => value.checked_neg()?.into(),
            Expression::Double(value) => (-value).into(),
            _ => return None,
        },
        _ => return None,
    })
}

fn literal_of_same_type(node: &Node, other: &Json) -> Option<Json> {
    literal(node).filter(|literal| std::mem::discriminant(literal) == std::mem::discriminant(other))
}

fn text(node: &Node) -> Option<String> {
    match &node.expression {
        Expression::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// A literal duration or quantity, as a number that compares alike.
fn measure(node: &Node) -> Option<Json> {
    let Expression::Call { function, target: None, arguments } = &node.expression else { return None };
    let [written] = arguments.as_slice() else { return None };
    match function.as_str() {
        #[expect(clippy::cast_precision_loss, reason = "checked to be none")]
        "duration" => duration(&text(written)?).filter(|nanos| nanos.abs() < 9_000_000_000_000_000).map(|it| it as f64),
        "quantity" => exact_nanos(&text(written)?),
        _ => None,
    }
    .map(Json::from)
}

/// How two literals of one type compare.
fn constant(one: &Json, order: Order, other: &Json) -> Option<bool> {
    match (one, other, order) {
        (Json::String(_), Json::String(_), Order::Equal) | (Json::Bool(_), Json::Bool(_), Order::Equal) => {
            Some(one == other)
        }
        (Json::String(_), Json::String(_), Order::Unequal) | (Json::Bool(_), Json::Bool(_), Order::Unequal) => {
            Some(one != other)
        }
        (Json::Number(one), Json::Number(other), _) => {
            let (one, other) = (one.as_f64()?, other.as_f64()?);
            // Beyond this, floats cannot represent every integer.
            (one.abs() < 9e15 && other.abs() < 9e15).then(|| order.holds(one, other))
        }
        _ => None,
    }
}

/// The operand of `size()`.
fn measured(node: &Node) -> Option<&Node> {
    match &node.expression {
        Expression::Call { function, target, arguments } if function == "size" => {
            match (target, arguments.as_slice()) {
                (Some(target), []) => Some(target),
                (None, [only]) => Some(only),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The operand of `int()`.
fn converted(node: &Node) -> Option<&Node> {
    match &node.expression {
        Expression::Call { function, target: None, arguments } if function == "int" => match arguments.as_slice() {
            [only] => Some(only),
            _ => None,
        },
        _ => None,
    }
}

fn is_old_self(node: &Node) -> bool {
    matches!(&node.expression, Expression::Name(name) if name == "oldSelf")
}

/// Whether a comparison, or a call, takes the value of an optional `oldSelf`, which fails without one.
fn takes_old_value(node: &Node) -> bool {
    match &node.expression {
        Expression::Call { function, target: Some(target), .. } if function == "value" && is_old_self(target) => true,
        Expression::Call { target, arguments, .. } => {
            target.as_deref().is_some_and(takes_old_value) || arguments.iter().any(takes_old_value)
        }
        Expression::Binary { left, right, .. } => takes_old_value(left) || takes_old_value(right),
        Expression::Select { operand, .. } => takes_old_value(operand),
        _ => false,
    }
}

/// A pattern that matches exactly this text; `None` if that is not certain.
fn quoted(text: &str) -> Option<Cow<'_, str>> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || !letter.is_ascii() || letter == ' ';
    if text.chars().all(is_plain) {
        return Some(text.into());
    }
    let mut pattern = String::new();
    for letter in text.chars() {
        if !is_plain(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    Some(pattern.into())
}
