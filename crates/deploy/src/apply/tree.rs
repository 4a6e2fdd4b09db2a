//! An app's objects as a tree, each with its readiness. Objects that controllers created are below their owners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pushback_app::identity::ASSOCIATION_LABEL;
use pushback_manifest::config::WaitRule;
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::readiness::{self, State};
use crate::plan::live::Live;

/// Most levels below an object of the app. Owner chains are as deep as controllers make them: Deployment, ReplicaSet,
/// Pod.
const LEVELS: usize = 8;

/// One object in the tree.
#[derive(Clone, Debug)]
pub struct Line {
    /// Levels below an object of the app; 0 for the app's own.
    pub depth: usize,
    /// The object.
    pub object: ObjectRef,
    /// Who created it: `app` or `cluster`.
    pub owner: &'static str,
    /// Readiness; empty if nothing reconciles it.
    pub state: &'static str,
    /// What it waits for.
    pub message: String,
    /// When it was created, RFC 3339; empty if nothing says so.
    pub created: String,
    /// Its `status`.
    pub status: Value,
}

/// The app's objects, and `with_children` those that controllers created for them. `server`: whether controllers
/// reconcile them.
#[must_use]
pub fn lines(live: &Live, with_children: bool, server: bool) -> Vec<Line> {
    let mut children: BTreeMap<&str, Vec<&Arc<Value>>> = BTreeMap::new();
    for child in live.derived.iter().filter(|_| with_children) {
        // Endpoints have no owner; the label says whose they are.
        let owner = child.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
        match owner.or_else(|| child.label(ASSOCIATION_LABEL)) {
            Some(whose) => children.entry(whose).or_default().push(child),
            None => continue,
        }
    }
    let mut tree = Tree { children, server, lines: Vec::new() };
    for object in live.objects.values() {
        tree.add(object, "app", 0);
    }
    tree.lines
}

struct Tree<'a> {
    /// Objects by the uid of their owner, or by the label that they share with an object of the app.
    children: BTreeMap<&'a str, Vec<&'a Arc<Value>>>,
    server: bool,
    lines: Vec<Line>,
}

impl Tree<'_> {
    fn add(&mut self, object: &Value, owner: &'static str, depth: usize) {
        let (state, message) = if self.server { state(object, None) } else { ("", String::new()) };
        let status = object.get("status").cloned().unwrap_or(Value::Null);
        let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str).unwrap_or_default();
        let created = created.to_owned();
        self.lines.push(Line { depth, object: ObjectRef::of(object), owner, state, message, created, status });
        if depth < LEVELS && !object.uid().is_empty() {
            let label = object.label(ASSOCIATION_LABEL).filter(|_| depth == 0);
            let associated = label.and_then(|label| self.children.get(label)).cloned().into_iter().flatten();
            for child in self.children.get(object.uid()).cloned().into_iter().flatten().chain(associated) {
                self.add(child, "cluster", depth + 1);
            }
        }
    }
}

/// Readiness of an object that nothing else is known about than its wait rule: `ok`, `ongoing`, `failed` or `deleting`,
/// and what it waits for.
#[must_use]
pub fn state(object: &Value, wait_rule: Option<&WaitRule>) -> (&'static str, String) {
    if object.is_terminating() {
        return ("deleting", readiness::deletion_blockers(object));
    }
    let context = readiness::Context {
        wait_rule,
        waited: Duration::from_secs(3600),
        unchanged: true,
        ..readiness::Context::default()
    };
    let status = readiness::assess(object, &context);
    match status.state {
        State::Ready => ("ok", String::new()),
        State::InProgress | State::Unblocked => ("ongoing", status.message),
        State::Failed => ("failed", status.message),
    }
}
