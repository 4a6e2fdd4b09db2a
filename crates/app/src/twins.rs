//! Other records that claim an app's label: copies or forgeries. An object that both may own is never deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, ListQuery, list_all};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::identity::RECORD_LABEL;
use super::inventory::Inventory;
use super::record::{AppName, Observed, Record, config_map_kind, read_inventory};

/// Another record with the same label value.
#[derive(Clone, Debug)]
pub struct Twin {
    record: AppName,
    /// The objects that it proves to own by uid.
    inventory: Inventory,
}

/// All records of the cluster, or why they could not be listed.
pub type Records = Result<Vec<Arc<Value>>, ClusterError>;

/// Lists all records of the cluster.
///
/// # Errors
/// The cluster does not respond, or the user may not list all namespaces.
pub async fn records(cluster: &dyn Cluster) -> Records {
    Ok(list_all(cluster, &ListQuery::new(config_map_kind(), None, RECORD_LABEL)).await?.items)
}

/// The other records that claim the label of an app. Without permission to list all namespaces, searches `namespaces`.
///
/// # Errors
/// The cluster does not respond.
pub async fn of(
    cluster: &dyn Cluster,
    observed: &Observed,
    records: Records,
    namespaces: &BTreeSet<String>,
) -> Result<Vec<Twin>, ClusterError> {
    let Some(own) = &observed.record else { return Ok(Vec::new()) };
    let records = match records {
        Ok(records) => records,
        Err(error) if error.kind == ErrorKind::Forbidden => {
            let lists = namespaces.iter().map(|namespace| async move {
                let query = ListQuery::new(config_map_kind(), Some(namespace), RECORD_LABEL);
                list_all(cluster, &query).await
            });
            futures::future::join_all(lists).await.into_iter().flatten().flat_map(|page| page.items).collect()
        }
        Err(error) => return Err(error),
    };
    let mut twins = Vec::new();
    for found in records.iter().filter(|found| found.uid() != own.uid) {
        let address = Address::new(config_map_kind(), found.namespace(), found.name());
        // An unreadable record claims no object.
        let Ok(record) = Record::parse(address, found) else { continue };
        if record.label_value() != own.label_value() {
            continue;
        }
        let inventory = match read_inventory(cluster, &record).await {
            Ok((inventory, None)) => inventory,
            Ok((_, Some(_))) | Err(_) => Inventory::default(),
        };
        let record = AppName { name: found.name().to_owned(), namespace: found.namespace().to_owned() };
        twins.push(Twin { record, inventory });
    }
    Ok(twins)
}

/// The twin that an object may also belong to, unless its uid proves that only this app owns it.
#[must_use]
pub fn rival<'a>(twins: &'a [Twin], observed: &Observed, object: &Value) -> Option<&'a AppName> {
    let key = ObjectRef::of(object).key();
    let theirs = twins.iter().find(|twin| twin.inventory.owns(&key, object.uid()));
    let is_ours = observed.inventory_void.is_none() && observed.inventory.owns(&key, object.uid());
    let rival = if is_ours { theirs } else { theirs.or(twins.first()) };
    rival.map(|twin| &twin.record)
}
