//! How an object is, in the words of kapp's waiters.

use std::sync::Arc;

use pushback_deploy::apply::readiness::{ConditionMeaning, MatchedCondition};
use pushback_deploy::apply::wait_words::{WaitWords, WaitedObject};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::words;

/// The words of kapp's waiters.
#[derive(Clone, Copy, Debug)]
pub struct KappWaitWords;

impl WaitWords for KappWaitWords {
    fn in_progress(&self, waited: &WaitedObject<'_>, below: &[Arc<Value>]) -> (String, Vec<String>) {
        (awaited(waited, false), children(below))
    }

    fn ready(&self, waited: &WaitedObject<'_>) -> String {
        let live = waited.live.map(of).filter(|(state, _)| *state == "ok");
        waited.matched.map(by_condition).or(live.map(|(_, said)| said)).unwrap_or_default()
    }

    fn failed(&self, waited: &WaitedObject<'_>) -> String {
        awaited(waited, true)
    }
}

/// Words the state of an awaited object as kapp does, or returns the engine's message for a state that kapp does not know.
fn awaited(waited: &WaitedObject<'_>, has_failed: bool) -> String {
    let known = waited.live.map(of).filter(|(state, said)| !said.is_empty() && (*state == "fail" || !has_failed));
    let words = waited.matched.map(by_condition).or(known.map(|(_, said)| said));
    words.unwrap_or_else(|| waited.message.to_owned())
}

fn by_condition(condition: &MatchedCondition) -> String {
    let holds = format!("{} == {}: {}", condition.name, condition.status, condition.reason);
    match condition.meaning {
        ConditionMeaning::Failure => {
            format!("Encountered failure condition {holds} (message: {})", condition.message)
        }
        ConditionMeaning::Success => {
            format!("Encountered successful condition {holds} (message: {})", condition.message)
        }
        ConditionMeaning::Unblock => format!("Allowing blocked changes to proceed: Encountered condition {holds}"),
    }
}

/// Lines about what lies below an awaited object: ReplicaSets before Pods, each kind from the last name to the first.
fn children(below: &[Arc<Value>]) -> Vec<String> {
    let mut children: Vec<(ObjectRef, &Value)> = below.iter().map(|child| (ObjectRef::of(child), &**child)).collect();
    children.sort_by(|(one, _), (other, _)| (&other.kind, &other.name).cmp(&(&one.kind, &one.name)));
    let lines = children.into_iter().flat_map(|(child, object)| {
        let (state, message) = of(object);
        let line = format!(" L {state}: waiting on {}", words::described(&child));
        std::iter::once(line).chain((!message.is_empty()).then(|| format!("    ^ {message}")))
    });
    lines.collect()
}

/// `ok`, `ongoing` or `fail`, and what kapp says of it.
#[must_use]
pub fn of(object: &Value) -> (&'static str, String) {
    let reference = ObjectRef::of(object);
    if object.is_terminating() {
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
        let finalizers: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
        let waits = match finalizers.as_slice() {
            [] => "Deleting".to_owned(),
            names => format!("Waiting on finalizers: {}", names.join(", ")),
        };
        return ("ongoing", waits);
    }
    let judged = match (reference.group.as_str(), reference.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => condition(object, &["Established", "NamesAccepted"]),
        ("apiregistration.k8s.io", "APIService") => condition(object, &["Available"]),
        ("", "Pod") => pod(object),
        ("", "Service") => service(object),
        ("apps" | "extensions", "Deployment") => deployment(object),
        ("apps" | "extensions", "DaemonSet") => daemon_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("batch", "Job") => return job(object),
        _ => Ok(()),
    };
    match judged {
        Ok(()) => ("ok", String::new()),
        Err((state, message)) => (state, message),
    }
}

type Judged = Result<(), (&'static str, String)>;

fn ongoing(message: impl Into<String>) -> Judged {
    Err(("ongoing", message.into()))
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn observed(object: &Value) -> Judged {
    let generation = number(object, "/metadata/generation");
    if number(object, "/status/observedGeneration") == generation {
        return Ok(());
    }
    ongoing(format!("Waiting for generation {generation} to be observed"))
}

fn find<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| condition.text("/type") == name)
}

fn condition(object: &Value, names: &[&str]) -> Judged {
    for name in names {
        match find(object, name) {
            Some(condition) if condition.text("/status") == "True" => {}
            Some(condition) => {
                return ongoing(format!("Condition {name} is not True ({})", condition.text("/status")));
            }
            None => return ongoing(format!("Condition {name} is not set")),
        }
    }
    Ok(())
}

fn pod(object: &Value) -> Judged {
    match object.text("/status/phase") {
        "Succeeded" => Ok(()),
        "Pending" | "" => {
            let waiting = ["/status/initContainerStatuses", "/status/containerStatuses"].iter().find_map(|pointer| {
                let statuses = object.pointer(pointer).and_then(Value::as_array)?;
                statuses.iter().find_map(|status| status.pointer("/state/waiting"))
            });
            let unscheduled = find(object, "PodScheduled").filter(|condition| condition.text("/status") == "False");
            ongoing(match (waiting, unscheduled) {
                (Some(waiting), _) => {
                    let message = waiting.text("/message");
                    let message = if message.is_empty() { String::new() } else { format!(" (message: {message})") };
                    format!("Pending: {}{message}", waiting.text("/reason"))
                }
                (None, Some(condition)) => {
                    format!("Pending: {} (message: {})", condition.text("/reason"), condition.text("/message"))
                }
                (None, None) => "Pending".to_owned(),
            })
        }
        "Running" => {
            for name in ["Initialized", "Ready", "PodScheduled"] {
                if find(object, name).is_none_or(|condition| condition.text("/status") != "True") {
                    return ongoing(format!("Condition {name} is not True"));
                }
            }
            Ok(())
        }
        phase => Err(("fail", format!("Phase is {}", phase.to_lowercase()))),
    }
}

fn service(object: &Value) -> Judged {
    if object.text("/spec/type") == "ExternalName" {
        return Ok(());
    }
    if object.text("/spec/clusterIP").is_empty() {
        return ongoing("ClusterIP is empty");
    }
    let has_ingress =
        object.pointer("/status/loadBalancer/ingress").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    if object.text("/spec/type") == "LoadBalancer" && !has_ingress {
        return ongoing("Load balancer ingress is empty");
    }
    Ok(())
}

fn deployment(object: &Value) -> Judged {
    observed(object)?;
    if let Some(condition) = find(object, "Progressing").filter(|condition| condition.text("/status") == "False") {
        let (reason, message) = (condition.text("/reason"), condition.text("/message"));
        return Err(("fail", format!("Deployment is not progressing: {reason} (message: {message})")));
    }
    let unavailable = number(object, "/status/unavailableReplicas");
    if unavailable > 0 {
        return ongoing(format!("Waiting for {unavailable} unavailable replicas"));
    }
    let (ready, wanted) = (number(object, "/status/readyReplicas"), replicas(object));
    if ready < wanted {
        return ongoing(format!("Waiting for at least {wanted} ready replicas, currently {ready}"));
    }
    Ok(())
}

fn replicas(object: &Value) -> i64 {
    object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn daemon_set(object: &Value) -> Judged {
    observed(object)?;
    let wanted = number(object, "/status/desiredNumberScheduled");
    let updated = number(object, "/status/updatedNumberScheduled");
    if updated < wanted {
        return ongoing(format!("Waiting for {} updated pods to be scheduled", wanted - updated));
    }
    match number(object, "/status/numberUnavailable") {
        0 => Ok(()),
        unavailable => ongoing(format!("Waiting for {unavailable} unavailable pods")),
    }
}

fn stateful_set(object: &Value) -> Judged {
    observed(object)?;
    let wanted = replicas(object);
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition");
    let updated = number(object, "/status/updatedReplicas");
    if updated < wanted - partition {
        return ongoing(format!("Waiting for {} replicas to be updated", wanted - partition - updated));
    }
    let ready = number(object, "/status/readyReplicas");
    if ready < wanted {
        return ongoing(format!("Waiting for {} replicas to be ready", wanted - ready));
    }
    let extra = number(object, "/status/replicas") - wanted;
    if extra > 0 { ongoing(format!("Waiting for {extra} replicas to be deleted")) } else { Ok(()) }
}

fn job(object: &Value) -> (&'static str, String) {
    let is_true = |name: &str| find(object, name).filter(|condition| condition.text("/status") == "True");
    if is_true("Complete").is_some() {
        return ("ok", "Completed".to_owned());
    }
    // The latter comes while its Pods are still being ended.
    if let Some(condition) = is_true("Failed").or_else(|| is_true("FailureTarget")) {
        return ("fail", format!("Failed with reason {}: {}", condition.text("/reason"), condition.text("/message")));
    }
    let count = |name: &str| number(object, &format!("/status/{name}"));
    let counts = format!("{} active, {} failed, {} succeeded", count("active"), count("failed"), count("succeeded"));
    ("ongoing", format!("Waiting to complete ({counts})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn state_without_words_of_kapp_keeps_the_engines_message() {
        let words = |live: &Value, message: &str, has_failed: bool| {
            awaited(&WaitedObject { live: Some(live), matched: None, message }, has_failed)
        };
        let pod = |phase: &str| json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": phase}});
        assert_eq!(words(&pod("Failed"), "failed", true), "Phase is failed");
        assert_eq!(words(&pod("Pending"), "no node fits", true), "no node fits", "kapp would go on waiting");
        assert_eq!(words(&pod("Pending"), "no node fits", false), "Pending");
        let other = json!({"apiVersion": "example.com/v1", "kind": "A"});
        assert_eq!(words(&other, "waiting", false), "waiting");
    }

    #[test]
    fn objects_below_are_listed_from_the_last_name_to_the_first() {
        let object = |api_version: &str, kind: &str, name: &str, status: Value| {
            let metadata = json!({"name": name, "namespace": "shop"});
            Arc::new(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status}))
        };
        let conditions = ["Initialized", "Ready", "PodScheduled"].map(|name| json!({"type": name, "status": "True"}));
        let running = json!({"phase": "Running", "conditions": conditions});
        let waiting = json!({"phase": "Pending", "containerStatuses": [
            {"name": "web", "state": {"waiting": {"reason": "ContainerCreating"}}}]});
        let below = [
            object("apps/v1", "ReplicaSet", "web-1", json!({})),
            object("v1", "Pod", "web-1-a", running),
            object("v1", "Pod", "web-2-b", waiting),
            object("apps/v1", "ReplicaSet", "web-2", json!({})),
        ];
        let lines = [
            " L ok: waiting on replicaset/web-2 (apps/v1) namespace: shop",
            " L ok: waiting on replicaset/web-1 (apps/v1) namespace: shop",
            " L ongoing: waiting on pod/web-2-b (v1) namespace: shop",
            "    ^ Pending: ContainerCreating",
            " L ok: waiting on pod/web-1-a (v1) namespace: shop",
        ];
        assert_eq!(children(&below), lines);
    }

    #[test]
    fn a_job_has_failed_before_its_pods_have_ended() {
        let conditions = json!([{"type": "FailureTarget", "status": "True", "reason": "A", "message": "b"}]);
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}});
        assert_eq!(of(&job), ("fail", "Failed with reason A: b".to_owned()));
    }
}
