//! Which objects experiments may change. The target object decides, not the namespace of the experiment: a cluster-scoped
//! object needs the user's consent by name, and what the run itself needs to revert is never a target.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use pushback_app::identity::INVENTORY_LABEL;
use pushback_cluster::{Address, ClusterError};
use pushback_objects::ObjectExt;
use pushback_preflight::experiment::DangerLevel;
use serde_json::Value;

use super::super::change::Target;
use super::super::journal::NAME_PREFIX;
use super::super::lock::LEASE;
use super::super::mark::MARK;

/// API group of webhook configurations and admission policies.
const ADMISSION: &str = "admissionregistration.k8s.io";
/// API group of roles and bindings.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
/// API groups of which each object decides whether the API server answers at all.
const SERVING_GROUPS: [&str; 2] = ["apiregistration.k8s.io", "flowcontrol.apiserver.k8s.io"];
/// Roles and bindings that every cluster needs.
const CLUSTER_ROLES: [&str; 4] = ["cluster-admin", "admin", "edit", "view"];

/// Reason for which an experiment does not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// This runner does not support it.
    #[error("{0}")]
    NotExecutable(String),
    /// The user's limits or the experiment's own forbid it.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster lacks what it needs.
    #[error("{0}")]
    Impossible(String),
    /// The cluster's error.
    #[error("{0}")]
    Cluster(ClusterError),
}

/// Limits on experiments: where they may inject, and how dangerous they may be.
#[derive(Clone, Debug)]
pub struct Site {
    /// Namespaces allowed by the user.
    pub allowed: BTreeSet<String>,
    /// Highest danger level that the user allows.
    pub max_danger: DangerLevel,
    /// Cluster-scoped objects allowed by the user.
    pub cluster_scoped: BTreeSet<ClusterScoped>,
}

/// A cluster-scoped object that the user allows as a target, `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterScoped {
    kind: String,
    name: String,
}

impl ClusterScoped {
    /// The consent that a target needs.
    fn new(address: &Address) -> Self {
        Self { kind: address.kind.kind.clone(), name: address.name.clone() }
    }
}

impl fmt::Display for ClusterScoped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl FromStr for ClusterScoped {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains(['/', '*']) => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected KIND/NAME, such as ClusterRole/backup-operator".to_owned()),
        }
    }
}

/// Returns whether no injection into a namespace is allowed, whatever the user allows.
pub(super) fn is_protected(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

/// Checks a target by its address, before it is read.
///
/// # Errors
/// It is never a target, or it is cluster-scoped and the user has not named it.
pub(super) fn allow_address(site: &Site, address: &Address) -> Result<(), Refusal> {
    if let Some(reason) = never(address) {
        return Err(Refusal::Forbidden(format!("{address} {reason}")));
    }
    if address.kind.namespaced {
        return Ok(());
    }
    let consent = ClusterScoped::new(address);
    if site.cluster_scoped.contains(&consent) {
        return Ok(());
    }
    Err(Refusal::Forbidden(format!("{address} is cluster-scoped; allow it with --allow-cluster-scoped {consent}")))
}

/// Why an object is never a target; `None` if it may be one.
fn never(address: &Address) -> Option<&'static str> {
    let (group, kind, name) = (address.kind.group.as_str(), address.kind.kind.as_str(), address.name.as_str());
    match (group, kind) {
        ("", "Namespace") if is_protected(name) => Some("is protected: it is never changed"),
        ("", "ConfigMap" | "Secret") if name.starts_with(NAME_PREFIX) => Some("is a journal of experiments"),
        ("coordination.k8s.io", "Lease") if name == LEASE => Some("is the lock of a run of experiments"),
        (RBAC, _) if name.starts_with("system:") || (!address.kind.namespaced && CLUSTER_ROLES.contains(&name)) => {
            Some("belongs to the cluster itself: it is never changed")
        }
        _ if SERVING_GROUPS.contains(&group) => {
            Some("decides whether the API server answers: the change could not be reverted")
        }
        _ => None,
    }
}

/// Checks a target by its live state.
///
/// # Errors
/// It belongs to another experiment, records an app, or is needed to revert.
pub(super) fn allow_object(object: &Value) -> Result<(), Refusal> {
    let shown = Target::of(object);
    if let Some(mark) = object.annotation(MARK) {
        let journal = mark.split(':').next().unwrap_or_default();
        return Err(Refusal::Forbidden(format!("{shown} is changed by another experiment already ({journal})")));
    }
    if object.label(MARK).is_some() {
        return Err(Refusal::Forbidden(format!("{shown} belongs to a run of experiments")));
    }
    let records = ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", INVENTORY_LABEL];
    if records.iter().any(|label| object.label(label).is_some()) {
        return Err(Refusal::Forbidden(format!("{shown} is the record of an app")));
    }
    if object.text("/apiVersion").starts_with(RBAC)
        && object.label("kubernetes.io/bootstrapping") == Some("rbac-defaults")
    {
        return Err(Refusal::Forbidden(format!("{shown} belongs to the cluster itself: it is never changed")));
    }
    Ok(())
}

/// Checks a single field that an experiment would set.
///
/// # Errors
/// The effect of the change could not be reverted.
pub(super) fn allow_field(address: &Address, field: &str, value: &Value) -> Result<(), Refusal> {
    let reason = match (address.kind.group.as_str(), address.kind.kind.as_str()) {
        (ADMISSION, _) if field != "metadata" => {
            "is asked about each write, also those that revert: use WebhookDisrupt"
        }
        ("", "PersistentVolume") if field != "metadata" => "holds data that a change may delete",
        ("", "Node") if field == "spec" && evicts(value) => {
            "would evict Pods of all namespaces, also those that no controller creates again"
        }
        _ => return Ok(()),
    };
    Err(Refusal::Forbidden(format!("{address} {reason}")))
}

/// Whether the value holds a taint that evicts Pods.
fn evicts(value: &Value) -> bool {
    match value {
        Value::String(text) => text == "NoExecute",
        Value::Array(items) => items.iter().any(evicts),
        Value::Object(fields) => fields.values().any(evicts),
        _ => false,
    }
}
