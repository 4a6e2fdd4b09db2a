//! From an experiment to the changes that it makes: what it may reach, which objects it hits, and what healing is.

use std::collections::BTreeSet;

use pushback_preflight::ObjectExt;
use pushback_preflight::experiment::{DangerLevel, Experiment, InjectionType};
use serde_json::Value;

use super::super::change::{Step, Target};
use super::super::journal::NAME_PREFIX;
use super::super::mark::MARK;
use super::{binding, created, deleted, fields, pods, webhook};
use crate::cluster::{Address, Cluster, ClusterError, Kinds};

/// Where experiments may inject, and how far they may go.
#[derive(Clone, Debug)]
pub struct Site {
    /// Namespaces that the user has named.
    pub allowed: BTreeSet<String>,
    /// The most dangerous that the user allows.
    pub max_danger: DangerLevel,
}

/// What an experiment is going to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// The changes, in their order. None where the cluster is already as the experiment would make it, and it is only
    /// measured.
    pub steps: Vec<Step>,
    /// Webhook configurations whose admission is measured.
    pub measured: Vec<Target>,
    /// Whether the operator is expected to undo them by itself while the experiment waits.
    pub heals: bool,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Why an experiment is not made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// Not by this runner.
    #[error("{0}")]
    NotExecutable(String),
    /// The user or the experiment forbids it.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster has not what it needs.
    #[error("{0}")]
    Impossible(String),
    /// The cluster could not be asked.
    #[error("{0}")]
    Cluster(ClusterError),
}

/// What a planner needs.
pub(super) struct Planning<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) kinds: &'a Kinds,
    pub(super) experiment: &'a Experiment,
    pub(super) namespace: &'a str,
}

impl Planning<'_> {
    /// A parameter; empty where it is not given.
    pub(super) fn parameter(&self, name: &str) -> &str {
        self.experiment.injection.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The address of an object that parameters name.
    pub(super) fn address(&self, api_version: &str, kind: &str, name: &str) -> Result<Address, Refusal> {
        let target = Target {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            ..Target::default()
        };
        target.address(self.kinds).map_err(Refusal::Cluster)
    }
}

/// Types that are executed here; the others are for the original's runner.
const EXECUTABLE: [InjectionType; 12] = [
    InjectionType::PodKill,
    InjectionType::NetworkPartition,
    InjectionType::ConfigDrift,
    InjectionType::CrdMutation,
    InjectionType::FinalizerBlock,
    InjectionType::LabelStomping,
    InjectionType::WebhookDisrupt,
    InjectionType::RbacRevoke,
    InjectionType::ResourceDeletion,
    InjectionType::SecretDeletion,
    InjectionType::DeploymentScaleZero,
    InjectionType::QuotaExhaustion,
];

/// Whether a user's limits let an experiment run, before the cluster is asked anything.
///
/// # Errors
/// Why not.
pub fn admit(experiment: &Experiment, site: &Site) -> Result<(), Refusal> {
    let injection = &experiment.injection;
    if !EXECUTABLE.contains(&injection.kind) {
        let message = format!("{} is generated for the original's runner, not executed here", injection.kind.name());
        return Err(Refusal::NotExecutable(message));
    }
    let danger = if injection.kind.is_always_dangerous() { DangerLevel::High } else { injection.danger };
    if danger > site.max_danger {
        let message =
            format!("it is of danger level {}; --max-danger {} stops here", danger.as_str(), site.max_danger.as_str());
        return Err(Refusal::Forbidden(message));
    }
    let namespace = experiment.injection_namespace();
    if is_protected(namespace) {
        return Err(Refusal::Forbidden(format!("namespace {namespace} is protected: nothing is injected there")));
    }
    // The platform's own namespaces too, once the experiment says that it is dangerous and the user names them.
    if !site.allowed.contains(namespace) {
        let message = format!("namespace {namespace} is not allowed; allow it with --allow-namespace {namespace}");
        return Err(Refusal::Forbidden(message));
    }
    Ok(())
}

fn is_protected(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

/// Looks at the cluster, and says what an experiment is going to do.
///
/// # Errors
/// Why it does nothing.
pub async fn plan(cluster: &dyn Cluster, kinds: &Kinds, experiment: &Experiment, id: &str) -> Result<Planned, Refusal> {
    let planning = Planning { cluster, kinds, experiment, namespace: experiment.injection_namespace() };
    let planned = match experiment.injection.kind {
        InjectionType::PodKill => pods::kill(&planning).await,
        InjectionType::NetworkPartition => created::network_policy(&planning, id),
        InjectionType::QuotaExhaustion => created::quota(&planning),
        InjectionType::ConfigDrift => fields::config(&planning).await,
        InjectionType::CrdMutation => fields::custom_resource(&planning).await,
        InjectionType::LabelStomping => fields::label(&planning).await,
        InjectionType::DeploymentScaleZero => fields::replicas(&planning).await,
        InjectionType::FinalizerBlock => fields::finalizer(&planning).await,
        InjectionType::RbacRevoke => binding::subjects(&planning).await,
        InjectionType::WebhookDisrupt => webhook::policy(&planning).await,
        InjectionType::ResourceDeletion => deleted::resource(&planning).await,
        InjectionType::SecretDeletion => deleted::secret(&planning).await,
        other => Err(Refusal::NotExecutable(format!("{} is not executed here", other.name()))),
    }?;
    for step in &planned.steps {
        allow_target(experiment, &step.target)?;
    }
    Ok(planned)
}

/// Neither what the experiment forbids nor what this tool keeps its own state in.
fn allow_target(experiment: &Experiment, target: &Target) -> Result<(), Refusal> {
    let names = [target.name.clone(), format!("{}/{}", target.kind, target.name)];
    if let Some(forbidden) = experiment.blast_radius.forbidden_resources.iter().find(|name| names.contains(name)) {
        return Err(Refusal::Forbidden(format!("{target} is in forbiddenResources as {forbidden}")));
    }
    if matches!(target.kind.as_str(), "ConfigMap" | "Secret") && target.name.starts_with(NAME_PREFIX) {
        return Err(Refusal::Forbidden(format!("{target} is a journal of experiments")));
    }
    Ok(())
}

/// Refuses objects that nothing may be injected into: another experiment's, and the records of apps.
pub(super) fn allow_object(object: &Value) -> Result<(), Refusal> {
    let shown = Target::of(object);
    if let Some(mark) = object.annotation(MARK) {
        let journal = mark.split(':').next().unwrap_or_default();
        return Err(Refusal::Forbidden(format!("{shown} is changed by another experiment already ({journal})")));
    }
    let records = ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", crate::app::identity::INVENTORY_LABEL];
    match records.iter().find(|label| object.label(label).is_some()) {
        Some(_) => Err(Refusal::Forbidden(format!("{shown} is the record of an app"))),
        None => Ok(()),
    }
}
