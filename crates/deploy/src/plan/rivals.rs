//! Objects that another record with the app's label also claims: one record is forged or a copy, and it is impossible
//! to tell which. None of them is deleted, or taken over without being requested.

use std::collections::{BTreeMap, BTreeSet};

use pushback_app::identity::APP_LABEL;
use pushback_app::record::{AppName, Observed};
use pushback_app::twins::{self, Records};
use pushback_cluster::{Cluster, ClusterError};
use pushback_manifest::InputError;
use pushback_objects::ObjectExt;

use super::desired::Desired;
use super::ownership::OwnershipOverride;
use super::{Action, PlanError, Planned};

/// Lists the cluster's records ahead of a check; `None` where no record can claim the app's objects.
pub(super) async fn records(cluster: &dyn Cluster, observed: &Observed) -> Option<Records> {
    let can_be_claimed =
        cluster.capabilities().server && observed.record.is_some() && observed.app.label_key() == APP_LABEL;
    if can_be_claimed { Some(twins::records(cluster).await) } else { None }
}

/// Refuses deletions and writes of objects that another record also claims. If that is unknown, returns the reason when
/// only writes are planned: they change objects in the app's inventory, and a failed list is no evidence against that.
/// The records are listed unless that was done ahead.
pub(super) async fn check(
    cluster: &dyn Cluster,
    observed: &Observed,
    listed: Option<Records>,
    prunes: &[Planned],
    pairs: &[(Desired, Planned)],
    ownership_override: &OwnershipOverride,
) -> Result<Option<ClusterError>, PlanError> {
    let Some(record) = observed.record.as_ref().filter(|_| observed.app.label_key() == APP_LABEL) else {
        return Ok(None);
    };
    let is_of_label = |planned: &Planned| {
        let writes = matches!(planned.action, Action::Update(_) | Action::Replace(_));
        writes && planned.live.as_deref().is_some_and(|live| live.label(APP_LABEL) == Some(record.label_value()))
    };
    let written: Vec<&(Desired, Planned)> = match ownership_override.allows(record.label_value()) {
        true => Vec::new(),
        false => pairs.iter().filter(|(_, planned)| is_of_label(planned)).collect(),
    };
    if prunes.is_empty() && written.is_empty() {
        return Ok(None);
    }
    let app = &observed.app;
    let place = |kind: &str, name: &str, namespace: &str| match kind {
        "Namespace" => name.to_owned(),
        _ => namespace.to_owned(),
    };
    let deleted = prunes.iter().map(|planned| &planned.object);
    let all = deleted.chain(written.iter().map(|(wanted, _)| &wanted.object));
    let places = all.map(|object| place(&object.kind, &object.name, &object.namespace));
    let namespaces: BTreeSet<String> =
        places.chain([app.namespace.clone()]).filter(|namespace| !namespace.is_empty()).collect();
    let records = match listed {
        Some(records) => records,
        None => twins::records(cluster).await,
    };
    let twins = match twins::of(cluster, observed, records, &namespaces).await {
        Ok(twins) => twins,
        Err(error) if prunes.is_empty() => return Ok(Some(error)),
        Err(error) => return Err(error.into()),
    };
    let hint = |name: &str, namespace: &str| {
        format!(
            "one of the ConfigMaps {}/{} and {namespace}/{name} is a copy or forged: delete that one, and run again",
            app.namespace, app.name
        )
    };
    let mut disputed: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for planned in prunes {
        let live = planned.live.as_deref();
        if let Some(AppName { name, namespace }) = live.and_then(|live| twins::rival(&twins, observed, live)) {
            disputed.entry((namespace, name)).or_default().push(planned.object.to_string());
        }
    }
    let deletion = |((namespace, name), objects): ((&str, &str), Vec<String>)| InputError {
        message: format!(
            "nothing is deleted: ConfigMap {namespace}/{name} is the record of an app with the same label, and {}{} may \
             be that app's",
            objects[0],
            if objects.len() == 1 { String::new() } else { format!(" and {} more", objects.len() - 1) },
        ),
        position: Default::default(),
        hints: vec![hint(name, namespace)],
    };
    let mut errors: Vec<InputError> = disputed.into_iter().map(deletion).collect();
    for (wanted, planned) in written {
        let live = planned.live.as_deref();
        let Some(AppName { name, namespace }) = live.and_then(|live| twins::rival(&twins, observed, live)) else {
            continue;
        };
        errors.push(InputError {
            message: format!(
                "{} is already associated with a different app '{name}' namespace: {namespace}, whose record has the same \
                 label",
                wanted.object
            ),
            position: wanted.positions.start(),
            hints: vec![
                hint(name, namespace),
                "or take it over with --dangerous-override-ownership-of-existing-resources".to_owned(),
            ],
        });
    }
    if errors.is_empty() { Ok(None) } else { Err(PlanError::Ownership(errors, Vec::new())) }
}
