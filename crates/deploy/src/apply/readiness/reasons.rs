//! Causes below an object that is not ready: what its pods wait for, what could not be created or was refused. Short,
//! the most specific first, the same cause of several pods once.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::conditions::{Condition, detail, find, list, one_line};
use super::context::Related;
use super::fields::number;
use super::pods::{Container, exit, owned_by, pod_failure};
use super::workloads::newest_replica_set;

/// Most causes reported for one object.
const MAX_REASONS: usize = 5;

/// Reasons of events that explain an unbound claim. Most of them are not warnings.
const CLAIM_REASONS: &[&str] = &[
    "ExternalProvisioning",
    "FailedBinding",
    "ProvisioningCleanupFailed",
    "ProvisioningFailed",
    "ProvisioningIgnoreAlreadyBound",
    "VolumeMismatch",
    "WaitForPodScheduled",
];

/// How specific a cause is, the most specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Waiting does not fix it.
    Hopeless,
    /// Nothing could be created.
    NotCreated,
    /// A container does not start or does not keep running.
    NotRunning,
    /// No node fits.
    NotScheduled,
    /// A step before the start failed.
    Event,
    /// It has terminated.
    Ended,
    /// It runs, but is not ready.
    NotReady,
}

/// Causes by rank and text without the pod's name, so that pods with the same cause share an entry.
#[derive(Debug, Default)]
struct Causes(BTreeMap<(Rank, String), Cause>);

#[derive(Debug)]
struct Cause {
    /// `pod web-1`; empty for a cause of the object itself.
    subject: String,
    /// The cause including what differs between pods, such as restarts.
    text: String,
    others: usize,
}

impl Causes {
    fn add(&mut self, rank: Rank, subject: &str, same: String, text: String) {
        self.0.entry((rank, same)).and_modify(|cause| cause.others += 1).or_insert(Cause {
            subject: subject.to_owned(),
            text,
            others: 0,
        });
    }

    fn add_plain(&mut self, rank: Rank, subject: &str, text: String) {
        self.add(rank, subject, text.clone(), text);
    }

    /// Adds a cause of the object itself, which related objects may repeat.
    fn add_once(&mut self, rank: Rank, text: String) {
        self.0.entry((rank, text.clone())).or_insert(Cause { subject: String::new(), text, others: 0 });
    }

    fn into_lines(self) -> Vec<String> {
        let lines = self.0.into_values().map(|cause| {
            let subject = if cause.subject.is_empty() { String::new() } else { format!("{}: ", cause.subject) };
            let others = match cause.others {
                0 => String::new(),
                1 => " (and 1 more)".to_owned(),
                others => format!(" (and {others} more)"),
            };
            format!("{subject}{}{others}", cause.text)
        });
        lines.take(MAX_REASONS).collect()
    }
}

/// Causes found at and below an object, the most specific first; at most five.
#[must_use]
pub fn reasons(owner: &Value, related: &Related<'_>) -> Vec<String> {
    let mut causes = Causes::default();
    let kind = owner.text("/kind");
    if kind == "Pod" {
        pod(owner, "", related, &mut causes);
        return causes.into_lines();
    }
    if kind == "PersistentVolumeClaim" {
        for event in latest(owner, related.events, |event| CLAIM_REASONS.contains(&event.text("/reason"))) {
            causes.add_once(Rank::Event, worded(event.text("/reason"), message_of(event)));
        }
        return causes.into_lines();
    }
    let newest = if kind == "Deployment" { newest_replica_set(owner, related.replica_sets) } else { None };
    for object in [Some(owner), newest].into_iter().flatten() {
        let failure = find(object, "ReplicaFailure").filter(|condition| condition.is("True"));
        if let Some(condition) = failure {
            causes.add_once(Rank::NotCreated, worded(condition.reason, condition.message));
        }
        for event in warnings(object, related.events) {
            let reason = event.text("/reason");
            match reason.starts_with("FailedCreate") {
                // The condition already says the same as its event.
                true if failure.is_some() => {}
                true => causes.add_once(Rank::NotCreated, worded(reason, message_of(event))),
                false => causes.add_once(Rank::Event, worded(reason, message_of(event))),
            }
        }
    }
    let pod_owner = newest.unwrap_or(owner);
    let mut pods: Vec<&Arc<Value>> = related.pods.iter().filter(|pod| owned_by(pod, pod_owner)).collect();
    pods.sort_by_key(|pod| pod.name());
    for value in pods {
        pod(value, &format!("pod {}", value.name()), related, &mut causes);
    }
    causes.into_lines()
}

fn worded(reason: &str, message: &str) -> String {
    detail(&Condition { kind: "", status: "", reason, message, observed_generation: None })
}

fn pod(pod: &Value, subject: &str, related: &Related<'_>, causes: &mut Causes) {
    // A terminating pod explains nothing.
    if pod.is_terminating() || pod.text("/status/phase") == "Succeeded" {
        return;
    }
    if pod.text("/status/phase") == "Failed" {
        causes.add_plain(Rank::Ended, subject, pod_failure(pod));
        return;
    }
    let mut is_explained = false;
    for container in Container::all(pod) {
        is_explained |= container_cause(pod, &container, subject, causes);
    }
    // If containers report something, a node was found.
    if !is_explained && let Some(condition) = find(pod, "PodScheduled").filter(|condition| condition.is("False")) {
        causes.add_plain(Rank::NotScheduled, subject, worded(condition.reason, condition.message));
    }
    if !is_explained && let Some(scheduler) = silent_scheduler(pod) {
        let text = format!("scheduler {scheduler:?} (spec.schedulerName) has not looked at it; does it run?");
        causes.add_plain(Rank::NotScheduled, subject, text);
    }
    if is_explained {
        return;
    }
    // The containers report nothing: mounts, sandboxes and probes report through events.
    for event in warnings(pod, related.events) {
        let reason = event.text("/reason");
        // These repeat the conditions and the container states.
        if matches!(reason, "FailedScheduling" | "BackOff" | "Failed") {
            continue;
        }
        let rank = if reason == "Unhealthy" { Rank::NotReady } else { Rank::Event };
        let text = if reason == "Unhealthy" { one_line(message_of(event)) } else { worded(reason, message_of(event)) };
        is_explained = true;
        causes.add_plain(rank, subject, text);
    }
    let is_unready = |container: &Container<'_>| {
        !container.is_init
            && container.status.pointer("/state/running").is_some()
            && container.status.get("ready") == Some(&Value::Bool(false))
    };
    if !is_explained && let Some(container) = Container::all(pod).find(is_unready) {
        causes.add_plain(Rank::NotReady, subject, format!("container {} is running but not ready", container.name));
    }
}

/// Name of the pod's scheduler if it never set the condition that every scheduler sets. An unknown scheduler name
/// causes no error anywhere. The default scheduler is only slow.
fn silent_scheduler(pod: &Value) -> Option<&str> {
    let scheduler = Some(pod.text("/spec/schedulerName")).filter(|name| !matches!(*name, "" | "default-scheduler"))?;
    let is_silent = find(pod, "PodScheduled").is_none() && pod.text("/spec/nodeName").is_empty();
    (is_silent && list(pod, "/spec/schedulingGates").is_empty()).then_some(scheduler)
}

/// Adds why a container is not up, if its status says so.
fn container_cause(pod: &Value, container: &Container<'_>, subject: &str, causes: &mut Causes) -> bool {
    let restarts = number(container.status, "/restartCount").unwrap_or_default();
    let several = list(pod, "/spec/containers").len() > 1;
    let place = match (container.is_init, several) {
        (true, _) => format!("init container {}: ", container.name),
        (false, true) => format!("container {}: ", container.name),
        (false, false) => String::new(),
    };
    let ended = container.terminated().and_then(|ended| Some((ended, number(ended, "/exitCode")?)));
    let (rank, reason, details) = match (container.waiting(), ended) {
        (Some(("" | "ContainerCreating" | "PodInitializing", _)), _) => return false,
        (Some((reason, message)), ended) => {
            let rank = if container.is_hopeless() { Rank::Hopeless } else { Rank::NotRunning };
            let detail = match reason {
                "CrashLoopBackOff" => ended.map(|(ended, code)| exit(ended, code)).unwrap_or_default(),
                "ImagePullBackOff" | "ErrImagePull" | "ErrImageNeverPull" | "InvalidImageName" => {
                    format!("image {}", container.image(pod))
                }
                _ => one_line(message),
            };
            (rank, reason.to_owned(), detail)
        }
        (None, Some((ended, code))) if container.status.pointer("/state/terminated").is_some() && code != 0 => {
            (Rank::Ended, "ended".to_owned(), exit(ended, code))
        }
        _ => return false,
    };
    let same = format!("{place}{reason} {details}");
    let restarts = if restarts > 0 { format!("restart {restarts}") } else { String::new() };
    let details: Vec<String> = [details, restarts].into_iter().filter(|part| !part.is_empty()).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    causes.add(rank, subject, same, format!("{place}{reason}{details}"));
    true
}

/// Events about one object.
pub(super) fn events_of<'a>(object: &Value, events: &'a [Arc<Value>]) -> impl Iterator<Item = &'a Value> {
    let uid = object.uid().to_owned();
    events.iter().map(Arc::as_ref).filter(move |event| {
        let about = event.get("involvedObject").or_else(|| event.get("regarding"));
        !uid.is_empty() && about.is_some_and(|about| about.text("/uid") == uid)
    })
}

/// The latest warning of each reason about one object.
fn warnings<'a>(object: &Value, events: &'a [Arc<Value>]) -> Vec<&'a Value> {
    latest(object, events, |event| event.text("/type") == "Warning")
}

/// The latest event of each reason about one object.
fn latest<'a>(object: &Value, events: &'a [Arc<Value>], is_wanted: impl Fn(&Value) -> bool) -> Vec<&'a Value> {
    let mut latest: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in events_of(object, events).filter(|event| is_wanted(event)) {
        let known = latest.entry(event.text("/reason")).or_insert(event);
        if time_of(event) >= time_of(known) {
            *known = event;
        }
    }
    latest.into_values().collect()
}

fn message_of(event: &Value) -> &str {
    let message = event.text("/message");
    if message.is_empty() { event.text("/note") } else { message }
}

/// Time of an event; RFC 3339 times in one zone sort as text.
pub(super) fn time_of(event: &Value) -> &str {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"];
    times.into_iter().map(|pointer| event.text(pointer)).find(|time| !time.is_empty()).unwrap_or_default()
}
