//! RBACRevoke: removes the subjects of a binding, unless this run's own permissions come from it.

use pushback_preflight::ObjectExt;
use serde_json::{Value, json};

use super::super::change::Step;
use super::super::place::Place;
use super::planning::{Planned, Planning, Refusal, allow_object, existing};
use crate::cluster::{Address, Kind};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

pub(super) async fn subjects(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let address =
        planning.address(API_VERSION, planning.parameter("bindingType"), planning.parameter("bindingName"))?;
    let live = existing(planning.cluster, &address).await?;
    allow_object(&live)?;
    if gives_rights_to(&live, &who_we_are(planning).await?) {
        let message = format!("{address} grants permissions to the user of this run, who could not restore them");
        return Err(Refusal::Forbidden(message));
    }
    let step = Step::fields(&live, vec![(Place::keys(["subjects"]), None)])
        .ok_or_else(|| Refusal::Impossible(format!("{address} has no subjects")))?;
    Ok(Planned { steps: vec![step], heals: true, ..Planned::default() })
}

/// This run's `userInfo`, as the server sees it.
async fn who_we_are(planning: &Planning<'_>) -> Result<Value, Refusal> {
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

fn gives_rights_to(binding: &Value, user: &Value) -> bool {
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
    fn the_rights_of_the_run_itself_are_seen_however_they_are_given() {
        let user = json!({"username": "system:serviceaccount:ci:runner", "groups": ["system:authenticated", "ops"]});
        let binding = |subject: Value| json!({"subjects": [{"kind": "User", "name": "other"}, subject]});
        for ours in [
            json!({"kind": "ServiceAccount", "namespace": "ci", "name": "runner"}),
            json!({"kind": "User", "name": "system:serviceaccount:ci:runner"}),
            json!({"kind": "Group", "name": "ops"}),
        ] {
            assert!(gives_rights_to(&binding(ours.clone()), &user), "{ours}");
        }
        for other in [
            json!({"kind": "ServiceAccount", "namespace": "other", "name": "runner"}),
            json!({"kind": "Group", "name": "dev"}),
        ] {
            assert!(!gives_rights_to(&binding(other.clone()), &user), "{other}");
        }
        assert!(!gives_rights_to(&json!({}), &user));
    }
}
