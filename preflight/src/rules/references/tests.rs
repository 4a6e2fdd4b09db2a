//! What References says: every kind of reference in every state of its target, and what a small cluster answers.

mod cases;
mod kinds;

use std::sync::Arc;

use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::*;
use crate::facts::{ClusterFacts, Operation, Verification};
use crate::judge::RunReport;
use crate::policy::select;
use crate::selection::ConfigRule;
use crate::session::Session;

fn change(live: Option<Value>, desired: Option<Value>) -> Change {
    let operation = match (&live, &desired) {
        (None, _) => Operation::Create,
        (_, None) => Operation::Delete,
        (live, desired) if live == desired => Operation::Noop,
        _ => Operation::Update,
    };
    let object = ObjectRef::of(desired.as_ref().or(live.as_ref()).expect("a side"));
    Change {
        resource: format!("{}s", object.kind.to_lowercase()),
        namespaced: !object.namespace.is_empty(),
        object,
        operation,
        desired: desired.map(Arc::new),
        live: live.map(Arc::new),
        result: None,
        verification: Verification::NotNeeded,
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn create(object: Value) -> Change {
    change(None, Some(object))
}

fn delete(object: Value) -> Change {
    change(Some(object), None)
}

/// A run of the rule.
#[derive(Default)]
struct Trial {
    changes: Vec<Change>,
    kept: Vec<Value>,
    /// What else is on the cluster.
    cluster: Vec<Value>,
    side: ClusterSide,
    /// The rule's `config`; not named if null.
    config: Value,
    /// What the cluster answers instead of objects.
    forbidden: Option<&'static str>,
}

/// How a run went, and what it asked the cluster for.
struct Went {
    report: RunReport,
    asked: Vec<Need>,
}

impl Trial {
    fn of(changes: Vec<Change>) -> Self {
        Self { changes, ..Self::default() }
    }

    fn run(self) -> Went {
        let config = [ConfigRule { name: NAME, config: &self.config, positions: None }];
        let is_named = !self.config.is_null();
        let mut selection = select(None, is_named.then_some(&config[..])).expect("valid");
        selection.rules.retain(|selected| selected.rule.meta().name == NAME);
        let kept = self.kept.iter().cloned().map(Arc::new).collect();
        let changes = ChangeSet { changes: self.changes.clone(), kept, ..ChangeSet::default() };
        let mut session = Session::of(selection, changes, ClusterFacts { side: self.side, ..ClusterFacts::default() });
        let mut asked = Vec::new();
        loop {
            let needs = session.needs();
            if needs.is_empty() {
                break;
            }
            asked.extend(needs.iter().cloned());
            session.answer(needs.into_iter().map(|need| (need.clone(), self.answer(&need))));
        }
        Went { report: session.finish(Judgement::default(), &[], "2026-01-01").0, asked }
    }

    fn answer(&self, need: &Need) -> Answer {
        if let Some(reason) = self.forbidden {
            return Answer::Unable { reason: reason.to_owned() };
        }
        match need {
            Need::Existing { group, kind, namespace, names } => {
                let is_one = |object: &&Value| {
                    let of = ObjectRef::of(object);
                    (&of.group, &of.kind, &of.namespace) == (group, kind, namespace) && names.contains(&of.name)
                };
                let found = self.cluster.iter().filter(is_one);
                let parts = found
                    .map(|object| (object.name().to_owned(), crate::parts::parts(object).map(BTreeSet::from_iter)));
                Answer::Existing { parts: parts.collect() }
            }
            Need::PodCount { namespace, .. } => {
                let is_pod = |object: &&Value| object.text("/kind") == "Pod" && object.namespace() == namespace;
                Answer::Count { objects: self.cluster.iter().filter(is_pod).count() as u64, more: false }
            }
            other => panic!("it asks for {other:?}"),
        }
    }

    /// `check Kind ns/name: message`, a line each.
    fn lines(self) -> Vec<String> {
        let line = |finding: &Finding| format!("{} {}: {}", finding.check, finding.object, finding.message);
        self.run().report.findings.iter().map(line).collect()
    }
}

/// An object in namespace `shop`.
fn object(api_version: &str, kind: &str, name: &str, fields: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}});
    object.as_object_mut().expect("a map").extend(fields.as_object().expect("fields").clone());
    object
}

fn config_map(name: &str, data: Value) -> Value {
    object("v1", "ConfigMap", name, json!({"data": data}))
}

fn secret(name: &str, data: Value) -> Value {
    object("v1", "Secret", name, json!({"data": data}))
}

fn service(name: &str, port: u64) -> Value {
    object("v1", "Service", name, json!({"spec": {"ports": [{"name": "http", "port": port}]}}))
}

fn deployment(name: &str, spec: Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
    object("apps/v1", "Deployment", name, json!({"spec": {"template": template}}))
}

fn container(fields: Value) -> Value {
    json!({"containers": [fields]})
}

/// A Deployment that has every key of a Secret in its environment.
fn needs_secret(name: &str) -> Value {
    deployment("web", container(json!({"envFrom": [{"secretRef": {"name": name}}]})))
}
