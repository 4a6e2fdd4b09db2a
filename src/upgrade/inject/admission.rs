//! Which experiments may be made, by what the user allows and what they forbid themselves, and who plans each.
//! What hits nothing that is allowed is not even looked at.

use std::collections::BTreeSet;

use pushback_preflight::experiment::{DangerLevel, Experiment, InjectionType};

use super::super::change::Target;
use super::super::journal::NAME_PREFIX;
use super::planning::{Planned, Planning, Refusal};
use super::{binding, created, deleted, fields, pods, webhook};
use crate::cluster::{Cluster, Kinds};

/// Where experiments may inject, and how far they may go.
#[derive(Clone, Debug)]
pub struct Site {
    /// Namespaces that the user has named.
    pub allowed: BTreeSet<String>,
    /// The most dangerous that the user allows.
    pub max_danger: DangerLevel,
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
        let message = format!("{} is generated for the original runner and not executed here", injection.kind.name());
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
