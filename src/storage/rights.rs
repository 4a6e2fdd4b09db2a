//! What a migration needs to be allowed: asked before its first write, and printed as the smallest role that is enough.

use std::sync::Arc;

use pushback_crd::definition::StoredState;
use pushback_crd::definition::crd::GROUP;
use pushback_preflight::ObjectExt;
use serde_json::{Value, json};

use crate::cluster::{Address, Cluster, ClusterError, ErrorKind, Kind};

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
/// `Forbidden` with what is not allowed; the cluster's error.
pub async fn require(cluster: &dyn Cluster, state: &StoredState) -> Result<(), ClusterError> {
    let needed = [
        (state.group.as_str(), state.plural.as_str(), "", ""),
        (GROUP, DEFINITIONS, "status", state.definition.as_str()),
    ];
    for (group, resource, subresource, name) in needed {
        if !may_patch(cluster, group, resource, subresource, name).await? {
            let subresource = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
            let message = format!("this user may not patch {resource}.{group}{subresource}; nothing was written");
            return Err(ClusterError::new(ErrorKind::Forbidden, message));
        }
    }
    Ok(())
}

async fn may_patch(
    cluster: &dyn Cluster,
    group: &str,
    resource: &str,
    subresource: &str,
    name: &str,
) -> Result<bool, ClusterError> {
    let kind = Kind {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "SelfSubjectAccessReview".to_owned(),
        plural: "selfsubjectaccessreviews".to_owned(),
        ..Kind::default()
    };
    let review = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "spec": {"resourceAttributes": {
            "verb": "patch", "group": group, "resource": resource, "subresource": subresource, "name": name,
        }},
    });
    let answer = cluster.create(&Address::new(Arc::new(kind), "", ""), &review, false).await?.object;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default()
        || !answer.text("/status/evaluationError").is_empty())
}
