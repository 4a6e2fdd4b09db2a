//! Objects of the app that have lost its label: no list by label finds them, but the inventory has their uid.

use std::sync::Arc;

use futures::StreamExt;
use pushback_app::identity::ORPHANED_LABEL;
use pushback_app::record::Observed;
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kinds};
use pushback_objects::{ObjectExt, ObjectKey};
use serde_json::Value;

use super::live::Live;

/// Concurrent reads.
const CONCURRENCY: usize = 32;

/// Reads the objects of the inventory that the lists lack. Those that are there with the recorded uid and without any
/// app's label are the app's, and those that cannot be read are not known to be gone.
///
/// # Errors
/// The cluster cannot be reached.
pub(super) async fn find(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    observed: &Observed,
    live: &mut Live,
) -> Result<(), ClusterError> {
    if observed.inventory_void.is_some() || !cluster.capabilities().server {
        return Ok(());
    }
    let mut missing = Vec::new();
    for key in &live.gone {
        let Some(entry) = observed.inventory.get(key).filter(|entry| !entry.uid.is_empty()) else { continue };
        let served = kinds.find(&key.group, &entry.version, &key.kind);
        let Some(kind) = served.or_else(|| kinds.preferred(&key.group, &key.kind)) else { continue };
        missing.push((key.clone(), Address::new(Arc::clone(kind), &key.namespace, &key.name), entry.uid.as_str()));
    }
    let mut reads = futures::stream::iter(missing)
        .map(|(key, address, uid)| async move { (key, uid, cluster.get(&address).await) })
        .buffer_unordered(CONCURRENCY);
    let mut not_gone: Vec<ObjectKey> = Vec::new();
    while let Some((key, uid, read)) = reads.next().await {
        match read {
            Ok(Some(object)) if object.uid() == uid && is_free(&object, observed) => {
                live.objects.insert(key.clone(), object);
                live.unlabelled.insert(key.clone());
                not_gone.push(key);
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => return Err(error),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::UnknownKind) => {}
            Err(error) => {
                live.unreadable.insert((key.group.clone(), key.kind.clone()), error.message);
                not_gone.push(key);
            }
        }
    }
    live.gone.retain(|key| !not_gone.contains(key));
    Ok(())
}

/// Whether no app has the object, and none has deliberately released it.
fn is_free(object: &Value, observed: &Observed) -> bool {
    object.label(observed.app.label_key()).is_none() && object.label(ORPHANED_LABEL).is_none()
}
