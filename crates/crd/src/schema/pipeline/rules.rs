//! `x-kubernetes-validations`: which rules the server evaluates on which values, and which failures it ratchets.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`; what is forgiven: KEP-4008.

use serde_json::Value;

use super::correlation::{OldItems, is_unchanged, old_field};
use super::{Findings, Path, Server};
use crate::schema::cel::{Program, Truth};
use crate::schema::model::{CelRule, Schema};

/// Evaluates all rules of a schema.
pub(super) fn validate(schema: &Schema, server: Server, object: &Value, old: Option<&Value>) -> Findings {
    let mut validator = Validator { server, findings: Findings::default(), path: Path::new(), cost: 0 };
    validator.value(schema, schema, Node { value: object, old, equal: Equality::root(old, server) });
    validator.findings
}

struct Validator {
    server: Server,
    findings: Findings,
    path: Path,
    /// Cost of all rules so far.
    cost: u64,
}

/// Maximum cost of all rules of an object (k8s.io/apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudget`).
const OBJECT_LIMIT: u64 = 10_000_000;

/// Decides whether a failed rule is ratcheted: the nearest old value that correlates with this one.
#[derive(Clone, Copy)]
struct Equality<'v> {
    current: Option<&'v Value>,
    /// The nearest ancestor with an old value: its schema, the old value, the new value.
    parent: Option<(&'v Schema, &'v Value, &'v Value)>,
}

impl<'v> Equality<'v> {
    fn root(old: Option<&'v Value>, server: Server) -> Self {
        Self { current: old.filter(|_| server.ratchets()), parent: None }
    }

    fn step(self, schema: &'v Schema, value: &'v Value, child: Option<&'v Value>) -> Self {
        match self.current {
            None => self,
            Some(old) => Self { current: child, parent: Some((schema, old, value)) },
        }
    }

    fn forgives(self, schema: &Schema, value: &Value) -> bool {
        match (self.current, self.parent) {
            (Some(old), _) => is_unchanged(schema, old, value),
            (None, Some((schema, old, value))) => is_unchanged(schema, old, value),
            (None, None) => false,
        }
    }
}

#[derive(Clone, Copy)]
struct Node<'v> {
    value: &'v Value,
    old: Option<&'v Value>,
    equal: Equality<'v>,
}

impl Validator {
    /// `rules` is the schema whose rules are evaluated: `schema` itself or one of its `allOf`.
    fn value<'v>(&mut self, rules: &'v Schema, schema: &'v Schema, node: Node<'v>) {
        let Node { value, old, equal } = node;
        if value.is_null() {
            return;
        }
        for rule in &rules.rules {
            self.rule(rule, schema, node);
        }
        for branch in &rules.all_of {
            let equal = Equality { current: None, parent: equal.parent };
            self.value(branch, schema, Node { value, old, equal });
        }
        match value {
            Value::Array(items) => {
                let (Some(rules), Some(item_schema)) = (&rules.items, &schema.items) else { return };
                let old_items = OldItems::of(schema, old);
                let correlated = OldItems::of(schema, equal.current);
                for (index, item) in items.iter().enumerate() {
                    let equal = equal.step(schema, value, correlated.get(item));
                    self.path.push(index.into());
                    self.value(rules, item_schema, Node { value: item, old: old_items.get(item), equal });
                    self.path.pop();
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    let pair = match (rules.properties.get(key), schema.properties.get(key)) {
                        (Some(rules), Some(schema)) => Some((rules, schema)),
                        (None, None) => rules.additional_schema().zip(schema.additional_schema()),
                        _ => None,
                    };
                    let Some((rules, item_schema)) = pair else { continue };
                    let is_type = equal.parent.is_none() && matches!(key.as_str(), "kind" | "apiVersion");
                    let equal = if equal.current.is_some() && is_type {
                        Equality { current: None, parent: None }
                    } else {
                        equal.step(schema, value, old_field(schema, equal.current, key))
                    };
                    let old = old.and_then(|old| old.get(key));
                    self.path.push(key.as_str().into());
                    self.value(rules, item_schema, Node { value: item, old, equal });
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn rule(&mut self, rule: &CelRule, schema: &Schema, node: Node<'_>) {
        const KEYWORD: &str = "x-kubernetes-validations";
        let Node { value, old, equal } = node;
        if rule.rule.trim().is_empty() {
            return;
        }
        let program = match Program::shared(rule) {
            Ok(program) => program,
            Err(error) => {
                let reason = format!("the rule {} cannot be read: {error}", rule.rule);
                return self.findings.unevaluated(&self.path, KEYWORD, reason);
            }
        };
        let is_transition = program.uses_old_self();
        // Null counts as absent.
        let old = old.filter(|old| !old.is_null());
        if is_transition && old.is_none() && !(rule.optional_old_self && self.server.ratchets()) {
            return;
        }
        let (mut truth, cost) = program.evaluate_with_cost(schema, value, old);
        self.cost = self.cost.saturating_add(cost);
        if self.cost > OBJECT_LIMIT {
            truth = Truth::Error("the rules of the object cost more than the server allows together".to_owned());
        }
        if truth == Truth::True || matches!(truth, Truth::False) && !is_transition && equal.forgives(schema, value) {
            return;
        }
        match truth {
            Truth::True => {}
            Truth::False if !rule.message.is_empty() => {
                self.findings.broken_rule(&self.path, rule, rule.message.clone());
            }
            Truth::False => self.findings.broken_rule(&self.path, rule, format!("it fails the rule {}", rule.rule)),
            Truth::Error(message) => {
                let message = format!("the rule {} cannot be evaluated: {message}", rule.rule);
                self.findings.broken_rule(&self.path, rule, message);
            }
            Truth::Unknown(why) => {
                let reason = format!("the rule {} cannot be evaluated here: {why}", rule.rule);
                self.findings.unevaluated(&self.path, KEYWORD, reason);
            }
        }
    }
}
