//! The rules of one version: whether the API server compiles them, their estimated cost, and their `fieldPath`.
//!
//! Follows `ValidateCustomResourceDefinitionOpenAPISchema` and the cost limits in k8s.io/apiextensions-apiserver
//! `pkg/apis/apiextensions/validation`.

use std::rc::Rc;

use serde_json::Value;

use super::path::{FieldPath, resolve};
use super::{Collector, at, field, items, text};
use crate::schema::cel::{Declaration, Gives, Objection, cost_of, newer_than};

/// Maximum cost of a rule, and of all rules of a version together.
const MOST: u64 = 10_000_000;
const MOST_TOGETHER: u64 = 100_000_000;

/// Nodes below this depth are not checked.
const MAX_DEPTH: usize = 100;

/// Checks the rules of a schema that is valid otherwise.
pub(super) fn check(found: &mut Collector, schema: &Value) {
    let mut rules = Rules { found, together: 0, is_known: true };
    rules.node(schema, Node { declaration: None, is_resource: true, count: Some(1), depth: 0 });
    let Rules { together, is_known, .. } = rules;
    if together > MOST_TOGETHER {
        found.here("the estimated cost of all rules together exceeds what the API server allows");
    } else if !is_known && together > MOST_TOGETHER / 2 {
        found.perhaps("the rules may cost more together than the API server allows".to_owned());
    }
}

struct Rules<'f> {
    found: &'f mut Collector,
    together: u64,
    /// Whether the cost of every rule is known so far.
    is_known: bool,
}

#[derive(Clone)]
struct Node {
    /// What rules see here, if a rule further up has needed it already.
    declaration: Option<Rc<Declaration>>,
    is_resource: bool,
    /// The maximum number of occurrences in one object, if bounded.
    count: Option<u64>,
    depth: usize,
}

impl Rules<'_> {
    fn node(&mut self, schema: &Value, mut node: Node) {
        if !schema.is_object() || node.depth > MAX_DEPTH {
            return;
        }
        if items(schema, "x-kubernetes-validations").next().is_some() {
            if node.declaration.is_none() {
                node.declaration = Declaration::of(schema, node.is_resource);
            }
            self.found.known_field("x-kubernetes-validations");
            self.found.path.push("x-kubernetes-validations".into());
            match &node.declaration {
                Some(declaration) => {
                    for (index, rule) in items(schema, "x-kubernetes-validations") {
                        self.found.path.push(index.into());
                        self.rule(schema, rule, declaration, node.count);
                        self.found.path.pop();
                    }
                }
                None => self.found.here("rules cannot see a value of this type"),
            }
            self.found.path.pop();
        }
        let below = |declaration: Option<Rc<Declaration>>, schema: &Value, count: Option<u64>| Node {
            declaration,
            is_resource: at(schema, "x-kubernetes-embedded-resource") == true,
            count,
            depth: node.depth + 1,
        };
        let times = |key: &str| {
            let most = field(schema, key).and_then(Value::as_f64)?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is cut at the ends")]
            node.count.map(|count| count.saturating_mul(most.max(0.0) as u64))
        };
        let has_free_keys = field(schema, "additionalProperties").is_some();
        let count = match text(schema, "type") {
            "object" if has_free_keys => times("maxProperties"),
            "array" => times("maxItems"),
            _ => node.count,
        };
        let declaration = node.declaration.as_ref();
        if let Some(properties) = field(schema, "properties").and_then(Value::as_object) {
            self.found.path.push("properties".into());
            for (name, property) in properties {
                let inner = declaration.and_then(|declaration| declaration.field(name)).cloned();
                self.found.path.push(name.as_str().into());
                self.node(property, below(inner, property, count));
                self.found.path.pop();
            }
            self.found.path.pop();
        }
        for key in ["additionalProperties", "items"] {
            if let Some(inner @ Value::Object(_)) = field(schema, key) {
                let held = declaration.and_then(|declaration| declaration.items()).cloned();
                self.found.path.push(key.into());
                self.node(inner, below(held, inner, count));
                self.found.path.pop();
            }
        }
    }

    fn rule(&mut self, schema: &Value, rule: &Value, declaration: &Rc<Declaration>, count: Option<u64>) {
        for key in ["messageExpression", "reason", "fieldPath"] {
            if !text(rule, key).is_empty() {
                self.found.known_field(key);
            }
        }
        if at(rule, "optionalOldSelf") == true {
            self.found.known_field("optionalOldSelf");
        }
        for key in ["rule", "messageExpression"] {
            self.known_functions(key, text(rule, key));
        }
        let path = text(rule, "fieldPath");
        match resolve(schema, path, true) {
            Ok(_) => {}
            Err(FieldPath::Unknown) => {
                self.perhaps("fieldPath", "whether the path is valid is not known here".to_owned())
            }
            Err(FieldPath::Invalid(why)) => self.found.at("fieldPath", format!("must be a valid path: {why}")),
        }
        let expression = text(rule, "rule");
        if expression.trim().is_empty() {
            return;
        }
        let optional_old_self = at(rule, "optionalOldSelf") == true;
        let asked = |expression: &str, gives: Gives| cost_of(expression, declaration, optional_old_self, gives);
        match asked(expression, Gives::Truth) {
            Ok(cost) => {
                let cost = cost.saturating_mul(count.unwrap_or_else(|| declaration.most_in_a_request()));
                self.costs("rule", cost);
            }
            // The server does not check the rest either.
            Err(Objection::Refused(why)) => return self.found.at("rule", format!("cannot be compiled: {why}")),
            Err(Objection::Unknown(why)) => {
                self.is_known = false;
                self.perhaps("rule", why);
            }
        }
        let message = text(rule, "messageExpression");
        if message.is_empty() {
            return;
        }
        match asked(message, Gives::Text) {
            Ok(cost) => self.costs("messageExpression", cost),
            Err(Objection::Refused(why)) => self.found.at("messageExpression", format!("cannot be compiled: {why}")),
            Err(Objection::Unknown(why)) => {
                self.is_known = false;
                self.perhaps("messageExpression", why);
            }
        }
    }

    /// Adds a problem for each function that the server is too old for.
    fn known_functions(&mut self, key: &str, expression: &str) {
        let minor = self.found.server.minor;
        for (name, since) in newer_than(minor, expression) {
            self.found.at(key, format!("cannot be compiled: {name} needs Kubernetes 1.{since}, not 1.{minor}"));
        }
    }

    fn costs(&mut self, key: &str, cost: u64) {
        self.together = self.together.saturating_add(cost);
        if cost > MOST {
            self.found.at(
                key,
                "its estimated cost exceeds what the API server allows; bound the lists, maps and strings that it goes \
                 through with maxItems, maxProperties and maxLength",
            );
        }
    }

    fn perhaps(&mut self, key: &str, why: String) {
        self.found.below(key, |found| found.perhaps(why));
    }
}
