//! Reads the live object that an experiment changes. The permissions and the Pod of the run itself are never a target:
//! both are needed to revert.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Address, Kind, ListQuery, label_query, list_all};
use pushback_objects::ObjectExt;
use pushback_preflight::selector::LabelSelector;
use serde_json::{Value, json};

use super::planning::Planning;
use super::scope::{self, RBAC, Refusal};

/// Key in `userInfo.extra` with the name of the Pod that a token of a ServiceAccount is bound to.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

/// Most controllers above a Pod: Kubernetes has two at most, and operators add some.
const CONTROLLERS: usize = 8;

impl Planning<'_> {
    /// Reads an object that is to be changed; an error if it may not be a target, or does not exist.
    pub(super) async fn target(&self, address: &Address) -> Result<Arc<Value>, Refusal> {
        scope::allow_address(self.site, address)?;
        let found = self.cluster.get(address).await.map_err(Refusal::Cluster)?;
        let live = found.ok_or_else(|| Refusal::Impossible(format!("{address} does not exist")))?;
        if live.is_terminating() {
            return Err(Refusal::Impossible(format!("{address} is being deleted")));
        }
        scope::allow_object(&live)?;
        allow_beside_runner(self, address, &live).await?;
        Ok(live)
    }
}

/// Refuses a ServiceAccount, token, role or binding from which the run has its identity or permissions, and the Pod in
/// which it runs with the controllers of that Pod.
///
/// # Errors
/// The run needs the object, or the cluster does not answer.
async fn allow_beside_runner(planning: &Planning<'_>, address: &Address, live: &Value) -> Result<(), Refusal> {
    let refused = |why: &str| Err(Refusal::Forbidden(format!("{address} {why}")));
    match (address.kind.group.as_str(), address.kind.kind.as_str()) {
        ("", "Secret") if live.text("/type") == "kubernetes.io/service-account-token" => {
            refused("is a token of a ServiceAccount, and is never changed")
        }
        ("", "ServiceAccount") => {
            let own = runner(planning).await?;
            let name = own.text("/username");
            if name == format!("system:serviceaccount:{}:{}", address.namespace, address.name) {
                return refused(&format!("is {name}, the user of this run, who could not restore it"));
            }
            Ok(())
        }
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => {
            let own = runner(planning).await?;
            if grants_to(live, &own) { refused(&grants(&own)) } else { Ok(()) }
        }
        (RBAC, "Role" | "ClusterRole") => {
            let own = runner(planning).await?;
            let roles = granting_roles(planning, address, &own).await?;
            let is_granting = roles.contains(&(address.kind.kind.clone(), address.name.clone()));
            if is_granting { refused(&grants(&own)) } else { Ok(()) }
        }
        _ if address.kind.namespaced => {
            let is_own = own_pod(planning).await?.iter().any(|own| own.uid() == live.uid());
            if is_own { refused("runs these experiments, and could not revert them") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

fn grants(user: &Value) -> String {
    format!("grants permissions to {}, the user of this run, who could not restore them", user.text("/username"))
}

/// Returns the Pod in which the run works and the controllers above it, if they are in the namespace of the experiment.
/// Empty if the user is not a Pod's, or if the server is too old to name the Pod.
pub(super) async fn own_pod(planning: &Planning<'_>) -> Result<Vec<Arc<Value>>, Refusal> {
    let user = runner(planning).await?;
    let name = user.get("extra").and_then(|extra| extra.get(POD_NAME)?.get(0)?.as_str()).unwrap_or_default();
    let is_here = user.text("/username").starts_with(&format!("system:serviceaccount:{}:", planning.namespace));
    let mut own: Vec<Arc<Value>> = Vec::new();
    if name.is_empty() || !is_here {
        return Ok(own);
    }
    let mut next = Some(planning.address("v1", "Pod", name)?);
    while let Some(address) = next.filter(|_| own.len() <= CONTROLLERS) {
        let Some(object) = planning.cluster.get(&address).await.map_err(Refusal::Cluster)? else { break };
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let mut controllers = owners.filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        next = controllers.next().and_then(|owner| {
            planning.address(owner.text("/apiVersion"), owner.text("/kind"), owner.text("/name")).ok()
        });
        own.push(object);
    }
    Ok(own)
}

/// Returns the `userInfo` of this run, as the server sees it.
async fn runner(planning: &Planning<'_>) -> Result<Value, Refusal> {
    // Discovery does not look up kinds that support only `create`; every server has this one.
    let kind = Kind {
        group: "authentication.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "SelfSubjectReview".to_owned(),
        plural: "selfsubjectreviews".to_owned(),
        ..Kind::default()
    };
    let address = Address::new(kind.into(), "", "");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = planning.cluster.create(&address, &body, false).await.map_err(Refusal::Cluster)?;
    Ok(review.object.pointer("/status/userInfo").cloned().unwrap_or_default())
}

/// Returns kind and name of each role that grants permissions to the run: those of its bindings, and the ClusterRoles that
/// are aggregated into them.
async fn granting_roles(
    planning: &Planning<'_>,
    target: &Address,
    user: &Value,
) -> Result<BTreeSet<(String, String)>, Refusal> {
    let is_cluster_role = target.kind.kind == "ClusterRole";
    let namespace = Some(target.namespace.as_str()).filter(|name| !name.is_empty());
    let mut bindings = list(planning, "RoleBinding", namespace).await?;
    if is_cluster_role {
        bindings.extend(list(planning, "ClusterRoleBinding", None).await?);
    }
    let bound = bindings.iter().filter(|binding| grants_to(binding, user));
    let mut granting: BTreeSet<(String, String)> = bound
        .map(|binding| (binding.text("/roleRef/kind").to_owned(), binding.text("/roleRef/name").to_owned()))
        .filter(|(kind, _)| *kind == target.kind.kind)
        .collect();
    if !is_cluster_role {
        return Ok(granting);
    }
    let roles = list(planning, "ClusterRole", None).await?;
    loop {
        let is_granting = |role: &Value| granting.contains(&("ClusterRole".to_owned(), role.name().to_owned()));
        let aggregating: Vec<&Value> = roles.iter().map(AsRef::as_ref).filter(|role| is_granting(role)).collect();
        let more: Vec<(String, String)> = roles
            .iter()
            .filter(|role| !is_granting(role) && aggregating.iter().any(|into| aggregates(into, role)))
            .map(|role| ("ClusterRole".to_owned(), role.name().to_owned()))
            .collect();
        if more.is_empty() {
            return Ok(granting);
        }
        granting.extend(more);
    }
}

async fn list(planning: &Planning<'_>, kind: &str, namespace: Option<&str>) -> Result<Vec<Arc<Value>>, Refusal> {
    let kind = planning.address("rbac.authorization.k8s.io/v1", kind, "")?.kind;
    Ok(list_all(planning.cluster, &ListQuery::new(kind, namespace, "")).await.map_err(Refusal::Cluster)?.items)
}

/// Whether the aggregated ClusterRole contains the rules of another one. A selector that cannot be read selects all.
fn aggregates(aggregated: &Value, role: &Value) -> bool {
    let selectors = aggregated.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    selectors.into_iter().flatten().any(|selector| {
        LabelSelector::parse(&label_query(Some(selector))).map_or(true, |selector| selector.matches(role))
    })
}

/// Whether a binding names the user or one of its groups.
fn grants_to(binding: &Value, user: &Value) -> bool {
    let groups: Vec<&str> =
        user.get("groups").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
    subjects.any(|subject| {
        let (name, namespace) = (subject.text("/name"), subject.text("/namespace"));
        match subject.text("/kind") {
            "User" => name == user.text("/username"),
            "Group" => groups.contains(&name),
            "ServiceAccount" => user.text("/username") == format!("system:serviceaccount:{namespace}:{name}"),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_to_runner_by_user_group_or_service_account() {
        let user = json!({"username": "system:serviceaccount:ci:runner", "groups": ["system:authenticated", "ops"]});
        let binding = |subject: Value| json!({"subjects": [{"kind": "User", "name": "other"}, subject]});
        for ours in [
            json!({"kind": "ServiceAccount", "namespace": "ci", "name": "runner"}),
            json!({"kind": "User", "name": "system:serviceaccount:ci:runner"}),
            json!({"kind": "Group", "name": "ops"}),
        ] {
            assert!(grants_to(&binding(ours.clone()), &user), "{ours}");
        }
        for other in [
            json!({"kind": "ServiceAccount", "namespace": "other", "name": "runner"}),
            json!({"kind": "Group", "name": "dev"}),
        ] {
            assert!(!grants_to(&binding(other.clone()), &user), "{other}");
        }
        assert!(!grants_to(&json!({}), &user));
    }
}
