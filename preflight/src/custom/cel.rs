//! Rules that are CEL expressions over a change, with the variables of a ValidatingAdmissionPolicy where the same thing is
//! meant.

use pushback_crd::schema::cel::admission::{Expression, Variable};
use pushback_crd::schema::cel::{Computed, Gives, Step, Truth};
use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::reader::{Fields, Node};
use pushback_objects::source::{PathSegment, display_path, value_at};
use serde_json::{Value, json};

use super::Definition;
use super::request::Asked;
use crate::facts::Facts;

/// Name of the only check of such a rule.
pub(super) const CHECK: &str = "cel";

/// The variables, for hints.
const VARIABLES: &str = "the variables are object, oldObject, request, change and params";

/// Longest message that an expression gives, in bytes: what the API server takes.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// Most values of one path that a waiver is bound to.
const MOST_VALUES: usize = 1000;

/// A rule as an expression.
#[derive(Clone, Debug)]
pub struct CelRule {
    /// True for every change that is allowed.
    expression: Expression,
    /// What it says where the expression is false; may be empty.
    message: String,
    /// Computes what it says instead.
    message_expression: Option<Expression>,
    /// Whether expressions need the variables that are computed for each change.
    reads: Reads,
}

#[derive(Clone, Copy, Debug)]
struct Reads {
    request: bool,
    change: bool,
}

fn variables() -> Vec<Variable> {
    let change = json!({"type": "object", "properties": {
        "operation": {"type": "string"}, "app": {"type": "string"},
    }});
    let any = |name| Variable { name, schema: None };
    vec![
        any("object"),
        any("oldObject"),
        any("params"),
        Variable { name: "request", schema: Some(Asked::schema()) },
        Variable { name: "change", schema: Some(change) },
    ]
}

fn expression(node: &Node<'_>, gives: Gives) -> Option<Expression> {
    let text = node.filled_text()?;
    Expression::compile(text, &variables(), Some(gives))
        .map_or_else(|error| node.fail(error.to_string(), &[VARIABLES]), Some)
}

impl CelRule {
    /// Reads the keys of an entry of `preflightRules`.
    pub(super) fn of_entry(fields: &Fields<'_>) -> Option<Self> {
        let rule = fields.optional("cel").and_then(|node| expression(&node, Gives::Truth));
        let message = fields.text("message").unwrap_or_default();
        let message_expression = match fields.optional("messageExpression") {
            None => None,
            Some(node) => Some(expression(&node, Gives::Text)?),
        };
        let expression = rule?;
        let reads = |name: &str| {
            expression.reads(name) || message_expression.as_ref().is_some_and(|expression| expression.reads(name))
        };
        let reads = Reads { request: reads("request"), change: reads("change") };
        Some(Self { expression, message, message_expression, reads })
    }

    /// One line about it.
    pub(super) fn summary(&self) -> String {
        if self.message.is_empty() { one_line(self.expression.text()) } else { one_line(&self.message) }
    }

    /// The rule in Markdown.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("This has to be true:\n\n```cel\n{}\n```", self.expression.text().trim_end());
        if !self.message.is_empty() {
            text += &format!("\n\nOtherwise: {}", one_line(&self.message));
        }
        text
    }
}

/// Judges all changes by one definition.
pub(super) fn check(definition: &Definition, rule: &CelRule, facts: &Facts) -> Vec<Finding> {
    let asked = definition.asked(&facts.changes);
    asked.filter_map(|asked| judge(definition, rule, &asked, &facts.changes.app)).collect()
}

/// The variables that are computed for each change, as far as the rule reads them.
struct PerChange {
    request: Value,
    change: Value,
}

impl PerChange {
    fn of(rule: &CelRule, asked: &Asked<'_>, app: &str) -> Self {
        let change = || json!({"operation": asked.change.operation, "app": app});
        Self {
            request: if rule.reads.request { asked.variable() } else { Value::Null },
            change: if rule.reads.change { change() } else { Value::Null },
        }
    }
}

/// The variables of a rule's expressions.
fn values<'v>(
    object: &'v Value,
    old: &'v Value,
    definition: &'v Definition,
    computed: &'v PerChange,
) -> [(&'static str, &'v Value); 5] {
    let PerChange { request, change } = computed;
    [("object", object), ("oldObject", old), ("params", &definition.params), ("request", request), ("change", change)]
}

fn judge(definition: &Definition, rule: &CelRule, asked: &Asked<'_>, app: &str) -> Option<Finding> {
    let computed = PerChange::of(rule, asked, app);
    let null = Value::Null;
    let actual = values(asked.object.unwrap_or(&null), asked.old.unwrap_or(&null), definition, &computed);
    let truth = rule.expression.decide(&actual);
    if truth == Truth::True {
        return None;
    }
    // Whatever is shown is computed from objects without their secret values.
    let masked = |object: Option<&Value>| object.and_then(|object| definition.masked(object));
    let (object, old) = (masked(asked.object), masked(asked.old));
    let hides = object.is_some() || old.is_some();
    let object = object.as_ref().or(asked.object).unwrap_or(&null);
    let old = old.as_ref().or(asked.old).unwrap_or(&null);
    let shown = values(object, old, definition, &computed);
    let (verdict, message) = if truth == Truth::False {
        (Verdict::Breaking, rule.message_for(&shown))
    } else {
        // The reason may quote a value.
        let message = match if hides { rule.expression.decide(&shown) } else { truth } {
            Truth::Error(why) => failed(&why),
            Truth::Unknown(why) => undecided(&why),
            Truth::True | Truth::False => failed("a secret value does not fit"),
        };
        (Verdict::Unknown, message)
    };
    let mut finding = Finding::new(&definition.name, CHECK, verdict, asked.change.object.clone(), message);
    let fields = rule.fields();
    let place = match fields.as_slice() {
        [only] => plain(only),
        _ => None,
    };
    finding = finding.at(asked.change.locate(place.as_deref().unwrap_or_default()));
    if let Some(place) = place.filter(|place| !place.is_empty()) {
        finding = finding.path(display_path(&place)).values(None, value_at(object, &place).cloned());
    }
    // What the server adds to an object changes from run to run; what somebody wrote is what was accepted.
    let desired =
        asked.change.desired.as_deref().map(|desired| definition.masked(desired).unwrap_or_else(|| desired.clone()));
    let written = desired.unwrap_or_default();
    let values: Vec<Value> = fields.iter().map(|path| values_at(&written, path)).collect();
    Some(finding.bound_to(&json!({
        "cel": rule.expression.normalised(), "params": definition.params, "request": asked.request.as_str(), "values": values,
    })))
}

fn failed(why: &str) -> String {
    format!("the expression cannot be evaluated: {why}")
}

/// The API server might come to a result.
fn undecided(why: &str) -> String {
    format!("whether the expression is true is not known here: {why}")
}

impl CelRule {
    /// What it says of a change that it refuses, as the API server chooses the words.
    fn message_for(&self, values: &[(&str, &Value)]) -> String {
        let computed = self.message_expression.as_ref().map(|expression| expression.compute(values));
        if let Some(Computed::Value(Value::String(text))) = computed {
            let text = text.trim();
            if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
                return text.to_owned();
            }
        }
        if self.message.is_empty() {
            format!("failed expression: {}", one_line(self.expression.text()))
        } else {
            one_line(&self.message)
        }
    }

    /// The fields of `object` whose values it uses.
    fn fields(&self) -> Vec<Vec<Step>> {
        let hints = self.expression.hints("object");
        hints.paths.into_iter().filter(|(_, hint)| hint.read && hint.whole).map(|(path, _)| path).collect()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The path, if it leads to one field only.
fn plain(path: &[Step]) -> Option<Vec<PathSegment>> {
    let segment = |step: &Step| match step {
        Step::Field(name) => Some(PathSegment::from(name.as_str())),
        Step::Item => None,
    };
    path.iter().map(segment).collect()
}

/// All values at a path.
fn values_at(value: &Value, path: &[Step]) -> Value {
    let mut found = vec![value];
    for step in path {
        found = found
            .into_iter()
            .flat_map(|value| match (step, value) {
                (Step::Field(name), value) => value.get(name).into_iter().collect::<Vec<_>>(),
                (Step::Item, Value::Array(items)) => items.iter().collect(),
                (Step::Item, Value::Object(entries)) => entries.values().collect(),
                (Step::Item, _) => Vec::new(),
            })
            .take(MOST_VALUES)
            .collect();
    }
    found.into_iter().cloned().collect()
}
