//! Plans from manifests and the app's current state, and shows the plan.

use std::sync::Arc;

use pushback_app::record::Observed;
use pushback_cluster::directory::DirectoryCluster;
use pushback_cluster::{Cluster, Kinds};
use pushback_deploy::check;
use pushback_deploy::plan::base::BasePlacement;
use pushback_deploy::plan::desired::{self, Placement};
use pushback_deploy::plan::{self, NamedDrift, Plan, helm};
use pushback_events::exit::ExitCode;
use pushback_events::{Event, RunFailure};
use pushback_manifest::collect::content;
use pushback_manifest::{InputError, InputWarning, Manifest};
use pushback_objects::Position;
use pushback_objects::text::counted;
use pushback_storage::carry_over::StorageOptions;
use serde_json::Value;

use super::conversion_plans;
use super::error::CommandError;
use super::options::PlanOptions;
use super::record::label_value;
use super::running::Run;
use super::setup::Setup;

/// Plans an apply.
///
/// # Errors
/// Invalid input, or the cluster's error.
pub async fn plan_apply(
    run: &Run,
    setup: &Setup,
    observed: Observed,
    manifests: Vec<Manifest>,
    options: &PlanOptions,
) -> Result<(Plan, Vec<InputWarning>), CommandError> {
    let target = PlanTarget { cluster: &*setup.cluster, kinds: &setup.kinds };
    plan_against(run, setup, target, observed, manifests, options).await
}

/// Plans further variants of CRDs against the base of these variants, which has only these.
///
/// # Errors
/// As [`plan_apply`].
pub async fn plan_variants(
    run: &Run,
    setup: &Setup,
    base: Arc<DirectoryCluster>,
    manifests: Vec<Manifest>,
    options: &PlanOptions,
) -> Result<Plan, CommandError> {
    let kinds = base.kinds().await?;
    let target = PlanTarget { cluster: &*base, kinds: &kinds };
    let observed = Observed::unrecorded(setup.app.clone());
    Ok(plan_against(run, setup, target, observed, manifests, options).await?.0)
}

/// The cluster that is planned against.
struct PlanTarget<'a> {
    cluster: &'a dyn Cluster,
    kinds: &'a Kinds,
}

async fn plan_against(
    run: &Run,
    setup: &Setup,
    target: PlanTarget<'_>,
    observed: Observed,
    mut manifests: Vec<Manifest>,
    options: &PlanOptions,
) -> Result<(Plan, Vec<InputWarning>), CommandError> {
    let PlanTarget { cluster, kinds } = target;
    let placement = Placement { default_namespace: setup.namespaces.objects.clone(), ..options.placement.clone() };
    let mut warnings = Vec::new();
    // kapp does not know Helm's annotations.
    let honours_helm = setup.observer.is_none();
    if honours_helm {
        helm::leave_out_hooks(&mut manifests, &mut warnings);
    }
    // kapp sends what it is given.
    if setup.observer.is_none() {
        check_content(&manifests, options.options.strict && !cluster.capabilities().server)?;
    }
    let unanswered = manifests.iter().filter(|manifest| is_of_broken_group(manifest, kinds)).count();
    let unknown: Vec<(Position, RunFailure)> =
        manifests.iter().filter_map(|manifest| unknown_kind(manifest, kinds)).collect();
    let mut wanted = desired::prepare(manifests, kinds, &placement, &mut warnings).map_err(|errors| {
        // An unavailable API group is not an input error.
        let code = if errors.len() == unanswered { ExitCode::Unreachable } else { ExitCode::Usage };
        let is_told = |(place, _): &(Position, RunFailure)| errors.iter().any(|error| error.position == *place);
        let failure = unknown.into_iter().find(is_told).map(|(_, failure)| failure);
        CommandError { code, failure, ..CommandError::from(errors) }
    })?;
    for wanted in &mut wanted {
        wanted.update_by_default(options.update_strategy);
        if !setup.is_named && observed.record.is_none() {
            wanted.strategies.take_literally();
        }
        let is_service_of_api = wanted.object.group == "apiregistration.k8s.io" && wanted.object.kind == "APIService";
        wanted.strategies.disable_wait |= options.ignore_api_services && is_service_of_api;
    }
    let how = plan::Options {
        base: (!setup.is_named).then_some(BasePlacement { placement, is_placed: setup.base_is_placed }),
        override_ownership: !setup.is_named || options.options.override_ownership,
        named_drift: match (options.options.named_drift, &setup.observer) {
            // kapp shows no managers.
            (NamedDrift::ByHand, Some(_)) => NamedDrift::None,
            (drift, _) => drift,
        },
        releases_unlabelled: setup.observer.is_some(),
        honours_helm,
        // kapp has an order of its own.
        crds_first: setup.observer.is_none(),
        storage: StorageOptions { plans: Arc::clone(&setup.conversion_plans), ..options.options.storage.clone() },
        nonce: run.nonce().to_owned(),
        now: run.environment.now(),
        ..options.options.clone()
    };
    let total = wanted.len();
    run.planning(format!("comparing {} with the cluster", counted(total, "object")));
    let on_compared =
        |count| run.planning_progress(|| format!("comparing {count} of {total} objects with the cluster"));
    let label_value = label_value(run, setup, &observed);
    let request = plan::Request { cluster, kinds, config: &setup.config, observed, label_value, options: &how };
    let ahead = &setup.ahead;
    let mut plan = plan::build(request, wanted, &|namespace| ahead.write_in(namespace), &on_compared).await?;
    add_cascades(setup, &mut plan).await;
    conversion_plans::check(setup, &plan, &mut warnings).await?;
    Ok((plan, warnings))
}

/// Checks the content of manifests, and for a folder, which has no server that finds them, unknown fields.
fn check_content(manifests: &[Manifest], finds_unknown_fields: bool) -> Result<(), CommandError> {
    let mut errors: Vec<InputError> = Vec::new();
    for Manifest { value, positions, .. } in manifests {
        errors.extend(content::check(value, positions));
        if finds_unknown_fields {
            errors.extend(content::unknown_fields(value, positions));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
}

/// Adds to a plan what is deleted together with its objects. kapp does not ask for it.
pub async fn add_cascades(setup: &Setup, plan: &mut Plan) {
    if setup.observer.is_none() {
        plan.add_cascades(check::cascades(&setup.ahead, &setup.kinds, plan).await);
    }
}

/// The manifest's kind and its place, if the cluster does not serve it. A definition among the manifests may still bring it.
fn unknown_kind(manifest: &Manifest, kinds: &Kinds) -> Option<(Position, RunFailure)> {
    let object = &manifest.object;
    let is_served = kinds.find(&object.group, &object.version, &object.kind).is_some();
    let failure = || RunFailure::UnknownKind { api_version: object.api_version(), kind: object.kind.clone() };
    (!is_served).then(|| (manifest.positions.locate(&["kind".into()]), failure()))
}

/// Whether the manifest's kind is unknown because its API group does not answer.
fn is_of_broken_group(manifest: &Manifest, kinds: &Kinds) -> bool {
    unknown_kind(manifest, kinds).is_some() && kinds.broken_group(&manifest.object.group).is_some()
}

/// Form in which a plan is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanDisplay<'a> {
    /// Shows changes as text.
    pub as_text: bool,
    /// Marks the plan as one that the user has seen before.
    pub is_known: bool,
    /// Objects that the garbage collector deletes with those of the plan.
    pub derived: &'a [Arc<Value>],
}

/// Shows a plan.
pub fn show(run: &Run, setup: &Setup, plan: &Plan, display: PlanDisplay<'_>) {
    for warning in &plan.warnings {
        run.events.send(Event::Warning {
            code: warning.code.to_owned(),
            message: warning.message.clone(),
            object: warning.object.map(|index| plan.objects[index].object.clone()),
            position: warning.position.clone(),
        });
    }
    let PlanDisplay { as_text, is_known, derived } = display;
    let view = plan::View { config: &setup.config, text: as_text };
    let (counts, changes) = plan::planned_lines(plan, &view);
    if let Some(observer) = &setup.observer {
        observer.planned(&setup.config, plan, derived);
    }
    run.events.send(Event::Plan { counts, changes, is_known, elapsed: run.elapsed().into() });
}
