//! A refused Pod as a finding.

use std::cmp::Ordering;

use pushback_crd::schema::cel::compare_quantities;
use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::source::PathSegment;
use serde_json::{Value, json};

use super::NAME;
use super::template::{WorkloadKind, WorkloadTemplate};
use super::words;
use crate::facts::{Operation, PodRefusal};

/// The finding for a refused Pod.
pub(super) fn finding(of: &WorkloadTemplate<'_>, by: PodRefusal, message: &str, fields: &[String]) -> Finding {
    let message = &words::in_order(by, message);
    let (mut verdict, mut severity) = (Verdict::Breaking, Severity::Warning);
    let mut text = format!("its Pods are refused: {message}");
    if by == PodRefusal::Quota && !exceeds_whole_quota(message) {
        if needs_no_room(of) {
            (verdict, severity) = (Verdict::Change, Severity::Info);
            text = format!("{message}; the update first removes Pods that are there");
        } else {
            verdict = Verdict::Unknown;
            text = format!("its Pods are refused while there is no room for them: {message}");
        }
    }
    if let Some(why) = of.makes_no_pod_now() {
        verdict = Verdict::Change;
        text = format!("{text}; no Pod is made of it for now ({why})");
    }
    let path = field(of, fields);
    let content = match words::quota(message).filter(|_| by == PodRefusal::Quota) {
        // The numbers change from run to run.
        Some(quota) => json!([by.as_str(), quota]),
        None => json!([by.as_str(), message, fields]),
    };
    let reason = json!([by.as_str(), text]);
    let mut finding = Finding::new(NAME, by.as_str(), verdict, of.change.object.clone(), text)
        .at(of.locate(&path))
        .path(of.display(&path))
        .shares(&reason)
        .bound_to(&content);
    finding.severity = severity;
    finding.remedy = words::remedy(by, message);
    finding
}

/// Path of the field in the template that the server names; the Pod's spec if it names none of the template.
fn field(of: &WorkloadTemplate<'_>, fields: &[String]) -> Vec<PathSegment> {
    let spec = || vec![PathSegment::from("spec")];
    let [field] = fields else { return spec() };
    let mut path = Vec::new();
    let mut here = of.template;
    for part in field.split(['.', '[']) {
        let part = part.trim_end_matches(']');
        let found = match part.parse::<usize>() {
            Ok(index) => here.get(index).map(|value| (PathSegment::from(index), value)),
            Err(_) => here.get(part).map(|value| (PathSegment::from(part), value)),
        };
        let Some((segment, value)) = found else { break };
        path.push(segment);
        here = value;
    }
    if path.is_empty() { spec() } else { path }
}

/// Returns whether one Pod requests more of a resource than the quota has in all.
fn exceeds_whole_quota(message: &str) -> bool {
    let part = |name: &str| -> Vec<(&str, &str)> {
        let list = message.split_once(&format!("{name}: ")).map_or("", |(_, rest)| rest);
        let list = list.split(", ").next().unwrap_or_default();
        list.split(',').filter_map(|entry| entry.split_once('=')).collect()
    };
    let limited = part("limited");
    part("requested").into_iter().any(|(resource, requested)| {
        let limit = limited.iter().find(|(of, _)| *of == resource).map(|(_, limit)| *limit);
        limit.is_some_and(|limit| compare_quantities(requested, limit) == Some(Ordering::Greater))
    })
}

/// Returns whether the controller removes an old Pod before it makes a new one.
fn needs_no_room(of: &WorkloadTemplate<'_>) -> bool {
    if of.change.operation == Operation::Create || of.change.live.is_none() {
        return false;
    }
    let spec = |pointer: &str| of.workload.pointer(&format!("/spec/{pointer}"));
    let text = |pointer: &str| spec(pointer).and_then(Value::as_str).unwrap_or_default();
    if of.change.operation == Operation::Replace {
        return true;
    }
    match of.kind {
        WorkloadKind::Deployment if text("strategy/type") == "Recreate" => true,
        WorkloadKind::Deployment => {
            let replicas = spec("replicas").and_then(Value::as_u64).unwrap_or(1);
            unavailable(spec("strategy/rollingUpdate/maxUnavailable"), replicas) > 0
        }
        WorkloadKind::StatefulSet => true,
        WorkloadKind::DaemonSet => {
            spec("updateStrategy/rollingUpdate/maxSurge").is_none_or(|surge| unavailable(Some(surge), 100) == 0)
        }
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController | WorkloadKind::Job | WorkloadKind::CronJob => {
            false
        }
    }
}

/// A number of Pods, or a percentage of the replicas, rounded down.
fn unavailable(value: Option<&Value>, replicas: u64) -> u64 {
    match value {
        Some(Value::Number(number)) => number.as_u64().unwrap_or_default(),
        Some(Value::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|percent| percent.parse::<u64>().ok()).unwrap_or_default();
            replicas.saturating_mul(percent) / 100
        }
        // The server's default.
        _ => replicas / 4,
    }
}
