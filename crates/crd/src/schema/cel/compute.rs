//! Expressions that compute a value rather than decide: what they give for one value.

use serde_json::Value as Json;

use super::evaluator::Evaluator;
use super::stop::Stop;
use super::{CelError, Program, parser};
use crate::schema::Schema;

/// What an expression gives for one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// A value.
    Value(Json),
    /// Nothing: it reads a field that is absent, or gives an optional without a value.
    Nothing,
    /// An error, with the reason.
    Failed(String),
}

impl Program {
    /// Parses an expression that computes a value from `self`.
    ///
    /// # Errors
    /// As for [`Program::compile`].
    pub fn computing(expression: &str) -> Result<Self, CelError> {
        Ok(Self { root: parser::parse(expression)?, optional_old_self: false })
    }

    /// What the expression gives for a value under the schema of its node.
    #[must_use]
    pub fn compute(&self, schema: &Schema, this: &Json) -> Computed {
        let evaluator = Evaluator::new(schema);
        let given = evaluator.value(this).and_then(|this| evaluator.evaluate(&self.root, &mut vec![("self", this)]));
        match given.and_then(|value| value.to_json(&evaluator)) {
            Ok(Some(value)) => Computed::Value(value),
            Ok(None) => Computed::Nothing,
            Err(Stop::Error(why)) if why.starts_with(super::evaluate::NO_SUCH_KEY) => Computed::Nothing,
            Err(Stop::Error(why) | Stop::Unknown(why) | Stop::Abort(why)) => Computed::Failed(why),
            Err(Stop::Budget | Stop::Cost) => Computed::Failed("the expression takes too many steps".to_owned()),
        }
    }
}
