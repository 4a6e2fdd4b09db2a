//! Searches for a value that satisfies a formula: tries open choices one by one, then each type by itself. The result
//! is a value, the proof that there is none, or what prevented either.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::constraints::{Constraints, admits, is_excepted};
use super::formula::Formula;
use super::outcome::Outcome;
use super::text::Asked;
use super::types::Types;
use super::values::ValueSet;
use crate::schema::model::{MAX_DEPTH, Schema};

/// Maximum number of steps of one search; a step examines one set of constraints.
pub(super) const STEPS: u64 = 20_000;

/// Maximum number of steps of all searches of one comparison together.
pub(super) const ALL_STEPS: u64 = 1_000_000;

/// Maximum number of automaton steps of one comparison.
pub(super) const AUTOMATA: u64 = 20_000_000;

/// Maximum number of nested open choices.
const MOST_CHOICES: usize = 1_000;

/// Maximum number of formulas held in all open choices, which bounds the memory.
const MOST_HELD: u64 = 300_000;

/// Number of copied formulas, fields or items that count as one step.
const COPIES: u64 = 16;

/// Maximum number of values in an example.
const MOST_VALUES: u64 = 100_000;

/// The solver. It caches its results for skeleton nodes, which recur.
#[derive(Debug)]
pub(super) struct Solver {
    /// Steps left for this search, and for all.
    steps: u64,
    all_steps: u64,
    /// Steps left for automata.
    automata: u64,
    texts: Asked,
    depth: usize,
    choices: usize,
    held: u64,
    /// Examples by the address of their node; the schemas outlive the solver.
    examples: HashMap<usize, Outcome>,
}

impl Default for Solver {
    fn default() -> Self {
        Self::new(ALL_STEPS, AUTOMATA, Asked::default())
    }
}

impl Solver {
    /// Creates a solver that may take this many steps, and this many of automata, and that knows these strings.
    pub(super) fn new(all_steps: u64, automata: u64, texts: Asked) -> Self {
        Self { steps: 0, all_steps, automata, texts, depth: 0, choices: 0, held: 0, examples: HashMap::new() }
    }

    /// Searches for a value, within the steps of one search.
    pub(super) fn search(&mut self, formulas: Vec<Formula<'_>>) -> Outcome {
        self.bounded(|solver| solver.solve(formulas))
    }

    /// Runs a search within the steps of one search.
    pub(super) fn bounded(&mut self, look: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let steps = STEPS.min(self.all_steps);
        if steps == 0 {
            return Outcome::Unknown("budget".to_owned());
        }
        self.steps = steps;
        self.depth = 0;
        self.choices = 0;
        self.held = 0;
        let outcome = look(self);
        self.all_steps -= steps - self.steps;
        outcome
    }

    /// Returns the questions about strings, with their answers.
    pub(super) fn into_texts(self) -> Asked {
        self.texts
    }

    /// Steps left for searches, and for automata.
    pub(super) fn left(&self) -> (u64, u64) {
        (self.all_steps, self.automata)
    }

    /// Spends steps of all searches on this many copies made outside of one; false if none are left.
    pub(super) fn spend_outside(&mut self, copies: u64) -> bool {
        self.all_steps = self.all_steps.saturating_sub(copies.div_ceil(COPIES));
        self.all_steps > 0
    }

    /// Spends one step, and those for this many copies; false if none are left.
    pub(super) fn spend(&mut self, copies: u64) -> bool {
        let (left, enough) = match self.steps.checked_sub(1 + copies / COPIES) {
            Some(left) => (left, true),
            None => (0, false),
        };
        self.steps = left;
        enough
    }

    /// Spends the steps for copies of a value; false if they would exceed the size of an example.
    pub(super) fn spend_on(&mut self, value: &Value, copies: i64) -> bool {
        let size = size_of(value);
        size.saturating_mul(u64::try_from(copies).unwrap_or(0)) <= MOST_VALUES && self.spend(size)
    }

    pub(super) fn solve(&mut self, formulas: Vec<Formula<'_>>) -> Outcome {
        if self.depth > 2 * MAX_DEPTH {
            return Outcome::Unknown("depth".to_owned());
        }
        self.depth += 1;
        let mut constraints = Constraints::new();
        formulas.into_iter().for_each(|formula| constraints.add(formula));
        let outcome = self.meet(constraints);
        self.depth -= 1;
        outcome
    }

    /// A cached example of a field's stored value.
    pub(super) fn example_of<'s>(&mut self, schema: &'s Schema, formula: Formula<'s>) -> Outcome {
        let address = std::ptr::from_ref(schema) as usize;
        if let Some(known) = self.examples.get(&address) {
            let known = known.clone();
            let size = if let Outcome::Found(value) = &known { size_of(value) } else { 0 };
            return if self.spend(size) { known } else { Outcome::Unknown("budget".to_owned()) };
        }
        let outcome = self.solve(vec![formula]);
        // A search that ran out of budget may succeed next time.
        if !matches!(&outcome, Outcome::Unknown(_)) {
            self.examples.insert(address, outcome.clone());
        }
        outcome
    }

    /// Tries the open choices, depth first.
    pub(super) fn meet(&mut self, mut constraints: Constraints<'_>) -> Outcome {
        if !self.spend(0) {
            return Outcome::Unknown("budget".to_owned());
        }
        if constraints.are_contradictory() {
            return Outcome::Empty;
        }
        let Some(ways) = constraints.choices.pop() else { return self.each_type(&constraints) };
        let weight = ways.iter().chain(constraints.choices.iter().flatten()).map(Formula::weight).sum();
        if self.choices == MOST_CHOICES || self.held + weight > MOST_HELD {
            return Outcome::Unknown("budget".to_owned());
        }
        self.choices += 1;
        self.held += weight;
        let mut outcome = Outcome::Empty;
        for way in ways {
            if !self.spend(weight) {
                outcome = Outcome::Unknown("budget".to_owned());
                break;
            }
            let mut chosen = constraints.clone();
            chosen.add(way);
            match (self.meet(chosen), &outcome) {
                (found @ Outcome::Found(_), _) => {
                    outcome = found;
                    break;
                }
                (unknown @ Outcome::Unknown(_), Outcome::Empty) => outcome = unknown,
                _ => {}
            }
        }
        self.choices -= 1;
        self.held -= weight;
        outcome
    }

    fn each_type(&mut self, constraints: &Constraints<'_>) -> Outcome {
        if let Some(values) = &constraints.values {
            return one_of(values, constraints);
        }
        let mut unknown = None;
        for kind in Types::EACH.into_iter().filter(|kind| constraints.types.has(*kind)) {
            match self.of_type(kind, constraints) {
                Outcome::Empty => {}
                found @ Outcome::Found(_) => return found,
                Outcome::Unknown(reason) => unknown = unknown.or(Some(reason)),
            }
        }
        unknown.map_or(Outcome::Empty, Outcome::Unknown)
    }

    fn of_type(&mut self, kind: Types, constraints: &Constraints<'_>) -> Outcome {
        let excepted = |value: &Value| is_excepted(value, constraints);
        match kind {
            Types::NULL if !excepted(&Value::Null) => Outcome::Found(Value::Null),
            Types::BOOLEAN => {
                let value = [true, false].into_iter().map(Value::Bool).find(|value| !excepted(value));
                value.map_or(Outcome::Empty, Outcome::Found)
            }
            Types::WHOLE | Types::FRACTION => {
                let except = ValueSet::of(constraints.not_values.iter().flat_map(|values| values.iter()));
                constraints.number.example(kind, &except)
            }
            Types::STRING => self.texts.example(&constraints.text, &constraints.not_values, &mut self.automata),
            Types::ARRAY => self.list(constraints),
            Types::OBJECT => self.object(constraints),
            _ => Outcome::Empty,
        }
    }
}

/// The number of values in a value, including itself.
pub(super) fn size_of(value: &Value) -> u64 {
    if !value.is_object() && !value.is_array() {
        return 1;
    }
    let mut open = vec![value];
    let mut size = 0;
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    size
}

fn one_of(values: &Rc<Vec<Value>>, constraints: &Constraints<'_>) -> Outcome {
    let mut unknown = false;
    let steps = Cell::new(STEPS);
    // A scan per value would repeat this work.
    let excepted = ValueSet::of(constraints.not_values.iter().flat_map(|values| values.iter()));
    let constraints = &Constraints { values: None, not_values: Vec::new(), ..constraints.clone() };
    for value in values.iter().filter(|value| !excepted.contains(value)) {
        match admits(constraints, value, &steps) {
            Some(true) => return Outcome::Found(value.clone()),
            Some(false) => {}
            None => unknown = true,
        }
    }
    if unknown { Outcome::Unknown("enum".to_owned()) } else { Outcome::Empty }
}
