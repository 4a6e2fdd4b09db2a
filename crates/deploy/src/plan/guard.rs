//! Bodies that the server accepts only as a new object, or under an unused name.
//! They keep a request from affecting any other object.

use pushback_cluster::{Address, ApplyOptions, Cause, Cluster, ClusterError, ErrorKind};
use serde_json::Value;

use super::digest::digest;

/// Why the server would refuse the object as a new one. Asks with an unused name.
pub async fn refusal_as_new(cluster: &dyn Cluster, address: &Address, mut body: Value) -> Option<ClusterError> {
    let free = Address { name: free_name(&address.name, &body), ..address.clone() };
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), free.name.as_str().into());
    }
    let options = ApplyOptions::DRY_RUN;
    let mut error = cluster.apply(&free, &body, options).await.err()?;
    let passes = match error.kind {
        // Some kinds require certain names, and what the old object holds is free once it is deleted.
        ErrorKind::Invalid => !error.causes.is_empty() && error.causes.iter().all(is_of_a_free_name),
        // A permission may be limited to one name.
        ErrorKind::Forbidden => true,
        _ => false,
    };
    error.rewrite(|text| text.replace(&free.name, &address.name));
    (!passes).then_some(error)
}

/// An unused name for a question about an object.
pub(super) fn free_name(name: &str, body: &Value) -> String {
    let stem: String = name.chars().take(40).collect();
    let digest = digest(body);
    format!("{}-{}", stem.trim_end_matches(['-', '.']), &digest[..8])
}

/// Whether a refusal is about the unused name, or about what the object itself holds under its own.
pub(super) fn is_of_a_free_name(cause: &Cause) -> bool {
    cause.field == "metadata.name"
        || cause.message.contains("provided port is already allocated")
        || cause.message.contains("provided IP is already allocated")
}

/// The body for an object that must not exist yet. An apply with a resourceVersion creates a missing object and is
/// refused if the object has another version; no object has version 1, which is that of an empty store.
#[must_use]
pub fn only_new(body: &Value) -> Value {
    let mut guarded = body.clone();
    if let Some(metadata) = guarded.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), "1".into());
    }
    guarded
}
