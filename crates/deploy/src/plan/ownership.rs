//! Objects that belong to other apps, and which of them the user takes over.

use std::collections::{BTreeMap, BTreeSet};

use pushback_app::identity::RECORD_LABEL;
use pushback_app::record::{Observed, config_map_kind};
use pushback_cluster::{Cluster, ListQuery, list_all};
use pushback_events::{AppRef, OwnedObject};
use pushback_manifest::InputError;
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::desired::Desired;
use super::live::Live;
use super::{PlanError, Planned};

/// Apps whose objects may be taken over.
#[derive(Clone, Debug)]
pub(super) enum OwnershipOverride {
    /// None.
    None,
    /// Any app.
    Any,
    /// The apps with these label values.
    Labels(BTreeSet<String>),
}

impl OwnershipOverride {
    pub(super) fn allows(&self, label_value: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Labels(labels) => labels.contains(label_value),
        }
    }
}

/// Refuses objects that carry another app's label, with an error that names the app.
pub(super) async fn check(
    cluster: &dyn Cluster,
    observed: &Observed,
    live: &Live,
    pairs: &[(Desired, Planned)],
) -> Result<(), PlanError> {
    let foreign: Vec<(&Desired, &str)> = pairs
        .iter()
        .filter_map(|(wanted, planned)| planned.foreign_app.as_deref().map(|label| (wanted, label)))
        .collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let apps = app_names(cluster, &observed.app.namespace).await;
    let label_key = observed.app.label_key();
    let owned = foreign.iter().filter(|(_, label)| !label.is_empty()).map(|(wanted, label)| OwnedObject {
        object: wanted.object.clone(),
        app: apps.get(*label).map(|name| AppRef { name: name.clone(), namespace: observed.app.namespace.clone() }),
        label: format!("{label_key}={label}"),
    });
    let owned = owned.collect();
    let errors: Vec<InputError> = foreign
        .into_iter()
        .map(|(wanted, label)| {
            let claim = live.claims.owners.get(&wanted.object.key());
            let message = match (claim, apps.get(label)) {
                (Some(claim), _) => format!(
                    "{} is already associated with a different app '{}' namespace: {}",
                    wanted.object, claim.app.name, claim.app.namespace
                ),
                (None, _) if label.is_empty() => format!("{} is the record of an app", wanted.object),
                (None, Some(name)) => format!(
                    "{} is already associated with a different app '{name}' namespace: {} (label '{label_key}={label}')",
                    wanted.object, observed.app.namespace
                ),
                (None, None) => format!(
                    "{} is already associated with a different label '{label_key}={label}'",
                    wanted.object
                ),
            };
            InputError {
                message,
                position: wanted.positions.start(),
                hints: vec![
                    match label {
                        "" => "give the object another name, or another namespace",
                        _ => {
                            "remove it from one of the two apps, or take it over with \
                             --dangerous-override-ownership-of-existing-resources"
                        }
                    }
                    .to_owned(),
                ],
            }
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(PlanError::Ownership(errors, owned)) }
}

/// Returns which apps' objects a run may take over that overrides ownership: those of the apps with these names, or of
/// any if there are none.
pub(super) async fn allowed(cluster: &dyn Cluster, observed: &Observed, names: &[String]) -> OwnershipOverride {
    if names.is_empty() {
        return OwnershipOverride::Any;
    }
    let apps = app_names(cluster, &observed.app.namespace).await;
    OwnershipOverride::Labels(
        apps.into_iter().filter(|(_, name)| names.contains(name)).map(|(label, _)| label).collect(),
    )
}

/// App names by label value in one namespace. Unreadable records are skipped.
async fn app_names(cluster: &dyn Cluster, namespace: &str) -> BTreeMap<String, String> {
    let query = ListQuery::new(config_map_kind(), Some(namespace), RECORD_LABEL);
    let Ok(page) = list_all(cluster, &query).await else { return BTreeMap::new() };
    page.items
        .iter()
        .filter_map(|record| {
            let spec: Value = serde_json::from_str(record.text("/data/spec")).ok()?;
            Some((spec.text("/labelValue").to_owned(), record.name().to_owned()))
        })
        .collect()
}
