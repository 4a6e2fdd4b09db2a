//! Pods and Jobs, and the state of their containers: which causes are recoverable and which are terminal. Only terminal
//! ones are failures; a crash loop may end once a database is up.

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::conditions::{all, detail, find, is_true, list, one_line};
use super::fields::number;
use super::status::Status;

/// Whether `object` is controlled or owned by `owner`.
pub(super) fn owned_by(object: &Value, owner: &Value) -> bool {
    let uid = owner.uid();
    !uid.is_empty() && list(object, "/metadata/ownerReferences").iter().any(|reference| reference.text("/uid") == uid)
}

/// One container of a pod with its status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    pub(super) is_init: bool,
    pub(super) status: &'a Value,
}

impl<'a> Container<'a> {
    /// Containers with a status, init containers first, in the order in which they run.
    pub(super) fn all(pod: &'a Value) -> impl Iterator<Item = Self> {
        let of = |pointer: &str, is_init: bool| {
            list(pod, pointer).iter().map(move |status| Self { name: status.text("/name"), is_init, status })
        };
        of("/status/initContainerStatuses", true).chain(of("/status/containerStatuses", false))
    }

    /// Reason and message of its waiting state.
    pub(super) fn waiting(&self) -> Option<(&'a str, &'a str)> {
        let waiting = self.status.pointer("/state/waiting")?;
        Some((waiting.text("/reason"), waiting.text("/message")))
    }

    /// Its terminated state, current or last.
    pub(super) fn terminated(&self) -> Option<&'a Value> {
        let ended = |pointer: &str| self.status.pointer(pointer).filter(|value| value.is_object());
        ended("/state/terminated").or_else(|| ended("/lastState/terminated"))
    }

    /// Image as in the pod's spec, `image:tag`.
    pub(super) fn image(&self, pod: &'a Value) -> &'a str {
        let field = if self.is_init { "/spec/initContainers" } else { "/spec/containers" };
        list(pod, field)
            .iter()
            .find(|container| container.text("/name") == self.name)
            .map_or_else(|| self.status.text("/image"), |container| container.text("/image"))
    }

    /// Whether it waits for something that waiting cannot fix.
    pub(super) fn is_hopeless(&self) -> bool {
        match self.waiting() {
            Some(("InvalidImageName" | "ErrImageNeverPull", _)) => true,
            // A missing ConfigMap or Secret may still appear, and so may the kubelet's cached copy.
            Some(("CreateContainerConfigError", message)) => message.contains("couldn't find key"),
            _ => false,
        }
    }
}

/// Terminal failure of a pod that is still wanted.
pub(super) fn terminal_pod_failure(pod: &Value) -> Option<String> {
    if pod.is_terminating() {
        return None;
    }
    let container = Container::all(pod).find(Container::is_hopeless)?;
    let (reason, message) = container.waiting()?;
    let what = if message.is_empty() { container.image(pod).to_owned() } else { one_line(message) };
    Some(format!("pod {}: {reason}: {what}", pod.name()))
}

pub(super) fn pod(object: &Value) -> Status {
    match object.text("/status/phase") {
        "Succeeded" => Status::ready("succeeded"),
        "Failed" => Status::failed(pod_failure(object)),
        "Running" if is_true(object, "Ready") => Status::ready("running and ready"),
        "Running" => {
            let containers: Vec<_> = Container::all(object).filter(|container| !container.is_init).collect();
            let is_ready = |container: &&Container<'_>| container.status.get("ready") == Some(&Value::Bool(true));
            Status::in_progress(format!(
                "{}/{} containers ready",
                containers.iter().filter(is_ready).count(),
                containers.len()
            ))
        }
        // An unresponsive node may come back.
        "Unknown" => Status::in_progress("the node does not report"),
        "Pending" => {
            let is_unschedulable = find(object, "PodScheduled").filter(|condition| condition.is("False"));
            match is_unschedulable {
                Some(condition) => Status::in_progress(format!("not scheduled: {}", detail(&condition))),
                None => Status::in_progress(waiting_word(object).unwrap_or_else(|| "pending".to_owned())),
            }
        }
        "" => Status::in_progress("no phase yet"),
        other => Status::in_progress(format!("phase {}", one_line(other))),
    }
}

fn waiting_word(pod: &Value) -> Option<String> {
    let (reason, _) =
        Container::all(pod).filter_map(|container| container.waiting()).find(|(reason, _)| !reason.is_empty())?;
    Some(format!("pending: {reason}"))
}

/// Why a pod failed: by its own status, otherwise by how its containers ended.
pub(super) fn pod_failure(pod: &Value) -> String {
    let (reason, message) = (pod.text("/status/reason"), one_line(pod.text("/status/message")));
    let said: Vec<&str> = [reason, &message].into_iter().filter(|text| !text.is_empty()).collect();
    if !said.is_empty() {
        return format!("failed: {}", said.join(": "));
    }
    let ends = Container::all(pod).filter_map(|container| {
        let terminated = container.status.pointer("/state/terminated")?;
        let code = number(terminated, "/exitCode").filter(|&code| code != 0)?;
        Some(format!("container {} {}", container.name, exit(terminated, code)))
    });
    match ends.collect::<Vec<_>>() {
        ends if ends.is_empty() => "failed".to_owned(),
        ends => format!("failed: {}", ends.join(", ")),
    }
}

/// `exit 1`, or `OOMKilled, exit 137` if the reason says more than `Error`.
pub(super) fn exit(terminated: &Value, code: i64) -> String {
    match terminated.text("/reason") {
        "" | "Error" => format!("exit {code}"),
        reason => format!("{reason}, exit {code}"),
    }
}

/// How a Job ended; a final state.
pub(super) fn job_end(object: &Value) -> Option<Status> {
    all(object).filter(|condition| condition.is("True")).find_map(|condition| match condition.kind {
        "Complete" => Some(Status::ready("complete")),
        // FailureTarget is set first, while the last pods terminate.
        "Failed" | "FailureTarget" => Some(Status::failed(format!("failed: {}", detail(&condition)))),
        _ => None,
    })
}

pub(super) fn job(object: &Value) -> Status {
    if let Some(status) = job_end(object) {
        return status;
    }
    if is_true(object, "Suspended") && object.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        return Status::ready("suspended");
    }
    if object.text("/status/startTime").is_empty() {
        return Status::in_progress("not started yet");
    }
    let count = |field: &str| number(object, &format!("/status/{field}")).unwrap_or_default();
    let completions = number(object, "/spec/completions").unwrap_or(1);
    let mut message = format!("{}/{completions} succeeded, {} active", count("succeeded"), count("active"));
    if count("failed") > 0 {
        message.push_str(&format!(", {} failed", count("failed")));
    }
    if is_true(object, "SuccessCriteriaMet") {
        message.push_str(", success criteria met");
    }
    Status::in_progress(message)
}
