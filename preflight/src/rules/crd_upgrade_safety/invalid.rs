//! A definition that the API server would refuse, where it has not been asked: on a directory, in a file, in a git ref.

use serde_json::Value;

use super::{NAME, words};
use crate::facts::{Change, ClusterSide, Operation, Verification};
use crate::finding::{Finding, Verdict};
use crate::source::{PathSegment, display_path};
use pushback_crd::schema::contain::SchemaStep;
use pushback_crd::schema::invalid::{Problem, problems};

pub(super) fn check(change: &Change, side: ClusterSide, findings: &mut Vec<Finding>) {
    let written = matches!(change.operation, Operation::Create | Operation::Update | Operation::Replace);
    let Some(definition) = change.desired.as_deref().filter(|_| written) else { return };
    // The server's own answer, where there is one, is told by itself and says more. A folder takes whatever it is given.
    let is_answered = matches!(change.verification, Verification::Server | Verification::Refused);
    if side == ClusterSide::Server && is_answered {
        return;
    }
    findings.extend(fresh(change, definition).iter().map(|problem| finding(change, problem)));
}

/// What is there already was once taken, by whatever server.
fn fresh(change: &Change, definition: &Value) -> Vec<Problem> {
    let mut found = problems(definition);
    if !found.is_empty() {
        let known = change.live.as_deref().map(problems).unwrap_or_default();
        found.retain(|problem| !known.contains(problem));
    }
    found
}

/// A definition that would be refused, whether a server was asked or not.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// For its rules, each with its version and field.
    pub(crate) for_rules: Vec<Finding>,
    /// For anything else, each with the place in the definition.
    pub(crate) for_others: Vec<(Finding, Vec<PathSegment>)>,
}

/// What a server would refuse of the new definition and not of the old one.
pub(crate) fn refused(change: &Change) -> Refused {
    let mut refused = Refused::default();
    let Some(definition) = change.desired.as_deref() else { return refused };
    for problem in fresh(change, definition) {
        let mut found = finding(change, &problem);
        if !problem.path.contains(&"x-kubernetes-validations".into()) {
            refused.for_others.push((found, problem.path));
            continue;
        }
        if let Some((version, steps)) = place_in_schema(definition, &problem.path) {
            found.version = Some(version);
            found.path = Some(words::field_path(&steps)).filter(|path| !path.is_empty());
        }
        refused.for_rules.push(found);
    }
    refused
}

/// The version that a place of a definition is in, and the node of its schema.
pub(crate) fn place_in_schema(definition: &Value, path: &[PathSegment]) -> Option<(String, Vec<SchemaStep>)> {
    let key = |index: usize| match path.get(index) {
        Some(PathSegment::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    let (Some("spec"), Some("versions"), Some(PathSegment::Index(index))) = (key(0), key(1), path.get(2)) else {
        return None;
    };
    let name = definition["spec"]["versions"][*index]["name"].as_str()?.to_owned();
    let mut steps = Vec::new();
    if (key(3), key(4)) == (Some("schema"), Some("openAPIV3Schema")) {
        let mut at = 5;
        loop {
            match (key(at), key(at + 1)) {
                (Some("properties"), Some(field)) => {
                    steps.push(SchemaStep::Property(field.to_owned()));
                    at += 2;
                }
                (Some("items"), _) => {
                    steps.push(SchemaStep::Items);
                    at += 1;
                }
                (Some("additionalProperties"), Some(_)) => {
                    steps.push(SchemaStep::Additional);
                    at += 1;
                }
                _ => break,
            }
        }
    }
    Some((name, steps))
}

fn finding(change: &Change, problem: &Problem) -> Finding {
    let (verdict, message) = match problem.is_certain {
        true => (Verdict::Breaking, format!("the API server would refuse the definition: {}", problem.message)),
        false => {
            let message = format!("unable to determine if the API server takes the definition: {}", problem.message);
            (Verdict::Unknown, message)
        }
    };
    let mut finding = Finding::new(NAME, "invalid", verdict, change.object.clone(), message)
        .at(change.locate(&problem.path))
        .path(display_path(&problem.path))
        .remedy("correct the definition; `kubectl apply --dry-run=server` shows what a server says of it");
    finding.effect = Some("rejected".to_owned());
    finding.blocks = Some("create".to_owned());
    finding
}
