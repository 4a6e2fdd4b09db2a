//! What one evaluation of a rule carries: the schema, the steps that are left, and the patterns that were read.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::stop::Stop;
use crate::schema::Schema;
use crate::schema::pattern::Pattern;

/// Steps a rule may take. The server grants one call a cost of a million, of which a step is at least one, so what
/// ends within this budget ends on the server.
const BUDGET: usize = 200_000;

pub(super) struct Evaluator<'a> {
    pub(super) schema: &'a Schema,
    steps: Cell<usize>,
    /// Patterns that were read, since macros ask for the same ones again and again.
    patterns: RefCell<BTreeMap<String, Rc<Pattern>>>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(schema: &'a Schema) -> Self {
        Self { schema, steps: Cell::new(BUDGET), patterns: RefCell::default() }
    }

    pub(super) fn charge(&self, steps: usize) -> Result<(), Stop> {
        match self.steps.get().checked_sub(steps) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(Stop::Budget),
        }
    }

    /// A walk over a text costs the server a tenth of its length.
    pub(super) fn charge_text(&self, bytes: usize) -> Result<(), Stop> {
        self.charge(bytes / 10 + 1)
    }

    /// Reads a pattern.
    pub(super) fn pattern(&self, text: &str) -> Result<Rc<Pattern>, Stop> {
        if let Some(known) = self.patterns.borrow().get(text) {
            return Ok(Rc::clone(known));
        }
        self.charge(text.len().saturating_mul(20) + 100)?;
        let pattern = Pattern::shared(text).map_err(|error| {
            // A pattern that stands in the rule is refused with the definition.
            Stop::unknown(format!("the pattern {text:?}: {error}"))
        })?;
        self.patterns.borrow_mut().insert(text.to_owned(), Rc::clone(&pattern));
        Ok(pattern)
    }
}
