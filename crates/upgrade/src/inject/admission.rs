//! Which experiments may run, by the user's limits and their own, and which planner handles each. Objects outside the
//! limits are not even read.

use pushback_cluster::{Cluster, Kinds};
use pushback_preflight::experiment::{DangerLevel, Experiment, InjectionType};

use super::super::change::Target;
use super::planning::{Planned, Planning};
use super::scope::{self, Refusal, Site, is_protected};
use super::{created, deleted, fields, held, pods, webhook};

/// Injection types that run here; the others need the original runner.
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

/// Checks an experiment against the user's limits, before any request to the cluster.
///
/// # Errors
/// The reason why it may not run.
pub fn admit(experiment: &Experiment, site: &Site) -> Result<(), Refusal> {
    let injection = &experiment.injection;
    if !EXECUTABLE.contains(&injection.kind) {
        let message = format!("{} is generated for the original runner and not executed here", injection.kind.as_str());
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
    // This includes the platform's own namespaces if the experiment is marked as dangerous and the user names them.
    if !site.allowed.contains(namespace) {
        let message = format!("namespace {namespace} is not allowed; allow it with --allow-namespace {namespace}");
        return Err(Refusal::Forbidden(message));
    }
    Ok(())
}

/// Reads the cluster, and plans what an experiment will do.
///
/// # Errors
/// The reason why it would do nothing.
pub async fn plan(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    experiment: &Experiment,
    site: &Site,
    id: &str,
) -> Result<Planned, Refusal> {
    let planning = Planning { cluster, kinds, experiment, namespace: experiment.injection_namespace(), site };
    let planned = match experiment.injection.kind {
        InjectionType::PodKill => pods::kill(&planning).await,
        InjectionType::NetworkPartition => created::network_policy(&planning, id).await,
        InjectionType::QuotaExhaustion => created::quota(&planning),
        InjectionType::ConfigDrift => fields::config(&planning).await,
        InjectionType::CrdMutation => fields::custom_resource(&planning).await,
        InjectionType::LabelStomping => fields::label(&planning).await,
        InjectionType::DeploymentScaleZero => fields::replicas(&planning).await,
        InjectionType::FinalizerBlock => held::deletion(&planning).await,
        InjectionType::RbacRevoke => fields::binding_subjects(&planning).await,
        InjectionType::WebhookDisrupt => webhook::unreachable(&planning).await,
        InjectionType::ResourceDeletion => deleted::resource(&planning).await,
        InjectionType::SecretDeletion => deleted::secret(&planning).await,
        other => Err(Refusal::NotExecutable(format!("{} is not executed here", other.as_str()))),
    }?;
    for step in &planned.steps {
        allow_target(experiment, &step.target)?;
        // Whatever a planner has read: the change stays in the namespace, or has a consent of its own.
        let address = step.target.address(kinds).map_err(Refusal::Cluster)?;
        scope::allow_address(site, &address)?;
        if address.kind.namespaced && address.namespace != planning.namespace {
            return Err(Refusal::Forbidden(format!("{address} is outside of namespace {}", planning.namespace)));
        }
    }
    Ok(planned)
}

/// Refuses targets that the experiment forbids.
fn allow_target(experiment: &Experiment, target: &Target) -> Result<(), Refusal> {
    let names = [target.name.clone(), format!("{}/{}", target.kind, target.name)];
    if let Some(forbidden) = experiment.blast_radius.forbidden_resources.iter().find(|name| names.contains(name)) {
        return Err(Refusal::Forbidden(format!("{target} is in forbiddenResources as {forbidden}")));
    }
    Ok(())
}
