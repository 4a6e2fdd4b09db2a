//! Rules of `x-kubernetes-validations`: parsed once and evaluated as the API server does on one node of an object. The
//! answer is "unknown" wherever the server's is not certain.
//!
//! Parser and evaluator are our own because both must be bounded: rules come from files, and the `cel` crate overflows
//! the stack on deep ones and cannot be interrupted. Values also know their schema, as on the server.

pub mod admission;
mod arithmetic;
mod base64;
mod bound;
mod charges;
mod check;
mod claims;
mod compute;
mod decimal;
mod distinct;
mod error;
mod evaluate;
mod evaluator;
mod hints;
mod lexer;
mod libraries;
mod names;
mod operators;
mod order;
mod parser;
mod partial;
mod since;
mod stop;
mod syntax;
mod tallies;
mod time;
mod value;

#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;

use serde_json::Value as Json;

pub use self::arithmetic::Arithmetic;
pub use self::check::{Declaration, Given, Gives, Objection, cost_of, given_by};
pub use self::claims::{Claim, ItemOf, Term};
pub use self::compute::Computed;
pub use self::distinct::Distinct;
use self::evaluator::Evaluator;
pub(in crate::schema) use self::evaluator::{CALL_LIMIT, steps_taken};
pub use self::hints::{Hint, Hints, Step};
pub use self::names::FieldPath;
pub use self::order::Order;
pub use self::partial::Known;
pub(in crate::schema) use self::since::newer_than;
use self::stop::Stop;
use self::syntax::Node;
use self::value::{Outcome, Value};
use crate::schema::shared::Shared;
use crate::schema::{CelRule, Schema};
pub use error::CelError;

/// Whether two texts are the same quantity, such as `1Gi` and `1024Mi`. A text that is not a quantity equals only
/// itself.
#[must_use]
pub fn are_equal_quantities(left: &str, right: &str) -> bool {
    value::quantity::are_equal(left, right)
}

/// Which of two quantities is more; `None` if one of them is none.
#[must_use]
pub fn compare_quantities(left: &str, right: &str) -> Option<std::cmp::Ordering> {
    value::quantity::compare(left, right)
}

/// A parsed rule.
#[derive(Clone, Debug)]
pub struct Program {
    root: Node,
    optional_old_self: bool,
}

/// The API server's result for a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The object passes.
    True,
    /// The rule is false, and the object is rejected.
    False,
    /// Evaluation fails on the server too, and the object is rejected.
    Error(String),
    /// Unknown, with the reason.
    Unknown(String),
}

impl Truth {
    /// Whether the server certainly rejects the object.
    #[must_use]
    pub fn rejects(&self) -> bool {
        matches!(self, Self::False | Self::Error(_))
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => write!(formatter, "true"),
            Self::False => write!(formatter, "false"),
            Self::Error(message) => write!(formatter, "error: {message}"),
            Self::Unknown(why) => write!(formatter, "unknown: {why}"),
        }
    }
}

impl Program {
    /// Parses a rule without `optionalOldSelf`.
    ///
    /// # Errors
    /// If the text is not valid CEL, or exceeds the limits of length and depth.
    pub fn compile(rule: &str) -> Result<Self, CelError> {
        Ok(Self { root: parser::parse(rule)?, optional_old_self: false })
    }

    /// Parses a rule of a schema, with its `optionalOldSelf`.
    ///
    /// # Errors
    /// As for [`Program::compile`].
    pub fn of(rule: &CelRule) -> Result<Self, CelError> {
        Ok(Self { optional_old_self: rule.optional_old_self, ..Self::compile(&rule.rule)? })
    }

    /// Like `of`, but caches parsed rules per thread.
    ///
    /// # Errors
    /// As for [`Program::compile`].
    pub fn shared(rule: &CelRule) -> Result<Rc<Self>, CelError> {
        thread_local! {
            static READ: Shared<(String, bool), Result<Rc<Program>, CelError>> = Shared::new();
        }
        READ.with(|read| read.get((rule.rule.clone(), rule.optional_old_self), |_| Self::of(rule).map(Rc::new)))
    }

    /// Evaluates the rule on a value that is valid under the schema of its node, pruned and defaulted. Without an old
    /// value, a rule that needs one does not apply and counts as true.
    #[must_use]
    pub fn evaluate(&self, schema: &Schema, this: &Json, old: Option<&Json>) -> Truth {
        let old = old.filter(|value| !value.is_null());
        // Rules are not evaluated on nulls, and transition rules only on updates.
        if this.is_null() || (old.is_none() && !self.optional_old_self && self.uses_old_self()) {
            return Truth::True;
        }
        self.evaluate_with_cost(schema, this, old).0
    }

    /// Evaluates a rule that applies to the value, and returns the lower bound of its cost on the server.
    pub(in crate::schema) fn evaluate_with_cost(
        &self,
        schema: &Schema,
        this: &Json,
        old: Option<&Json>,
    ) -> (Truth, u64) {
        let evaluator = Evaluator::new(schema);
        let truth = match self.run(&evaluator, this, old) {
            Ok(Value::Bool(true)) => Truth::True,
            Ok(Value::Bool(false)) => Truth::False,
            Ok(other) => Truth::Unknown(format!("the rule gives a {}", other.type_name())),
            Err(Stop::Error(message)) => Truth::Error(message),
            Err(Stop::Unknown(why) | Stop::Abort(why)) => Truth::Unknown(why),
            Err(Stop::Budget) => Truth::Unknown("the rule takes too many steps".to_owned()),
            Err(Stop::Cost) => Truth::Error("it costs more than the server allows for one call".to_owned()),
        };
        (truth, evaluator.cost())
    }

    /// Estimates the maximum cost of one evaluation on the server, by the sizes that the schema allows.
    pub(in crate::schema) fn maximum_cost(&self, schema: &Schema) -> u64 {
        bound::maximum_cost(&self.root, schema)
    }

    fn run<'a>(&'a self, evaluator: &Evaluator<'a>, this: &'a Json, old: Option<&'a Json>) -> Outcome<'a> {
        let mut scope = vec![("self", evaluator.value(this)?)];
        match (old, self.optional_old_self) {
            (Some(old), false) => scope.push(("oldSelf", evaluator.value(old)?)),
            (Some(old), true) => scope.push(("oldSelf", Value::some(evaluator.value(old)?))),
            (None, true) => scope.push(("oldSelf", Value::Optional(None))),
            (None, false) => {}
        }
        evaluator.evaluate(&self.root, &mut scope)
    }

    /// Whether it is a transition rule.
    #[must_use]
    pub fn uses_old_self(&self) -> bool {
        self.root.mentions("oldSelf")
    }

    /// The canonical text of the rule: white space, comments, quotes, redundant parentheses and the names of macro
    /// variables do not matter.
    #[must_use]
    pub fn normalised(&self) -> String {
        self.root.canonical()
    }

    /// Whether the rule is true, or false, for every object that agrees with `known`, which tells what is certain about
    /// the field at a path below `self`.
    #[must_use]
    pub fn decide(&self, known: &dyn Fn(&[&str]) -> Option<Known>) -> Option<bool> {
        if self.uses_old_self() {
            return None;
        }
        // Its value is the same for every object.
        if !self.root.mentions("self") {
            return match Evaluator::new(&Schema::default()).evaluate(&self.root, &mut Vec::new()) {
                Ok(Value::Bool(truth)) => Some(truth),
                _ => None,
            };
        }
        partial::decide(&self.root, known)
    }

    /// The claim that the rule makes about the ancestor from which `below` leads to its node. Transition rules claim
    /// nothing about stored objects; neither do rules that the server may abort.
    #[must_use]
    pub fn claim(&self, below: &[String]) -> Option<Claim> {
        if self.uses_old_self() || self.root.has_macro("sortBy") {
            None
        } else {
            claims::claim(&self.root, below, claims::Write::Any)
        }
    }

    /// The same of a written object: on creation and, if the rule has an `optionalOldSelf`, on an update. `None` for
    /// other transition rules, which claim nothing on creation.
    #[must_use]
    pub fn claims_of_writes(&self, below: &[String]) -> Option<Vec<Claim>> {
        if !self.uses_old_self() {
            return self.claim(below).map(|claim| vec![claim]);
        }
        if !self.optional_old_self || self.root.has_macro("sortBy") {
            return None;
        }
        [claims::Write::Creation, claims::Write::Update]
            .map(|write| claims::claim(&self.root, below, write))
            .into_iter()
            .collect()
    }

    /// Whether it is evaluated when an object is created.
    #[must_use]
    pub fn applies_on_creation(&self) -> bool {
        self.optional_old_self || !self.uses_old_self()
    }

    /// What the rule says of the items of a list, if it only says that they differ.
    #[must_use]
    pub fn distinct(&self) -> Option<Distinct> {
        distinct::distinct(&self.root)
    }

    /// What the rule reads, for the search for objects that violate it.
    #[must_use]
    pub fn hints(&self) -> Hints {
        hints::collect(&self.root)
    }

    /// Returns the numbers and strings that are written in the expression, in their order and without repetitions.
    #[must_use]
    pub fn constants(&self) -> Vec<Json> {
        hints::constants(&self.root)
    }
}
