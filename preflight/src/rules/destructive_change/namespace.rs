//! Deleting a namespace deletes everything in it, whoever created it: refused while it contains objects that the change
//! set does not delete itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::loss::{Judge, LostFrom, fate, finding, is_core};
use crate::bookkeeping;
use crate::facts::{Change, ClusterSide, Folded, Need};
use crate::finding::{LiveObjects, Verdict};
use crate::object::{ObjectExt, ObjectRef};

pub(super) const CHECK: &str = "namespaceDeleted";

/// Maximum number of names in a finding.
const SHOWN: usize = 5;

/// Objects that the cluster creates by itself, in any namespace or for other objects.
const MADE_BY_THE_CLUSTER: [(&str, &str); 7] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
    ("metrics.k8s.io", "PodMetrics"),
    ("apps", "ControllerRevision"),
];

/// Objects that every namespace has.
const IN_EVERY_NAMESPACE: [(&str, &str); 4] = [
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ServiceAccount", "default"),
];

pub(super) fn need(change: &Change) -> Option<Need> {
    let except = || MADE_BY_THE_CLUSTER.iter().map(|(group, kind)| ((*group).to_owned(), (*kind).to_owned())).collect();
    is_core(change, "Namespace")
        .then(|| Need::NamespaceContents { namespace: change.object.name.clone(), except: except() })
}

/// Collects for each object its name, the app whose bookkeeping it is (or an empty string), and its uid.
pub(super) fn fold(state: &mut Value, page: &[Value]) {
    if !state.is_array() {
        *state = json!([]);
    }
    if let Some(found) = state.as_array_mut() {
        found.extend(page.iter().filter(|object| counts(object)).map(|object| {
            let app = bookkeeping::record_of(object).or_else(|| bookkeeping::entry_of(object));
            json!([ObjectRef::of(object).to_string(), app.unwrap_or_default(), object.uid()])
        }));
    }
}

/// Whether the object is a loss: it was created on purpose, and nothing recreates it.
fn counts(object: &Value) -> bool {
    let ObjectRef { group, kind, name, .. } = ObjectRef::of(object);
    let is_claim = group.is_empty() && kind == "PersistentVolumeClaim";
    // Claims of a Pod live as long as the Pod, and a StatefulSet declares whether its claims do. Any other owner
    // recreates the claim, but not the data.
    let is_made_anew = |owner: &Value| !is_claim || ["Pod", "StatefulSet"].contains(&owner.text("/kind"));
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let has_owner = owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(is_made_anew));
    let is_everywhere = group.is_empty() && IN_EVERY_NAMESPACE.contains(&(kind.as_str(), name.as_str()));
    let is_token = kind == "Secret" && object.text("/type") == "kubernetes.io/service-account-token";
    let is_nobodys = has_owner || is_everywhere || is_token;
    !is_nobodys && !object.is_terminating()
}

pub(super) fn check(judge: &mut Judge<'_>, change: &Change) {
    let is_going = change.live.as_deref().is_some_and(ObjectExt::is_terminating);
    if !change.ends_live_object() || is_going || judge.is_off(CHECK) {
        return;
    }
    let Some(need) = need(change) else { return };
    let (state, examined) = match judge.facts.folded(super::loss::NAME, &need) {
        Some(Folded::State { state, examined, .. }) => (state, examined),
        Some(Folded::Unable(reason)) => {
            judge.judgement.unable.push(format!("{}: what is in it could not be listed: {reason}", change.object));
            return;
        }
        None => {
            judge.judgement.unable.push(format!("{}: what is in it was not listed", change.object));
            return;
        }
    };
    let changes = &judge.facts.changes;
    let deleted: BTreeMap<String, &str> = changes
        .changes
        .iter()
        .filter(|other| other.ends_live_object() && other.object.namespace == change.object.name)
        .map(|other| (other.object.to_string(), other.live.as_deref().map(ObjectExt::uid).unwrap_or_default()))
        .collect();
    // A different uid under the same name is a new object, created since.
    let is_deleted = |name: &str, uid: &str| {
        deleted.get(name).is_some_and(|deleted| deleted.is_empty() || uid.is_empty() || *deleted == uid)
    };
    let mut lost: Vec<&str> = state
        .as_array()
        .into_iter()
        .flatten()
        .filter(|found| found.get(1).and_then(Value::as_str) != Some(changes.app.as_str()) || changes.app.is_empty())
        .filter_map(|found| Some((found.get(0)?.as_str()?, found.get(2).and_then(Value::as_str).unwrap_or_default())))
        .filter(|(name, uid)| !is_deleted(name, uid))
        .map(|(name, _)| name)
        .collect();
    // Objects that hold data come first.
    lost.sort_by_key(|name| (!name.starts_with("PersistentVolumeClaim "), *name));
    lost.dedup();
    let fate = fate(change);
    if lost.is_empty() && judge.facts.cluster.side == ClusterSide::Directory {
        let message = format!(
            "the namespace is {fate}, with everything that a cluster has in it: files do not show what that is"
        );
        let finding = finding(change, CHECK, Verdict::Unknown, message);
        return judge.lose(LostFrom::Others, finding.remedy(judge.ways_out(change, CHECK)));
    }
    if lost.is_empty() {
        let message = format!("the namespace is {fate}; nothing is in it that this change set does not delete itself");
        return judge.note(finding(change, CHECK, Verdict::Change, message));
    }
    let objects = if lost.len() == 1 { "1 object".to_owned() } else { format!("{} objects", lost.len()) };
    let message = format!("the namespace is {fate}, and with it {objects} that this change set does not delete itself");
    let mut finding = finding(change, CHECK, Verdict::Breaking, message).bound_to(&fate.into());
    finding.live_objects = Some(LiveObjects {
        affected: lost.len() as u64,
        examined,
        names: lost.iter().take(SHOWN).map(ToString::to_string).collect(),
    });
    judge.lose(LostFrom::Others, finding.remedy(judge.ways_out(change, CHECK)));
}
