//! Objects that other apps own on a cluster without labels: in a directory only the records say who owns an object.

use std::collections::BTreeMap;

use pushback_cluster::{Cluster, ClusterError, ListQuery, list_all};
use pushback_objects::{ObjectExt, ObjectKey};

use super::identity::RECORD_LABEL;
use super::record::{AppName, config_map_kind, observe};

/// An app whose inventory lists an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Name of the app.
    pub app: AppName,
    /// Label value of the app.
    pub label_value: String,
}

/// The ownership recorded by all apps but one.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The owner of each object.
    pub owners: BTreeMap<ObjectKey, Claim>,
    /// Records that cannot be read, and why: their apps' objects are unknown.
    pub unreadable: Vec<String>,
}

/// Reads the inventories of all apps but `own`.
///
/// # Errors
/// The records cannot be listed.
pub async fn of_others(cluster: &dyn Cluster, own: &AppName) -> Result<Claims, ClusterError> {
    let records = list_all(cluster, &ListQuery::new(config_map_kind(), None, RECORD_LABEL)).await?;
    let mut claims = Claims::default();
    for record in &records.items {
        let app = AppName { name: record.name().to_owned(), namespace: record.namespace().to_owned() };
        let observed = observe(cluster, &app).await;
        match observed.and_then(|observed| observed.require_known_layout().map(|()| observed)) {
            Ok(observed) if observed.app == *own => {}
            Ok(observed) => {
                let label_value = observed.record.map(|record| record.label_value().to_owned()).unwrap_or_default();
                let claim = Claim { app: observed.app, label_value };
                let owned = observed.inventory.iter().map(|(key, _)| (key.clone(), claim.clone()));
                claims.owners.extend(owned);
            }
            Err(_) if app == *own => {}
            Err(error) => claims.unreadable.push(error.to_string()),
        }
    }
    Ok(claims)
}
