//! Reads a CRD's objects through each served version: one read verifies Service, path, TLS and authority of its conversion
//! webhook.

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, ListQuery, server_message};
use pushback_crd::definition::StoredState;
use pushback_objects::ObjectExt as _;
use serde_json::{Value, json};

use super::definitions::object_kind;

/// The way in which versions are tried if there is no object to read.
#[derive(Clone, Debug)]
pub enum WithoutObjects {
    /// Not at all: a new CRD has no objects that could be unreadable.
    Skip,
    /// By a dry-run create in this namespace. Only a failed conversion counts: the server may refuse it for other reasons.
    DryRun(String),
}

/// A served version that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadVersion {
    /// The version.
    pub version: String,
    /// The reason that the server gave.
    pub reason: String,
}

/// Reads one object through each served version. Returns the versions that the user may not read.
///
/// # Errors
/// The first version that cannot be read.
pub async fn read_each(
    cluster: &dyn Cluster,
    crd: &Value,
    without_objects: &WithoutObjects,
) -> Result<Vec<String>, UnreadVersion> {
    let state = StoredState::of(crd);
    let mut served = state.served();
    // Objects that are stored in it need no conversion, so that it can name one.
    served.sort_by_key(|version| state.storage.as_deref() != Some(version));
    let (mut known, mut hidden): (Option<(String, String)>, Vec<String>) = (None, Vec::new());
    for version in &served {
        let read = match &known {
            Some((namespace, name)) => {
                let address = Address::new(object_kind(&state, version, false), namespace, name);
                cluster.get(&address).await.map(drop)
            }
            None => {
                let kind = object_kind(&state, version, false);
                let query = ListQuery { limit: 1, metadata_only: true, ..ListQuery::new(kind, None, "") };
                let page = cluster.list(&query).await;
                page.map(|page| {
                    let first = page.items.first();
                    known = first.map(|object| (object.namespace().to_owned(), object.name().to_owned()));
                })
            }
        };
        match read {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::Forbidden => hidden.push((*version).to_owned()),
            Err(error) => return Err(unread(version, error)),
        }
    }
    if let (None, WithoutObjects::DryRun(namespace)) = (&known, without_objects) {
        for version in served.into_iter().filter(|version| state.storage.as_deref() != Some(version)) {
            let kind = object_kind(&state, version, false);
            let body = json!({
                "apiVersion": format!("{}/{version}", state.group), "kind": state.kind,
                "metadata": {"generateName": "pushback-conversion-"},
            });
            let namespace = if state.namespaced { namespace.as_str() } else { "" };
            match cluster.create(&Address::new(Arc::clone(&kind), namespace, ""), &body, true).await {
                Err(error)
                    if error.kind == ErrorKind::WebhookUnavailable
                        && server_message::is_of_conversion(&error.message) =>
                {
                    return Err(unread(version, error));
                }
                Err(error) if error.kind == ErrorKind::Forbidden => hidden.push(version.to_owned()),
                // Without a spec the object may be invalid; the conversion has answered then.
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(hidden)
}

fn unread(version: &str, error: ClusterError) -> UnreadVersion {
    UnreadVersion { version: version.to_owned(), reason: error.message }
}
