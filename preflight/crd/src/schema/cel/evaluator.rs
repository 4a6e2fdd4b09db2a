//! The state of one evaluation of a rule: the schema, the remaining steps and the parsed patterns.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use super::stop::Stop;
use crate::schema::Schema;
use crate::schema::pattern::Pattern;

/// Maximum number of steps of a rule. The server allows one call a cost of a million, and a step costs at least one, so
/// a rule that stays within this budget also completes on the server.
const BUDGET: usize = 200_000;

pub(super) struct Evaluator<'a> {
    pub(super) schema: &'a Schema,
    /// Whether values have no schema: what does not fit is an error at run time, as nothing was checked before.
    pub(super) is_untyped: bool,
    steps: Cell<usize>,
    /// Parsed patterns, since macros use the same ones repeatedly.
    patterns: RefCell<BTreeMap<String, Rc<Pattern>>>,
}

impl<'a> Evaluator<'a> {
    /// For values without a schema.
    pub(super) fn untyped() -> Self {
        static NONE: LazyLock<Schema> = LazyLock::new(Schema::default);
        Self { is_untyped: true, ..Self::new(&NONE) }
    }

    pub(super) fn new(schema: &'a Schema) -> Self {
        Self { schema, is_untyped: false, steps: Cell::new(BUDGET), patterns: RefCell::default() }
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

    /// For a scan of a text, the server charges a tenth of its length.
    pub(super) fn charge_text(&self, bytes: usize) -> Result<(), Stop> {
        self.charge(bytes / 10 + 1)
    }

    /// Parses a pattern.
    pub(super) fn pattern(&self, text: &str) -> Result<Rc<Pattern>, Stop> {
        if let Some(known) = self.patterns.borrow().get(text) {
            return Ok(Rc::clone(known));
        }
        self.charge(text.len().saturating_mul(20) + 100)?;
        let pattern = Pattern::shared(text).map_err(|error| {
            // A pattern that is a literal of the rule is rejected with the definition.
            Stop::unknown(format!("the pattern {text:?}: {error}"))
        })?;
        self.patterns.borrow_mut().insert(text.to_owned(), Rc::clone(&pattern));
        Ok(pattern)
    }
}
