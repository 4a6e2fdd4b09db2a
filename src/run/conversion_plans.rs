//! Whether the conversion plans of a run fit the definitions that they are for.

use std::sync::Arc;

use pushback_cluster::ClusterError;
use pushback_conversion::{GivenPlan, PlanSource};
use pushback_crd::stack;
use pushback_deploy::plan::{Plan, Planned};
use pushback_manifest::{InputError, InputWarning};
use pushback_objects::suggest;
use pushback_storage::definitions;
use serde_json::Value;

use super::error::CommandError;
use super::setup::Setup;

/// Compiles each plan for the definition as it will be, with the versions that it has on the cluster. A plan for a
/// definition that does not exist is a warning if it comes with the manifests; a policy may be shared by many apps.
///
/// # Errors
/// Everything in the plans that does not fit.
pub(super) async fn check(setup: &Setup, plan: &Plan, warnings: &mut Vec<InputWarning>) -> Result<(), CommandError> {
    let mut errors = Vec::new();
    let definitions: Vec<&Planned> = plan.objects.iter().filter(|planned| planned.object.is_definition()).collect();
    for given in setup.conversion_plans.iter() {
        let name = given.definition.as_str();
        match definitions.iter().find(|planned| planned.object.name == name) {
            Some(planned) => {
                let live = planned.live.as_deref();
                if let Some(wanted) = planned.desired.as_deref().or(live) {
                    fit(given, live, wanted, &mut errors, warnings);
                }
            }
            None => match live(setup, name).await {
                Ok(Some(live)) => fit(given, Some(&live), &live, &mut errors, warnings),
                Ok(None) if given.source == PlanSource::Manifests => {
                    let known = definitions.iter().map(|planned| planned.object.name.as_str());
                    let nearest = suggest::nearest(name, known);
                    let hint = nearest.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                    let message =
                        format!("there is no definition {name}, neither in the manifests nor in the cluster{hint}");
                    warnings.push(warning(given, message));
                }
                // What cannot be read is not converted either.
                Ok(None) | Err(_) => {}
            },
        }
    }
    for given in setup.conversion_plans.not_followed() {
        let of_policy = setup.conversion_plans.for_definition(&given.definition);
        let place = of_policy.map(|plan| plan.document.positions.start().to_string()).unwrap_or_default();
        warnings.push(warning(
            given,
            format!("not followed: {place}, from a source of policy, has a plan for {}", given.definition),
        ));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
}

async fn live(setup: &Setup, name: &str) -> Result<Option<Arc<Value>>, ClusterError> {
    let kind = definitions::kind(&setup.kinds)?;
    setup.cluster.get(&definitions::address(&kind, name)).await
}

/// Collects what in a plan does not fit a definition.
fn fit(
    given: &GivenPlan,
    live: Option<&Value>,
    wanted: &Value,
    errors: &mut Vec<InputError>,
    warnings: &mut Vec<InputWarning>,
) {
    let gone = given.unknown_versions(&[live.unwrap_or(wanted), wanted]);
    // Once the objects are converted, the old version goes, and its plan may stay where it is.
    if live.is_some() && !gone.is_empty() {
        let (name, gone) = (&given.definition, gone.join(" and "));
        let message = format!(
            "{name} has no version {gone} any more: its plan has nothing to do, unless it keeps the schema of it"
        );
        return warnings.push(warning(given, message));
    }
    match stack::with_room(|| given.converter(live, wanted)) {
        Ok(converter) => errors.extend(converter.without_programs(&given.document.positions.start()).err()),
        Err(more) => errors.extend(more),
    }
}

fn warning(given: &GivenPlan, message: String) -> InputWarning {
    InputWarning { code: "conversion-plan", message, position: given.document.positions.start() }
}
