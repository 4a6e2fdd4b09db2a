//! An app's objects as a tree, each with where it stands.
//! What controllers have made stands below what they made it of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pushback_preflight::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::readiness::{self, State};
use crate::plan::live::Live;

/// Levels below an object of the app. An owner chain is as deep as controllers make it: Deployment, ReplicaSet, Pod.
const LEVELS: usize = 8;

/// One object.
#[derive(Clone, Debug)]
pub struct Line {
    /// How far below an object of the app.
    pub depth: usize,
    /// The object.
    pub object: ObjectRef,
    /// Who brought it: `app`, or `cluster`.
    pub owner: &'static str,
    /// Where it stands; empty where nothing reconciles.
    pub state: &'static str,
    /// What it waits for.
    pub message: String,
    /// Its status.
    pub status: Value,
}

/// The objects, and `with_children` what they have made. `server`: whether something reconciles them.
#[must_use]
pub fn lines(live: &Live, with_children: bool, server: bool) -> Vec<Line> {
    let mut children: BTreeMap<&str, Vec<&Arc<Value>>> = BTreeMap::new();
    for child in live.derived.iter().filter(|_| with_children) {
        let owner = child.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str).unwrap_or_default();
        children.entry(owner).or_default().push(child);
    }
    let mut tree = Tree { children, server, lines: Vec::new() };
    for object in live.objects.values() {
        tree.add(object, "app", 0);
    }
    tree.lines
}

struct Tree<'a> {
    /// By the uid of their owner.
    children: BTreeMap<&'a str, Vec<&'a Arc<Value>>>,
    server: bool,
    lines: Vec<Line>,
}

impl Tree<'_> {
    fn add(&mut self, object: &Value, owner: &'static str, depth: usize) {
        let (state, message) = if self.server { state(object) } else { ("", String::new()) };
        let status = object.get("status").cloned().unwrap_or(Value::Null);
        self.lines.push(Line { depth, object: ObjectRef::of(object), owner, state, message, status });
        if depth < LEVELS && !object.uid().is_empty() {
            for child in self.children.get(object.uid()).cloned().into_iter().flatten() {
                self.add(child, "cluster", depth + 1);
            }
        }
    }
}

fn state(object: &Value) -> (&'static str, String) {
    if object.is_terminating() {
        return ("deleting", readiness::deletion_blockers(object));
    }
    let context =
        readiness::Context { waited: Duration::from_secs(3600), unchanged: true, ..readiness::Context::default() };
    let status = readiness::assess(object, &context);
    match status.state {
        State::Ready => ("ok", String::new()),
        State::InProgress | State::Unblocked => ("ongoing", status.message),
        State::Failed => ("failed", status.message),
    }
}
