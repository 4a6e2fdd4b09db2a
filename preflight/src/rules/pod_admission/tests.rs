//! The templates that PodAdmission asks about, the Pods that it makes of them, and its judgement of the answers.

mod answers;
mod names;
mod pods;

use std::sync::Arc;

use pushback_objects::source::Positions;
use serde_json::{Value, json};

use super::*;
use crate::facts::{AccessRule, Change, ClusterFacts, ClusterSide, Operation, Verification};
use crate::judge::{RuleOutcome, RunReport};
use crate::policy::select;
use crate::rule::Judgement;
use crate::session::Session;

/// The server's refusal of every Pod.
fn refused(by: PodRefusal, message: &str) -> Answer {
    Answer::PodAdmission { admission: Admission::Refused { by, message: message.to_owned(), fields: Vec::new() } }
}

fn accepted() -> Answer {
    Answer::PodAdmission { admission: Admission::Accepted }
}

fn change(desired: Option<&Value>, live: Option<&Value>) -> Change {
    let object = ObjectRef::of(desired.or(live).expect("a side"));
    let operation = match (desired, live) {
        (Some(_), None) => Operation::Create,
        (Some(one), Some(other)) if one == other => Operation::Noop,
        (Some(_), Some(_)) => Operation::Update,
        _ => Operation::Delete,
    };
    let shared = |side: Option<&Value>| side.cloned().map(Arc::new);
    Change {
        object,
        resource: "things".to_owned(),
        namespaced: true,
        operation,
        desired: shared(desired),
        live: shared(live),
        result: shared(desired),
        verification: Verification::Server,
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn create(object: &Value) -> Change {
    change(Some(object), None)
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}, "creationTimestamp": null},
        "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
    })
}

fn deployment(name: &str) -> Value {
    object("apps/v1", "Deployment", name, json!({"replicas": 1, "template": template()}))
}

/// The object with a field set.
fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    object.pointer_mut(parent).expect("a map")[key] = value;
    object
}

/// A run of the rule, with the needs that it has asked for beside reviews.
struct RuleRun {
    report: RunReport,
    asked: Vec<String>,
}

impl RuleRun {
    fn outcome(&self) -> RuleOutcome {
        self.report.rules[0].outcome
    }

    fn skipped(&self) -> &str {
        self.report.rules[0].skipped.as_deref().unwrap_or_default()
    }

    /// `severity check object` of each finding.
    fn findings(&self) -> Vec<String> {
        let line =
            |finding: &Finding| format!("{:?} {} {}", finding.severity, finding.check, finding.object).to_lowercase();
        self.report.findings.iter().map(line).collect()
    }
}

fn run_on(side: ClusterSide, changes: Vec<Change>, named: bool, answer: impl Fn(&Need) -> Answer) -> RuleRun {
    let cluster = ClusterFacts { description: "dir:./live".into(), side, ..ClusterFacts::default() };
    let rules = [NAME.to_owned()];
    let mut selection = select(named.then_some(&rules[..]), None).expect("a selection");
    selection.rules.retain(|selected| selected.rule.meta().name == NAME);
    let changes = ChangeSet { changes, ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, cluster);
    let mut asked = Vec::new();
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        for need in &needs {
            match need {
                Need::PodAdmission { workload } => {
                    assert!(session.workload_pod(workload).is_some(), "{workload}");
                    asked.push(workload.to_string());
                }
                Need::Access { .. } | Need::AccessRules { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        session.answer(needs.into_iter().map(|need| (need.clone(), answer(&need))));
    }
    let (report, _) = session.finish(Judgement::default(), &[], "2026-01-01");
    RuleRun { report, asked }
}

/// Runs the rule as one of the default set, as a user who may do anything.
fn run(changes: Vec<Change>, answer: Answer) -> RuleRun {
    run_on(ClusterSide::Server, changes, false, |need| match need {
        Need::PodAdmission { .. } => answer.clone(),
        need => permission(need, true, false),
    })
}

fn permission(need: &Need, allowed: bool, incomplete: bool) -> Answer {
    match need {
        Need::Access { .. } => Answer::Allowed { allowed, reason: String::new() },
        Need::AccessRules { .. } => {
            let deployments = AccessRule {
                verbs: vec!["create".to_owned()],
                api_groups: vec!["apps".to_owned()],
                resources: vec!["deployments".to_owned()],
                resource_names: Vec::new(),
            };
            Answer::AccessRules { rules: vec![deployments], incomplete }
        }
        other => panic!("{other:?}"),
    }
}
