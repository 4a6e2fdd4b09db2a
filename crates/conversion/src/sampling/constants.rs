//! What a plan says of values: the constants of its expressions, the names of its enumerations, and the fields that it
//! reads. A value next to a constant is where an expression changes its mind.

use std::collections::BTreeSet;

use pushback_crd::schema::cel::{Program, Step};
use serde_json::{Value, json};

use crate::path::{FieldPath, FieldStep};
use crate::plan::ConversionPlan;

/// Maximum number of values of each type.
const MOST: usize = 48;
/// Largest constant that is also taken for a length.
const LONGEST: u64 = 1_024;

/// The constants of a plan.
#[derive(Debug, Default)]
pub(super) struct Constants {
    /// Numbers, each with its neighbours.
    pub(super) numbers: Vec<Value>,
    /// Strings.
    pub(super) texts: Vec<String>,
    /// Lengths and counts, each with its neighbours.
    pub(super) sizes: Vec<usize>,
    /// Fields that expressions read.
    pub(super) read: BTreeSet<FieldPath>,
}

impl Constants {
    pub(super) fn of(plan: &ConversionPlan) -> Self {
        let mut constants = Self::default();
        for (at, cel) in plan.expressions() {
            let Ok(program) = Program::compile(cel) else { continue };
            program.constants().iter().for_each(|value| constants.add(value));
            constants.read.extend(program.hints().paths.keys().map(|path| below(at, path)));
        }
        for (old, new) in plan.steps.iter().flat_map(|step| &step.enums).flat_map(|entry| &entry.value) {
            constants.text(old);
            constants.text(new);
        }
        constants
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.text(text);
                // Of a pattern, a separator or a prefix, the text itself rarely is an interesting value, but a part is.
                self.text(&format!("{text}a"));
            }
            Value::Number(_) => {
                neighbours(value).into_iter().for_each(|number| self.number(number));
                if let Some(size) = value.as_u64().filter(|size| *size <= LONGEST) {
                    self.size(size);
                }
            }
            _ => {}
        }
    }

    fn number(&mut self, number: Value) {
        if self.numbers.len() < MOST && !self.numbers.contains(&number) {
            self.numbers.push(number);
        }
    }

    fn text(&mut self, text: &str) {
        if self.texts.len() < MOST && !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_owned());
        }
    }

    fn size(&mut self, size: u64) {
        let size = usize::try_from(size).unwrap_or_default();
        for size in [size, size + 1, size.saturating_sub(1)] {
            if self.sizes.len() < MOST && !self.sizes.contains(&size) {
                self.sizes.push(size);
            }
        }
    }
}

/// A number, the next one and the one before.
pub(super) fn neighbours(number: &Value) -> Vec<Value> {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => {
            vec![json!(whole.saturating_add(1)), json!(whole), json!(whole.saturating_sub(1))]
        }
        (None, Some(float)) => vec![json!(float + 1.0), json!(float), json!(float - 1.0)],
        (None, None) => Vec::new(),
    }
}

fn below(at: &FieldPath, path: &[Step]) -> FieldPath {
    path.iter().fold(at.clone(), |at, step| match step {
        Step::Field(name) => at.field(name),
        Step::Item => at.each(),
    })
}

/// Whether one of the paths leads to the other, or to something in it.
pub(super) fn overlap(one: &FieldPath, other: &FieldPath) -> bool {
    let same = |(one, other): (&FieldStep, &FieldStep)| one == other;
    one.steps().iter().zip(other.steps()).all(same)
}
