//! What a migration needs to be allowed: asked before its first write, and printed as the smallest role that is enough.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use pushback_cluster::{Cluster, ClusterError, ErrorKind, reviews};
use pushback_crd::definition::StoredState;
use pushback_crd::definition::crd::GROUP;
use serde_json::{Value, json};

/// Resource name of definitions.
const DEFINITIONS: &str = "customresourcedefinitions";

/// The roles that are enough to migrate these definitions, as Kubernetes objects: one for the cluster, one for the
/// namespace of the record of progress.
#[must_use]
pub fn roles(states: &[StoredState], namespace: &str) -> Vec<Value> {
    let names: Vec<&str> = states.iter().map(|state| state.definition.as_str()).collect();
    let mut rules = vec![
        json!({"apiGroups": [GROUP], "resources": [DEFINITIONS], "resourceNames": names, "verbs": ["get"]}),
        json!({
            "apiGroups": [GROUP], "resources": [format!("{DEFINITIONS}/status")], "resourceNames": names,
            "verbs": ["patch"],
        }),
    ];
    for state in states {
        rules.push(json!({
            "apiGroups": [state.group], "resources": [state.plural], "verbs": ["get", "list", "patch"],
        }));
        rules.push(json!({
            "apiGroups": [state.group], "resources": [format!("{}/status", state.plural)], "verbs": ["patch"],
        }));
    }
    let api_version = "rbac.authorization.k8s.io/v1";
    vec![
        json!({
            "apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": "storage-migration"}, "rules": rules,
        }),
        json!({
            "apiVersion": api_version, "kind": "Role",
            "metadata": {"name": "storage-migration", "namespace": namespace},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]}],
        }),
    ]
}

/// Asks whether this user may rewrite the objects and prune the list of stored versions.
///
/// # Errors
/// `Forbidden` with what is not allowed.
pub async fn require(cluster: &dyn Cluster, state: &StoredState) -> Result<(), ClusterError> {
    let needed = [
        (state.group.as_str(), state.plural.as_str(), "", ""),
        (GROUP, DEFINITIONS, "status", state.definition.as_str()),
    ];
    for (group, resource, subresource, name) in needed {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            verb: Some("patch".to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: some(subresource),
            name: some(name),
            ..ResourceAttributes::default()
        };
        // Where that is not known, the write itself shows it.
        if let Ok((false, _)) = reviews::access(cluster, attributes).await {
            let subresource = some(subresource).map(|name| format!("/{name}")).unwrap_or_default();
            let message = format!("this user may not patch {resource}.{group}{subresource}; nothing was written");
            return Err(ClusterError::new(ErrorKind::Forbidden, message));
        }
    }
    Ok(())
}
