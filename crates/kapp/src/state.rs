//! How an object is, in the words of kapp's waiters.

use pushback_events::{ConditionMeaning, SeenObject};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

/// How an awaited object is; `message` is what the engine says of it, which has taken it for failed or not.
#[must_use]
pub fn awaited(seen: &SeenObject, message: &str, has_failed: bool) -> String {
    if let Some(condition) = &seen.matched {
        let holds = format!("{} == {}: {}", condition.name, condition.status, condition.reason);
        return match condition.meaning {
            ConditionMeaning::Failure => {
                format!("Encountered failure condition {holds} (message: {})", condition.message)
            }
            ConditionMeaning::Success => {
                format!("Encountered successful condition {holds} (message: {})", condition.message)
            }
            ConditionMeaning::Unblock => {
                format!("Allowing blocked changes to proceed: Encountered condition {holds}")
            }
        };
    }
    match seen.live.as_deref().map(of) {
        Some((state, said)) if !said.is_empty() && (state == "fail" || !has_failed) => said,
        _ => {
            let message = message.split(", last was ").next().unwrap_or_default();
            let mut letters = message.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    }
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

/// How an object came to be ready, where kapp says that.
#[must_use]
pub fn ready(seen: &SeenObject) -> String {
    if seen.matched.is_some() {
        return awaited(seen, "", false);
    }
    seen.live.as_deref().map(of).filter(|(state, _)| *state == "ok").map(|(_, said)| said).unwrap_or_default()
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
    fn what_kapps_waiters_do_not_know_is_told_as_the_engine_has_it() {
        let seen = |live: Value| SeenObject { live: Some(live.into()), ..SeenObject::default() };
        let pod = |phase: &str| seen(json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": phase}}));
        assert_eq!(awaited(&pod("Failed"), "Failed", true), "Phase is failed");
        assert_eq!(awaited(&pod("Pending"), "no node fits", true), "No node fits", "kapp would go on waiting");
        assert_eq!(awaited(&pod("Pending"), "no node fits", false), "Pending");
        let other = seen(json!({"apiVersion": "example.com/v1", "kind": "A"}));
        let message = "waiting for generation 2 to be observed, last was 1";
        assert_eq!(awaited(&other, message, false), "Waiting for generation 2 to be observed");
    }

    #[test]
    fn a_job_has_failed_before_its_pods_have_ended() {
        let conditions = json!([{"type": "FailureTarget", "status": "True", "reason": "A", "message": "b"}]);
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}});
        assert_eq!(of(&job), ("fail", "Failed with reason A: b".to_owned()));
    }
}
