//! What the API server requires of a rule before it accepts a definition: that it type-checks, and that its estimated
//! cost is within limits.

mod checker;
mod cost;
mod declare;
mod expand;
mod functions;
mod given;
mod types;

use std::rc::Rc;

use self::checker::{Checker, Fault};
use self::cost::Estimate;
pub use self::declare::Declaration;
use self::expand::{Id, Literal, Term, Terms};
pub use self::given::Given;
use self::types::Type;
use super::evaluator::Evaluator;
use super::parser;
use super::stop::Stop;
use super::syntax::{Expression, Node};
use crate::schema::Schema;
use crate::schema::pattern::Pattern;

/// The required result type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A boolean, for a rule.
    Truth,
    /// A string, for `messageExpression`.
    Text,
}

/// Why an expression is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The server rejects it, with the reason.
    Refused(String),
    /// Whether the server accepts it is unknown, with the reason.
    Unknown(String),
}

/// Type-checks an expression of a node and returns the server's maximum estimate for one evaluation.
///
/// # Errors
/// If the server rejects the expression, or it is unknown whether it does.
pub fn cost_of(
    expression: &str,
    this: &Rc<Declaration>,
    optional_old_self: bool,
    gives: Gives,
) -> Result<u64, Objection> {
    let (terms, root) = expanded(expression)?;
    let old = if optional_old_self { Type::optional(this.kind.clone()) } else { this.kind.clone() };
    let types = Checker::new(&terms, this, old).check(root).map_err(objection)?;
    literals(&terms)?;
    refusal(gives, types.types[root].as_ref())?;
    let mut estimate = Estimate::new(&terms, &types, this);
    estimate
        .cost(root)
        .map_err(|function| Objection::Unknown(format!("the cost of `{}` is not known here", function.0)))
}

/// Refuses an expression that does not give what is required.
fn refusal(gives: Gives, given: Option<&Type>) -> Result<(), Objection> {
    let (expected, word) = match gives {
        Gives::Truth => (Type::Bool, "a bool"),
        Gives::Text => (Type::String, "a string"),
    };
    if given == Some(&expected) {
        return Ok(());
    }
    let shown = given.map_or_else(|| "nothing".to_owned(), Type::shown);
    Err(Objection::Refused(format!("it must give {word}, and gives {shown}")))
}

fn expanded(expression: &str) -> Result<(Terms, Id), Objection> {
    let node =
        parser::parse(expression).map_err(|error| Objection::Unknown(format!("it cannot be read here: {error}")))?;
    let mut terms = Terms::default();
    let root = terms.expand(&node).map_err(|macro_name| Objection::Unknown(format!("the macro `{}`", macro_name.0)))?;
    Ok((terms, root))
}

fn objection(fault: Fault) -> Objection {
    match fault {
        Fault::Refused(why) => Objection::Refused(why),
        Fault::Unknown(why) => Objection::Unknown(why),
    }
}

/// Type-checks an expression of a node and returns the type of what it gives.
///
/// # Errors
/// If the expression is not valid for the declaration.
pub fn given_by(expression: &str, this: &Rc<Declaration>) -> Result<Given, Objection> {
    let (terms, root) = expanded(expression)?;
    let types = Checker::new(&terms, this, this.kind.clone()).check(root).map_err(objection)?;
    literals(&terms)?;
    Ok(types.types[root].as_ref().map_or(Given::Any, Given::of))
}

/// Type-checks an expression over these variables. `gives` is the required type of the result, if there is one.
pub(super) fn accept(
    expression: &str,
    variables: impl IntoIterator<Item = (&'static str, Rc<Declaration>)>,
    gives: Option<Gives>,
) -> Result<(), Objection> {
    let (terms, root) = expanded(expression)?;
    let types = Checker::over(&terms, variables).check(root).map_err(objection)?;
    literals(&terms)?;
    gives.map_or(Ok(()), |gives| refusal(gives, types.types[root].as_ref()))
}

/// Whether the checker knows a function of this name.
pub(super) fn is_declared(function: &str) -> bool {
    functions::overloads(function).is_some()
}

/// Checks constants that functions parse when the rule is compiled.
fn literals(terms: &Terms) -> Result<(), Objection> {
    for id in 0..terms.len() {
        let Term::Call { function, target, arguments } = terms.get(id) else { continue };
        let Some(Term::Literal(Literal::String(text))) = arguments.first().map(|first| terms.get(*first)) else {
            continue;
        };
        match (function.as_str(), target) {
            ("matches" | "find" | "findAll", Some(_)) => {
                if let Err(error) = Pattern::parse(text)
                    && error.refused
                {
                    return Err(Objection::Refused(format!("the pattern {text:?} cannot be read: {error}")));
                }
            }
            ("duration" | "timestamp", None) => read(function, text)?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether a function can parse the text.
fn read(function: &str, text: &str) -> Result<(), Objection> {
    let argument = Node::new(Expression::String(text.to_owned()));
    let call = Expression::Call { function: function.to_owned(), target: None, arguments: vec![argument] };
    let (call, nothing) = (Node::new(call), Schema::default());
    match Evaluator::new(&nothing).evaluate(&call, &mut Vec::new()) {
        Ok(_) => Ok(()),
        Err(Stop::Error(_)) => Err(Objection::Refused(format!("{text:?} is no {function}"))),
        Err(_) => Err(Objection::Unknown(format!("whether {text:?} is a {function}"))),
    }
}
