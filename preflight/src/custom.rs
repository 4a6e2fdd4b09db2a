//! Rules that a policy brings with it, as `preflightRules` of a Config writes them. They run beside the built-in ones,
//! with the same names, modes, waivers and reports.

mod cel;
mod exec;
mod request;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::facts::{ChangeSet, Facts, Need, Needs};
use crate::registry;
use crate::rule::{Checked, Judgement, Memory, ProgramCall, Rule, RuleMeta, Settings};

pub use cel::CelRule;
pub use exec::ExecRule;
use pushback_objects::finding;
use pushback_objects::reader::{Fields, Node};
use pushback_objects::source::Position;
use request::Asked;
pub use request::Request;

/// The keys of an entry of `preflightRules` that brings its own rule, besides `name`, `config` and `resourceMatchers`.
pub const KEYS: &[&str] = &["description", "cel", "message", "messageExpression", "exec", "params", "operations"];

/// The keys that say what such a rule does; an entry with any of them is one.
const BODIES: &[&str] = &["cel", "exec"];

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
    /// How it judges them.
    pub body: Body,
    /// What the rule can read besides the change.
    pub params: Value,
    /// Whether the user has named the file as a policy, so that its programs may run.
    pub is_trusted: bool,
    /// The objects that it judges; all of them without one.
    pub scope: Option<Arc<dyn Scope>>,
    /// Position of the entry.
    pub position: Position,
}

/// How a rule judges changes.
#[derive(Clone, Debug)]
pub enum Body {
    /// By an expression.
    Cel(CelRule),
    /// By a program.
    Exec(ExecRule),
}

impl Definition {
    /// Reads an entry of `preflightRules`. `None` if it configures another rule instead of defining one.
    #[must_use]
    pub fn of_entry(fields: &Fields<'_>) -> Option<Self> {
        if !Self::is_one(fields) {
            for key in KEYS.iter().filter(|key| fields.optional(key).is_some()) {
                fields.node().note(format!("`{key}` belongs to a rule with `cel` or `exec`, which is missing"), &[]);
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
        let body = match (fields.optional("cel"), fields.optional("exec")) {
            (Some(_), Some(exec)) => return exec.fail("a rule has either `cel` or `exec`, not both", &[]),
            (_, Some(exec)) => {
                for key in ["message", "messageExpression"].into_iter().filter(|key| fields.optional(key).is_some()) {
                    fields.node().note(format!("`{key}` belongs to `cel`; a program says itself what it finds"), &[]);
                }
                Body::Exec(ExecRule::of_entry(&exec)?)
            }
            _ => Body::Cel(CelRule::of_entry(fields)?),
        };
        let params = fields.optional("params").and_then(|node| node.map().cloned()).unwrap_or_default();
        Some(Self {
            name,
            description: fields.text("description").unwrap_or_default(),
            operations,
            body,
            params: params.into(),
            is_trusted: true,
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

    /// The same rule of a file that the user has not named as a policy.
    #[must_use]
    pub fn untrusted(self) -> Self {
        Self { is_trusted: false, ..self }
    }

    /// The requests of a plan that it judges, in their order.
    fn asked<'f>(&self, facts: &'f ChangeSet) -> impl Iterator<Item = Asked<'f>> {
        let is_judged = |asked: &Asked<'_>| {
            self.operations.contains(&asked.request) && asked.subject().is_some_and(|object| self.covers(object))
        };
        facts.changes.iter().flat_map(Asked::of).filter(is_judged)
    }

    fn covers(&self, object: &Value) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.covers(object))
    }

    fn masked(&self, object: &Value) -> Option<Value> {
        self.scope.as_ref().and_then(|scope| scope.masked(object))
    }

    /// What the definition says, without its position.
    fn content(&self) -> String {
        let Self { name, description, operations, body, params, is_trusted: _, scope, position: _ } = self;
        format!("{name:?} {description:?} {operations:?} {body:?} {params:?} {scope:?}")
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
    let reserved =
        [finding::SERVER, finding::STORAGE, finding::WAIVERS, registry::POLICY, registry::NONE, registry::DEFAULT];
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
    let content = |it: &&Definition| format!("{} {} {}\n", it.content(), it.is_trusted, it.position);
    let content: String = definitions.iter().map(content).collect();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(content).or_insert_with(|| {
        let definitions: Vec<Definition> = definitions.iter().map(|definition| (*definition).clone()).collect();
        Box::leak(Box::new(CustomRule { meta: Box::leak(Box::new(meta(&definitions))), definitions }))
    })
}

fn meta(definitions: &[Definition]) -> RuleMeta {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let name = definitions.first().map_or("", |definition| &definition.name);
    let summaries = definitions.iter().map(|definition| match &definition.body {
        _ if !definition.description.is_empty() => definition.description.clone(),
        Body::Cel(rule) => format!("a rule of the policy: {}", rule.summary()),
        Body::Exec(rule) => format!("a rule of the policy: {}", rule.summary()),
    });
    let summary = leak(summaries.collect::<Vec<_>>().remove(0));
    let docs: Vec<String> = definitions.iter().map(Definition::markdown).collect();
    let is_exec = definitions.iter().any(Definition::is_exec);
    let checks: Vec<(&str, &str)> = if is_exec { Vec::new() } else { vec![(cel::CHECK, summary)] };
    RuleMeta {
        name: leak(name.to_owned()),
        summary,
        docs: leak(docs.join("\n\n")),
        checks: checks.leak(),
        needs: "nothing of its own: it reads the planned changes",
        is_custom: true,
        // A program is run once for the whole plan, not again for each write.
        judges_manifests_only: is_exec,
        ..RuleMeta::COMMON
    }
}

impl Definition {
    fn is_exec(&self) -> bool {
        matches!(self.body, Body::Exec(_))
    }

    /// The definition in Markdown.
    fn markdown(&self) -> String {
        let operations: Vec<&str> = self.operations.iter().map(|request| request.as_str()).collect();
        let body = match &self.body {
            Body::Cel(rule) => rule.markdown(),
            Body::Exec(rule) => rule.markdown(),
        };
        format!("{body}\n\nIt judges requests to {}.", operations.join(", "))
    }
}

impl Rule for CustomRule {
    fn meta(&self) -> &'static RuleMeta {
        self.meta
    }

    fn plan(&self, changes: &ChangeSet, _settings: &Settings) -> Needs {
        let asks = |(_, it): &(usize, &Definition)| it.is_exec() && it.asked(changes).next().is_some();
        let need = |(number, it): (usize, &Definition)| Need::Program { rule: it.name.clone(), number };
        self.definitions.iter().enumerate().filter(asks).map(need).collect()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, _memory: &mut Memory) -> Checked {
        let mut judgement = Judgement::default();
        for (number, definition) in self.definitions.iter().enumerate() {
            match &definition.body {
                Body::Cel(rule) => judgement.findings.extend(cel::check(definition, rule, facts)),
                Body::Exec(_) => exec::check(definition, number, facts, &mut judgement),
            }
        }
        Checked::Done(judgement)
    }
}

/// The program that answers a [`Need::Program`] of the rule.
pub(crate) fn program(rule: &dyn Rule, facts: &Facts, number: usize) -> Option<ProgramCall> {
    let rule: &CustomRule = (rule as &dyn Any).downcast_ref()?;
    let definition = rule.definitions.get(number)?;
    match &definition.body {
        Body::Exec(rule) => Some(exec::call(definition, rule, facts)),
        Body::Cel(_) => None,
    }
}
