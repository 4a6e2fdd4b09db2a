//! What a cluster holds that generated experiments can change: custom resources of the releases' kinds, and webhook
//! configurations. Only reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kind, ListQuery};
use pushback_objects::ObjectExt;
use pushback_preflight::experiment::generate::AtHand;
use pushback_releases::Release;
use serde_json::Value;

/// Most objects of a kind that are looked at in one namespace, or in all.
const MOST_OBJECTS: usize = 100;
/// Group and kinds of webhook configurations.
const CONFIGURATIONS: (&str, [&str; 2]) =
    ("admissionregistration.k8s.io", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]);

/// Reads what there is in these namespaces, or everywhere if none is given, in every version that is served. Kinds that
/// may not be listed are noted.
///
/// # Errors
/// The cluster's error.
pub async fn look(
    cluster: &dyn Cluster,
    releases: [&Release; 2],
    namespaces: &[String],
) -> Result<AtHand, ClusterError> {
    let kinds = cluster.kinds().await?;
    let mut at_hand = AtHand::default();
    let definitions = releases.into_iter().flat_map(|release| &release.definitions);
    let defined: BTreeSet<(&str, &str)> = definitions
        .map(|definition| (definition.value.text("/spec/group"), definition.value.text("/spec/names/kind")))
        .collect();
    for (group, kind) in defined {
        for served in kinds.versions(group, kind) {
            match list(cluster, served, namespaces).await {
                Ok(objects) => at_hand.custom_resources.extend(objects),
                Err(error) if error.kind == ErrorKind::Forbidden => {
                    at_hand.unread.insert((group.to_owned(), kind.to_owned()));
                }
                Err(error) => return Err(error),
            }
        }
    }
    let (group, configurations) = CONFIGURATIONS;
    for kind in configurations.into_iter().filter_map(|kind| kinds.preferred(group, kind)) {
        match list(cluster, kind, &[]).await {
            Ok(objects) => at_hand.webhook_configurations.extend(objects),
            Err(error) if error.kind == ErrorKind::Forbidden => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at_hand)
}

async fn list(cluster: &dyn Cluster, kind: &Arc<Kind>, namespaces: &[String]) -> Result<Vec<Value>, ClusterError> {
    let everywhere = [None];
    let named: Vec<Option<&str>> = namespaces.iter().map(|name| Some(name.as_str())).collect();
    let places = if kind.namespaced && !named.is_empty() { &named[..] } else { &everywhere };
    let mut found = Vec::new();
    for place in places {
        let mut query = ListQuery::new(Arc::clone(kind), *place, "");
        query.limit = MOST_OBJECTS.try_into().unwrap_or_default();
        match cluster.list(&query).await {
            Ok(page) => found.extend(page.items.into_iter().take(MOST_OBJECTS).map(Arc::unwrap_or_clone)),
            // Its definition has just gone, or the namespace does not exist yet.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::UnknownKind) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
