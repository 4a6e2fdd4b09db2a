//! Rules that a policy brings with it, as `preflightRules` of a Config writes them. They run beside the built-in ones,
//! with the same names, modes, waivers and reports.

mod cel;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::facts::{ChangeSet, Facts, Needs};
use crate::reader::{Fields, Node};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};
use crate::source::Position;
use crate::{finding, registry};

pub use cel::CelRule;
pub use request::Request;

/// The keys of an entry of `preflightRules` that brings its own rule, besides `name`, `config` and `resourceMatchers`.
pub const KEYS: &[&str] = &["description", "cel", "message", "messageExpression", "params", "operations"];

/// The keys that say what such a rule does; an entry with any of them is one.
const BODIES: &[&str] = &["cel"];

/// Longest name, which is that of a label value.
const LONGEST_NAME: usize = 63;

/// What a rule needs to know of the Config around it.
pub trait Scope: fmt::Debug + Send + Sync {
    /// Whether the rule judges the object.
    fn covers(&self, object: &Value) -> bool;
    /// The object without its secret values; `None` if it has none.
    fn masked(&self, object: &Value) -> Option<Value>;
}

/// One definition of a rule. Several apps of one policy may each define the same rule; then all of them hold.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Name of the rule.
    pub name: String,
    /// One-line summary; may be empty.
    pub description: String,
    /// The requests that it judges.
    pub operations: Vec<Request>,
    /// The expression.
    pub cel: CelRule,
    /// The objects that it judges; all of them without one.
    pub scope: Option<Arc<dyn Scope>>,
    /// Position of the entry.
    pub position: Position,
}

impl Definition {
    /// Reads an entry of `preflightRules`. `None` if it configures another rule instead of defining one.
    #[must_use]
    pub fn of_entry(fields: &Fields<'_>) -> Option<Self> {
        if !Self::is_one(fields) {
            for key in KEYS.iter().filter(|key| fields.optional(key).is_some()) {
                fields.node().note(format!("`{key}` belongs to a rule with `cel`, which is missing"), &[]);
            }
            return None;
        }
        let name = fields.optional("name").and_then(|node| rule_name(&node)).unwrap_or_default();
        let operations = match fields.optional("operations") {
            None => vec![Request::Create, Request::Update],
            Some(node) => {
                let words = Request::ALL.map(|request| (request.as_str(), request));
                node.filled_list("operation").iter().filter_map(|node| node.choice(&words)).collect()
            }
        };
        Some(Self {
            name,
            description: fields.text("description").unwrap_or_default(),
            operations,
            cel: CelRule::of_entry(fields)?,
            scope: None,
            position: fields.node().position(),
        })
    }

    /// Whether an entry defines a rule, rightly or wrongly.
    #[must_use]
    pub fn is_one(fields: &Fields<'_>) -> bool {
        BODIES.iter().any(|key| fields.optional(key).is_some())
    }

    /// The same rule for the objects of a scope.
    #[must_use]
    pub fn within(self, scope: Arc<dyn Scope>) -> Self {
        Self { scope: Some(scope), ..self }
    }

    fn covers(&self, object: &Value) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.covers(object))
    }

    fn masked(&self, object: &Value) -> Option<Value> {
        self.scope.as_ref().and_then(|scope| scope.masked(object))
    }

    /// What the definition says, without its position.
    fn content(&self) -> String {
        let Self { name, description, operations, cel, scope, position: _ } = self;
        format!("{name:?} {description:?} {operations:?} {cel:?} {scope:?}")
    }

    /// Whether both definitions say the same.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

/// The name of a rule, which no other rule and nothing else in a report has.
fn rule_name(node: &Node<'_>) -> Option<String> {
    let name = node.filled_text()?;
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= LONGEST_NAME
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_plain {
        return node.malformed("a name of at most 63 letters, digits, `-`, `_` and `.` that begins with a letter", &[]);
    }
    let reserved = [finding::SERVER, finding::WAIVERS, registry::POLICY, registry::NONE];
    if registry::find(name).is_ok() || reserved.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return node.fail(format!("\"{name}\" is taken; a rule of your own needs another name"), &[]);
    }
    Some(name.to_owned())
}

/// A rule that a policy brings with it.
#[derive(Debug)]
struct CustomRule {
    meta: &'static RuleMeta,
    definitions: Vec<Definition>,
}

/// The rules of these definitions, in their order.
#[must_use]
pub fn rules(definitions: &[Definition]) -> Vec<&'static dyn Rule> {
    let mut by_name: Vec<(&str, Vec<&Definition>)> = Vec::new();
    for definition in definitions {
        match by_name.iter_mut().find(|(name, _)| *name == definition.name) {
            Some((_, same)) if same.iter().any(|other| other.says_the_same(definition)) => {}
            Some((_, same)) => same.push(definition),
            None => by_name.push((&definition.name, vec![definition])),
        }
    }
    by_name.into_iter().map(|(_, definitions)| known(&definitions)).collect()
}

/// The rule of these definitions. Rules live as long as the program, as the built-in ones do: a policy has few, and the
/// same definitions are one rule however often they are read.
fn known(definitions: &[&Definition]) -> &'static dyn Rule {
    static KNOWN: Mutex<BTreeMap<String, &'static CustomRule>> = Mutex::new(BTreeMap::new());
    let content: String = definitions.iter().map(|definition| definition.content() + "\n").collect();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(content).or_insert_with(|| {
        let definitions: Vec<Definition> = definitions.iter().map(|definition| (*definition).clone()).collect();
        Box::leak(Box::new(CustomRule { meta: Box::leak(Box::new(meta(&definitions))), definitions }))
    })
}

fn meta(definitions: &[Definition]) -> RuleMeta {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let name = definitions.first().map_or("", |definition| &definition.name);
    let described = definitions.iter().map(|definition| definition.description.as_str()).find(|text| !text.is_empty());
    let summary =
        described.map_or_else(|| format!("a rule of the policy: {}", definitions[0].cel.summary()), str::to_owned);
    let summary = leak(summary);
    let docs: Vec<String> = definitions.iter().map(Definition::markdown).collect();
    RuleMeta {
        name: leak(name.to_owned()),
        summary,
        docs: leak(docs.join("\n\n")),
        checks: Box::leak(Box::new([(cel::CHECK, summary)])),
        settings: &[],
        needs: "nothing of its own: it reads the planned changes",
        default: true,
        on_directory: true,
    }
}

impl Definition {
    /// The definition in Markdown.
    fn markdown(&self) -> String {
        let operations: Vec<&str> = self.operations.iter().map(|request| request.as_str()).collect();
        format!("{}\n\nIt judges requests to {}.", self.cel.markdown(), operations.join(", "))
    }
}

impl Rule for CustomRule {
    fn meta(&self) -> &'static RuleMeta {
        self.meta
    }

    fn is_custom(&self) -> bool {
        true
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        Needs::new()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, _memory: &mut Memory) -> Checked {
        let findings = self.definitions.iter().flat_map(|definition| cel::check(definition, facts)).collect();
        Checked::Done(Judgement { findings, unable: Vec::new() })
    }
}
