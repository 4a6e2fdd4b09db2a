//! Which namespaces an apply may touch, and whether it may touch cluster-scoped objects, where the user has limited it.

use std::collections::{BTreeMap, BTreeSet};

use pushback_deploy::plan::Plan;
use pushback_events::RunFailure;
use pushback_manifest::InputError;
use pushback_manifest::collect::Problem;

use super::error::CommandError;
use super::options::{Allowed, PlanOptions};
use super::setup::Setup;

/// Checks that a plan writes only what the user has allowed.
///
/// # Errors
/// It does not.
pub(super) fn check(setup: &Setup, plan: &Plan, options: &PlanOptions) -> Result<(), CommandError> {
    let Some(Allowed { namespaces, cluster_scoped }) = &options.allowed else { return Ok(()) };
    let mapped = options.placement.map_namespaces.iter().map(|(_, to)| to.as_str());
    // Where the user has objects put is allowed, too.
    let own = [setup.namespaces.objects.as_str()]
        .into_iter()
        .chain(options.placement.into_namespace.as_deref())
        .chain(mapped);
    let namespaces: Option<BTreeSet<&str>> =
        namespaces.as_ref().map(|allowed| allowed.iter().map(String::as_str).chain(own).collect());
    let mut documents: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for planned in &plan.objects {
        let Some(positions) = planned.positions.as_deref() else { continue };
        let document = documents.entry(positions.file()).or_default();
        *document += 1;
        let object = &planned.object;
        let is_namespaced = !object.namespace.is_empty();
        let is_allowed = match (is_namespaced, &namespaces) {
            (false, _) => *cluster_scoped,
            (true, Some(namespaces)) => namespaces.contains(object.namespace.as_str()),
            (true, None) => true,
        };
        if is_allowed {
            continue;
        }
        let (object_ref, file) = (object.clone(), positions.file().to_owned());
        found.push(Problem { object: object_ref, file, document: *document, missing: Vec::new() });
        let (message, hint) = match is_namespaced {
            true => (
                format!("{object} is in a namespace that is not allowed"),
                format!("allow it with --allow-ns {}", object.namespace),
            ),
            false => (
                format!("{object} is cluster-scoped, which is not allowed"),
                "allow such objects with --allow-cluster".to_owned(),
            ),
        };
        errors.push(InputError { message, position: positions.start(), hints: vec![hint] });
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(CommandError::from(errors).because(RunFailure::NotAllowed { objects: found }))
}
