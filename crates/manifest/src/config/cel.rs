//! Expressions in Config: the outcomes of a wait rule, and the value that a rebase rule computes.

use pushback_crd::schema::cel::admission::{Expression, Variable};
use pushback_crd::schema::cel::{Computed, Gives, Truth};
use serde_json::Value;

/// Longest message that an expression gives, in characters.
const LONGEST_MESSAGE: usize = 500;

/// Variables of an expression that may have any value.
#[must_use]
pub fn variables(names: &[&'static str]) -> Vec<Variable> {
    names.iter().map(|name| Variable { name, schema: None }).collect()
}

/// What an object is waiting for, in the words of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has failed for good.
    Failed,
    /// It is not ready yet.
    InProgress,
    /// It is ready.
    Current,
    /// It is not ready yet, but dependents may proceed.
    Unblock,
}

/// `cel` of a wait rule: the first expression that is true decides, in this order.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// `failed`.
    pub failed: Option<Expression>,
    /// `inProgress`.
    pub in_progress: Option<Expression>,
    /// `current`.
    pub current: Option<Expression>,
    /// `unblock`.
    pub unblock: Option<Expression>,
    /// `message`.
    pub message: Option<Expression>,
}

impl Outcomes {
    /// The variables of its expressions.
    pub const VARIABLES: &'static [&'static str] = &["object"];

    /// The outcome for an object, and what to say; `shown` is the object without secret values. An expression that
    /// fails decides nothing and neither does any after it: a status that is not there yet may still come.
    #[must_use]
    pub fn of(&self, object: &Value, shown: &Value) -> (Outcome, String) {
        let asked = [
            (Outcome::Failed, "failed", &self.failed),
            (Outcome::InProgress, "inProgress", &self.in_progress),
            (Outcome::Current, "current", &self.current),
            (Outcome::Unblock, "unblock", &self.unblock),
        ];
        for (outcome, name, expression) in asked {
            let Some(expression) = expression else { continue };
            match expression.decide(&[("object", object)]) {
                Truth::True => return (outcome, self.says(shown).unwrap_or_else(|| format!("its rule says {name}"))),
                Truth::False => {}
                Truth::Error(_) | Truth::Unknown(_) => {
                    let why = match expression.decide(&[("object", shown)]) {
                        Truth::Error(why) | Truth::Unknown(why) => why,
                        Truth::True | Truth::False => "a secret value does not fit".to_owned(),
                    };
                    return (Outcome::InProgress, format!("`{name}` of its rule cannot be evaluated: {why}"));
                }
            }
        }
        (Outcome::InProgress, self.says(shown).unwrap_or_else(|| "no outcome of its rule is true".to_owned()))
    }

    fn says(&self, shown: &Value) -> Option<String> {
        match self.message.as_ref()?.compute(&[("object", shown)]) {
            Computed::Value(Value::String(text)) => {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let line: String = line.chars().take(LONGEST_MESSAGE).collect();
                (!line.is_empty()).then_some(line)
            }
            _ => None,
        }
    }
}

/// The type that an expression of this name has to give.
#[must_use]
pub fn gives(key: &str) -> Gives {
    if key == "message" { Gives::Text } else { Gives::Truth }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcomes(keys: &[(&str, &str)]) -> Outcomes {
        let expression = |key: &str| {
            let (_, text) = keys.iter().find(|(name, _)| *name == key)?;
            Some(Expression::compile(text, &variables(Outcomes::VARIABLES), Some(gives(key))).expect("valid"))
        };
        Outcomes {
            failed: expression("failed"),
            in_progress: expression("inProgress"),
            current: expression("current"),
            unblock: expression("unblock"),
            message: expression("message"),
        }
    }

    #[test]
    fn the_first_that_is_true_decides_and_a_failing_one_waits() {
        let rule = outcomes(&[
            ("failed", "object.status.phase == 'Broken'"),
            ("inProgress", "object.status.phase == 'Moving'"),
            ("current", "object.status.phase in ['Fine', 'Moving']"),
            ("unblock", "object.status.phase == 'Begun'"),
            ("message", "'phase ' + object.status.phase"),
        ]);
        let given = |status: Value| {
            let object = json!({"kind": "It", "status": status});
            rule.of(&object, &object)
        };
        assert_eq!(given(json!({"phase": "Broken"})), (Outcome::Failed, "phase Broken".to_owned()));
        assert_eq!(given(json!({"phase": "Moving"})), (Outcome::InProgress, "phase Moving".to_owned()));
        assert_eq!(given(json!({"phase": "Fine"})), (Outcome::Current, "phase Fine".to_owned()));
        assert_eq!(given(json!({"phase": "Begun"})), (Outcome::Unblock, "phase Begun".to_owned()));
        assert_eq!(given(json!({"phase": "Odd"})), (Outcome::InProgress, "phase Odd".to_owned()));
        let (outcome, message) = given(json!({}));
        assert_eq!(outcome, Outcome::InProgress);
        assert_eq!(message, "`failed` of its rule cannot be evaluated: no such key: phase");
    }

    #[test]
    fn secret_values_decide_and_are_not_said() {
        let rule = outcomes(&[("current", "object.data.a == 'x'"), ("message", "'a is ' + object.data.a")]);
        let (object, shown) = (json!({"data": {"a": "x"}}), json!({"data": {"a": "(secret)"}}));
        assert_eq!(rule.of(&object, &shown), (Outcome::Current, "a is (secret)".to_owned()));
    }
}
