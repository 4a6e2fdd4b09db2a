//! The state of one evaluation of a rule: the schema, the remaining steps and the parsed patterns.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use super::stop::Stop;
use crate::schema::Schema;
use crate::schema::pattern::Pattern;

/// Maximum number of steps of a rule: enough to reach what one call may cost on the server.
const BUDGET: usize = 3_000_000;

/// Maximum cost of one call: the server then stops it and rejects the object
/// (k8s.io/apiserver `pkg/apis/cel/config.go`, `PerCallLimit`).
pub(in crate::schema) const CALL_LIMIT: u64 = 1_000_000;

thread_local! {
    /// Steps of all evaluations since they were last asked for.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Returns the steps that evaluations have taken since the last call, for budgets over many of them.
pub(in crate::schema) fn steps_taken() -> u64 {
    TAKEN.with(|taken| taken.replace(0))
}

pub(super) struct Evaluator<'a> {
    pub(super) schema: &'a Schema,
    /// Whether values have no schema: what does not fit is an error at run time, as nothing was checked before.
    pub(super) is_untyped: bool,
    steps: Cell<usize>,
    /// Cost on the server so far, or less.
    cost: Cell<u64>,
    /// Parsed patterns, since macros use the same ones repeatedly.
    patterns: RefCell<BTreeMap<String, Rc<Pattern>>>,
}

impl<'a> Evaluator<'a> {
    /// For values without a schema.
    pub(super) fn untyped() -> Self {
        static NONE: LazyLock<Schema> = LazyLock::new(Schema::default);
        let mut evaluator = Self::new(&NONE);
        evaluator.is_untyped = true;
        evaluator
    }

    pub(super) fn new(schema: &'a Schema) -> Self {
        Self { schema, is_untyped: false, steps: Cell::new(BUDGET), cost: Cell::new(0), patterns: RefCell::default() }
    }

    /// Adds what the server charges for a step (cel-go `interpreter/runtimecost.go`).
    pub(super) fn costs(&self, cost: u64) -> Result<(), Stop> {
        self.cost.set(self.cost.get().saturating_add(cost));
        if self.cost.get() > CALL_LIMIT { Err(Stop::Cost) } else { Ok(()) }
    }

    /// Returns the cost of the evaluation.
    pub(super) fn cost(&self) -> u64 {
        self.cost.get()
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

impl Drop for Evaluator<'_> {
    fn drop(&mut self) {
        let steps = u64::try_from(BUDGET - self.steps.get()).unwrap_or(u64::MAX);
        TAKEN.with(|taken| taken.set(taken.get().saturating_add(steps)));
    }
}
