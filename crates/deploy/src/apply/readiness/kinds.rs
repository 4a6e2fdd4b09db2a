//! Selects the rule for a kind, and holds the rules of kinds without pods. Kinds not listed here are assessed by their
//! conditions.

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::conditions::{describe, detail, find, is_true, list, one_line};
use super::context::{Context, OBSERVATION_WINDOW, SLOW_OBSERVATION_WINDOW};
use super::fields::{generation, not_observed, observed_generation};
use super::pods::{job, job_end, owned_by, pod};
use super::status::Status;
use super::troubles::GRACE;
use super::workloads::{daemon_set, deployment, replica_set, stateful_set};

/// Readiness by the rule of a kind; `None` if it has none.
pub(super) fn assess(group: &str, kind: &str, object: &Value, context: &Context<'_>) -> Option<Status> {
    Some(match (group, kind) {
        ("apps" | "extensions", "Deployment") => deployment(object, context),
        ("apps" | "extensions", "ReplicaSet") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => daemon_set(object),
        ("", "Pod") => pod(object),
        ("batch", "Job") => job(object),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") => claim(object, context),
        ("", "Namespace") => namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition(object, context),
        ("apiregistration.k8s.io", "APIService") => api_service(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(object, context),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            webhooks(context)
        }
        ("argoproj.io", "Application") => argo_application(object, context),
        ("argoproj.io", "Rollout") => argo_rollout(object, context),
        ("gateway.networking.k8s.io", kind) => return gateway(kind, object, context),
        // Ready once stored. An Ingress gets no address if its class has no controller, which is not the app's concern;
        // a CronJob creates Jobs on its schedule.
        ("", "ConfigMap" | "Secret")
        | ("batch", "CronJob")
        | ("networking.k8s.io" | "extensions", "Ingress")
        | ("policy", "PodDisruptionBudget") => Status::ready("ready"),
        _ => return None,
    })
}

/// How an object that is being cleaned up ended; `None` if it had not finished.
pub(super) fn over(group: &str, kind: &str, object: &Value) -> Option<Status> {
    match (group, kind) {
        ("batch", "Job") => job_end(object),
        ("", "Pod") if object.text("/status/phase") == "Succeeded" => Some(pod(object)),
        _ => None,
    }
}

/// Kinds whose controller reports `ReconcileSucceeded` and similar conditions.
pub(super) fn is_kapp_controller(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("kappctrl.k14s.io", "App") | ("packaging.carvel.dev", "PackageInstall" | "PackageRepository")
    )
}

pub(super) fn kapp_controller(object: &Value) -> Status {
    if observed_generation(object).is_none() || observed_generation(object) != generation(object) {
        return Status::in_progress(not_observed(object));
    }
    for kind in ["ReconcileFailed", "DeleteFailed"] {
        if let Some(condition) = find(object, kind).filter(|condition| condition.is("True")) {
            let said = object.text("/status/usefulErrorMessage");
            let said = if said.is_empty() { detail(&condition) } else { one_line(said) };
            return Status::failed(format!("{kind}: {said}"));
        }
    }
    for kind in ["Deleting", "Reconciling"] {
        if is_true(object, kind) {
            return Status::in_progress(kind.to_lowercase());
        }
    }
    if is_true(object, "ReconcileSucceeded") {
        return Status::ready("reconciled");
    }
    let is_off = |field: &str| object.pointer(field) == Some(&Value::Bool(true));
    if is_off("/spec/paused") || is_off("/spec/canceled") {
        return Status::ready("paused");
    }
    Status::in_progress("not reconciled yet")
}

fn service(object: &Value) -> Status {
    let kind = object.text("/spec/type");
    if kind == "ExternalName" {
        return Status::ready("ready");
    }
    if object.text("/spec/clusterIP").is_empty() {
        return Status::in_progress("no cluster IP yet");
    }
    if kind == "LoadBalancer" && list(object, "/status/loadBalancer/ingress").is_empty() {
        return Status::in_progress("no load balancer address yet");
    }
    Status::ready("ready")
}

/// A claim never blocks dependents: the pod that mounts it may be the consumer that it waits for.
fn claim(object: &Value, context: &Context<'_>) -> Status {
    let phase = object.text("/status/phase");
    match phase {
        "Bound" => return Status::ready("bound"),
        "Lost" => return Status::unblocked("its volume is lost"),
        _ => {}
    }
    if waits_for_consumer(object, context) && !has_consumer(object, context) {
        return Status::ready("waits for its first consumer");
    }
    let phase = if phase.is_empty() { "pending".to_owned() } else { phase.to_lowercase() };
    Status::unblocked(phase)
}

fn waits_for_consumer(claim: &Value, context: &Context<'_>) -> bool {
    let class_name = claim.text("/spec/storageClassName");
    let class = context.related.storage_classes.iter().find(|class| class.name() == class_name);
    if let Some(class) = class.filter(|_| !class_name.is_empty()) {
        return class.text("/volumeBindingMode") == "WaitForFirstConsumer";
    }
    super::reasons::events_of(claim, context.related.events)
        .any(|event| event.text("/reason") == "WaitForFirstConsumer")
}

fn has_consumer(claim: &Value, context: &Context<'_>) -> bool {
    let mounts = |pod: &Value| {
        // The claim of a generic ephemeral volume is owned by its pod.
        pod.namespace() == claim.namespace()
            && (owned_by(claim, pod)
                || list(pod, "/spec/volumes")
                    .iter()
                    .any(|volume| volume.text("/persistentVolumeClaim/claimName") == claim.name()))
    };
    claim.annotation("volume.kubernetes.io/selected-node").is_some()
        || context.related.pods.iter().any(|pod| !pod.is_terminating() && mounts(pod))
}

fn namespace(object: &Value) -> Status {
    match object.text("/status/phase") {
        "Terminating" => Status::in_progress("being deleted"),
        _ => Status::ready("active"),
    }
}

/// The server judges names some time after a write, and no generation says which names a condition is about. It does not
/// judge names that equal those it has accepted, so a condition of names in between stays (Kubernetes 1.36).
fn custom_resource_definition(object: &Value, context: &Context<'_>) -> Status {
    let names = find(object, "NamesAccepted");
    let established = find(object, "Established");
    let are_accepted = names_of(object, "/status/acceptedNames") == names_of(object, "/spec/names");
    match &names {
        Some(condition) if condition.is("False") && !are_accepted => {
            let is_final = context.is_observed_after(OBSERVATION_WINDOW) && !context.related.frees_names;
            let status = if is_final { Status::failed } else { Status::in_progress };
            return status(describe(condition));
        }
        Some(_) if !are_accepted && !context.unchanged => return Status::in_progress("its names are not accepted yet"),
        _ => {}
    }
    if let Some(condition) = established.filter(|condition| condition.is("False") && condition.reason != "Installing") {
        return Status::failed(describe(&condition));
    }
    if names.is_some() && established.is_some_and(|condition| condition.is("True")) {
        return Status::ready("established");
    }
    Status::in_progress("not established yet")
}

/// The names that the server accepts one by one. Categories are never refused.
fn names_of<'o>(object: &'o Value, path: &str) -> (Vec<&'o str>, Vec<&'o str>) {
    let names = ["plural", "singular", "kind", "listKind"].map(|key| object.text(&format!("{path}/{key}")));
    let short = list(object, &format!("{path}/shortNames")).iter().filter_map(Value::as_str);
    (names.to_vec(), short.collect())
}

fn api_service(object: &Value) -> Status {
    match find(object, "Available") {
        Some(condition) if condition.is("True") => Status::ready("available"),
        Some(condition) => Status::in_progress(describe(&condition)),
        None => Status::in_progress("not available yet"),
    }
}

/// An autoscaler without metrics does not scale, but the app runs: reported, not waited for.
fn autoscaler(object: &Value, context: &Context<'_>) -> Status {
    if let Some(condition) = find(object, "AbleToScale").filter(|condition| !condition.is("True")) {
        return Status::unblocked(describe(&condition));
    }
    if let Some(condition) = find(object, "ScalingActive").filter(|condition| !condition.is("True")) {
        return Status::ready(describe(&condition));
    }
    let is_unobserved = super::conditions::all(object).next().is_none();
    if is_unobserved && !context.is_observed_after(SLOW_OBSERVATION_WINDOW) {
        return Status::unblocked("not seen by the autoscaler yet");
    }
    Status::ready("ready")
}

/// Gateway API: its kinds have no `Ready` condition, and routes report per parent.
fn gateway(kind: &str, object: &Value, context: &Context<'_>) -> Option<Status> {
    let wanted = match kind {
        "Gateway" => "Programmed",
        "GatewayClass" => "Accepted",
        kind if kind.ends_with("Route") => return Some(route(object, context)),
        _ => return None,
    };
    Some(match find(object, wanted) {
        Some(condition) if condition.is("True") => Status::ready(wanted.to_lowercase()),
        Some(condition) => Status::unblocked(describe(&condition)),
        None => Status::unblocked(format!("not {} yet", wanted.to_lowercase())),
    })
}

fn route(object: &Value, context: &Context<'_>) -> Status {
    let parents = list(object, "/status/parents");
    // A parent without a report may have no controller at all; that cannot be told from here.
    let has_gateway = !list(object, "/spec/parentRefs").is_empty();
    if parents.is_empty() && has_gateway && !context.is_observed_after(OBSERVATION_WINDOW) {
        return Status::unblocked("not seen by a gateway yet");
    }
    for parent in parents {
        let conditions = list(parent, "/conditions").iter().map(super::conditions::Condition::of);
        let is_current = |observed: Option<i64>| observed.is_none() || observed == generation(object);
        for condition in conditions.filter(|condition| matches!(condition.kind, "Accepted" | "ResolvedRefs")) {
            if !is_current(condition.observed_generation) {
                return Status::unblocked(not_observed(object));
            }
            if !condition.is("True") {
                return Status::unblocked(format!(
                    "gateway {}: {}",
                    parent.text("/parentRef/name"),
                    describe(&condition)
                ));
            }
        }
    }
    Status::ready("accepted")
}

/// A webhook that fails closed rejects every request until its backend is ready.
fn webhooks(context: &Context<'_>) -> Status {
    match context.related.backends.iter().find(|(_, is_ready)| !is_ready) {
        Some((service, _)) => Status::unblocked(format!("no endpoint of Service {service} is ready yet")),
        None => Status::ready("ready"),
    }
}

/// Argo CD: no `Ready` condition, but its own terms for health and sync status.
fn argo_application(object: &Value, context: &Context<'_>) -> Status {
    let (health, sync) = (object.text("/status/health/status"), object.text("/status/sync/status"));
    let is_automated = object.pointer("/spec/syncPolicy/automated").is_some_and(|value| !value.is_null());
    let words = [health, sync].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
    match (health, sync) {
        ("", "") if context.is_observed_after(SLOW_OBSERVATION_WINDOW) => Status::ready("ready"),
        ("", "") => Status::unblocked("no status yet"),
        ("Healthy", "Synced") | ("Suspended", _) => Status::ready(words),
        // A manual sync is not waited for.
        (_, "OutOfSync") if !is_automated => Status::ready(format!("{words}; it is synchronised by hand")),
        _ => {
            let said = one_line(object.text("/status/operationState/message"));
            Status::unblocked(if said.is_empty() { words } else { format!("{words} ({said})") })
        }
    }
}

/// Argo Rollouts: a phase in `status.phase`, and an observed generation that is a string.
fn argo_rollout(object: &Value, context: &Context<'_>) -> Status {
    let observed = object.text("/status/observedGeneration").parse::<i64>().ok();
    if observed.is_some() && observed != generation(object) {
        return Status::unblocked(not_observed(object));
    }
    let (phase, said) = (object.text("/status/phase"), one_line(object.text("/status/message")));
    let words = if said.is_empty() { phase.to_lowercase() } else { format!("{} ({said})", phase.to_lowercase()) };
    match phase {
        // A paused canary waits for a manual promotion.
        "Healthy" | "Paused" => Status::ready(words),
        "Degraded" if context.waited >= GRACE => Status::failed(words),
        "" if context.is_observed_after(SLOW_OBSERVATION_WINDOW) => Status::ready("ready"),
        "" => Status::unblocked("no status yet"),
        _ => Status::unblocked(words),
    }
}
