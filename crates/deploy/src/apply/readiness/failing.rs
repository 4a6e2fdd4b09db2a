//! Containers below an object that is not ready, and what to read of their logs to learn why.

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::context::Related;
use super::fields::number;
use super::pods::{Container, owned_by};
use super::workloads::newest_replica_set;

/// Most containers of one object: many Pods fail in the same way.
const MAX_CONTAINERS: usize = 3;

/// A container that keeps an object from becoming ready, and that has written a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingContainer {
    /// Namespace of its Pod.
    pub namespace: String,
    /// Name of its Pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
    /// Why it is not up: `CrashLoopBackOff`, `OOMKilled`, `not ready`.
    pub reason: String,
    /// How it ended, if it has.
    pub exit_code: Option<i64>,
    /// Whether what it wrote before its last restart says more than what it has written since.
    pub previous: bool,
}

/// The containers below an object that fail, those of a kind only once, the ones that have ended first.
#[must_use]
pub fn failing_containers(owner: &Value, related: &Related<'_>) -> Vec<FailingContainer> {
    let mut pods: Vec<&Value> = match owner.text("/kind") {
        "Pod" => vec![owner],
        kind => {
            let newest = if kind == "Deployment" { newest_replica_set(owner, related.replica_sets) } else { None };
            let owner = newest.unwrap_or(owner);
            related.pods.iter().map(AsRef::as_ref).filter(|pod| owned_by(pod, owner)).collect()
        }
    };
    pods.sort_by_key(|pod| pod.name());
    let each = |pod: &&Value| Container::all(pod).filter_map(|it| failing(pod, &it)).collect::<Vec<_>>();
    let mut found: Vec<FailingContainer> = pods.iter().flat_map(each).collect();
    found.sort_by_key(|container| container.exit_code.is_none());
    let mut told: Vec<FailingContainer> = Vec::new();
    for container in found {
        let is_same = |known: &FailingContainer| {
            (&known.container, &known.reason, known.exit_code)
                == (&container.container, &container.reason, container.exit_code)
        };
        if told.len() < MAX_CONTAINERS && !told.iter().any(is_same) {
            told.push(container);
        }
    }
    told
}

fn failing(pod: &Value, container: &Container<'_>) -> Option<FailingContainer> {
    let state = |pointer: &str| container.status.pointer(pointer).filter(|state| state.is_object());
    let code = |ended: &Value| number(ended, "/exitCode");
    let last = state("/lastState/terminated");
    let (reason, exit_code, previous) = if let Some(ended) = state("/state/terminated") {
        let code = code(ended).filter(|code| *code != 0)?;
        (ended.text("/reason"), Some(code), false)
    } else if let Some((reason, _)) = container.waiting() {
        // One that has never run has written nothing.
        (reason, code(last?), true)
    } else {
        state("/state/running")?;
        let is_ready = container.status.get("ready") == Some(&Value::Bool(true));
        match (container.is_init, is_ready) {
            (true, _) => ("still running", last.and_then(code), last.is_some()),
            (false, false) => ("not ready", last.and_then(code), last.is_some()),
            (false, true) => return None,
        }
    };
    Some(FailingContainer {
        namespace: pod.namespace().to_owned(),
        pod: pod.name().to_owned(),
        container: container.name.to_owned(),
        reason: reason.to_owned(),
        exit_code,
        previous,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn pod(name: &str, statuses: &Value) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "n", "ownerReferences": [{"uid": "owner"}]},
            "status": {"containerStatuses": statuses},
        }))
    }

    fn told(pods: &[Arc<Value>]) -> Vec<String> {
        let owner = json!({"kind": "Job", "metadata": {"uid": "owner"}});
        let failing = failing_containers(&owner, &Related { pods, ..Related::default() });
        let word = |it: &FailingContainer| {
            format!("{}/{} {} {:?} previous={}", it.pod, it.container, it.reason, it.exit_code, it.previous)
        };
        failing.iter().map(word).collect()
    }

    #[test]
    fn the_log_that_says_why_is_that_of_the_run_that_ended() {
        let ended = |code: i64| json!({"terminated": {"exitCode": code, "reason": "Error"}});
        let statuses = json!([
            {"name": "loops", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended(3)},
            {"name": "ended", "state": ended(2)},
            {"name": "unready", "state": {"running": {}}, "ready": false, "lastState": {}},
            {"name": "fine", "state": {"running": {}}, "ready": true},
            {"name": "done", "state": ended(0)},
            {"name": "pulls", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
        ]);
        assert_eq!(
            told(&[pod("a", &statuses)]),
            [
                "a/loops CrashLoopBackOff Some(3) previous=true",
                "a/ended Error Some(2) previous=false",
                "a/unready not ready None previous=false",
            ]
        );
    }

    #[test]
    fn what_fails_in_the_same_way_is_told_once() {
        let statuses = json!([{"name": "main", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]);
        let other = json!([{"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]);
        let pods = [pod("b", &statuses), pod("a", &statuses), pod("c", &other)];
        assert_eq!(told(&pods), ["a/main Error Some(1) previous=false", "c/main OOMKilled Some(137) previous=false"]);
        assert_eq!(told(&[Arc::new(json!({"kind": "Pod", "metadata": {"name": "of another"}}))]), [""; 0]);
    }
}
