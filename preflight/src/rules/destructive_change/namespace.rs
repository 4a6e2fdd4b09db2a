//! Deleting a namespace deletes everything in it, whoever created it: refused while it contains objects that the change
//! set does not delete itself.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::bookkeeping;
use pushback_objects::finding::{LiveObjects, Verdict};
use pushback_objects::object::{ObjectExt, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::loss::{Judge, LostFrom, fate, finding, is_core};
use crate::cascade::{IN_EVERY_NAMESPACE, OwnerReference, owners_of};
use crate::facts::{Change, ClusterSide, Facts, Folded, Need};
use crate::rules::cascaded;

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

pub(super) fn need(change: &Change) -> Option<Need> {
    let except = || MADE_BY_THE_CLUSTER.iter().map(|(group, kind)| ((*group).to_owned(), (*kind).to_owned())).collect();
    is_core(change, "Namespace")
        .then(|| Need::NamespaceContents { namespace: change.object.name.clone(), except: except() })
}

/// Collects the objects that are a loss, or own some.
pub(super) fn fold(state: &mut Value, page: &[&Value]) {
    if !state.is_array() {
        *state = json!([]);
    }
    if let Some(found) = state.as_array_mut() {
        found.extend(page.iter().filter(|object| !is_of_the_cluster(object)).map(|object| json!(Held::from(*object))));
    }
}

/// An object in the namespace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    object: String,
    uid: String,
    /// The app whose record, history or inventory it is; empty for other objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    bookkeeping_of: String,
    /// Value of the label that assigns it to an app, or of the label that its record gives the app's objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    app_label: String,
    /// Uids of owners that make it anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    owners: Vec<String>,
}

impl From<&Value> for Held {
    fn from(object: &Value) -> Self {
        let reference = ObjectRef::of(object);
        let is_claim = reference.group.is_empty() && reference.kind == CLAIM;
        // Claims of a Pod live as long as the Pod, and a StatefulSet declares whether its claims do. Any other owner makes
        // the claim anew, but not the data.
        let makes_anew =
            |owner: &OwnerReference| !is_claim || ["Pod", "StatefulSet"].contains(&owner.object.kind.as_str());
        let owners = owners_of(object);
        let owners = if owners.iter().all(makes_anew) { owners } else { Vec::new() };
        let record = bookkeeping::record_of(object);
        let label = match record {
            Some(_) => bookkeeping::recorded_label(object),
            None => bookkeeping::app_label_of(object).map(str::to_owned),
        };
        Self {
            object: reference.to_string(),
            uid: object.uid().to_owned(),
            bookkeeping_of: record.or_else(|| bookkeeping::entry_of(object)).unwrap_or_default().to_owned(),
            app_label: label.unwrap_or_default(),
            owners: owners.into_iter().map(|owner| owner.uid).collect(),
        }
    }
}

const CLAIM: &str = "PersistentVolumeClaim";

impl Held {
    fn is_claim(&self) -> bool {
        self.object.starts_with("PersistentVolumeClaim ")
    }
}

/// Whether every namespace has the object, or it is deleted already.
fn is_of_the_cluster(object: &Value) -> bool {
    let ObjectRef { group, kind, name, .. } = ObjectRef::of(object);
    let is_everywhere = group.is_empty() && IN_EVERY_NAMESPACE.contains(&(kind.as_str(), name.as_str()));
    let is_token = kind == "Secret" && object.text("/type") == "kubernetes.io/service-account-token";
    is_everywhere || is_token || object.is_terminating()
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
    let held = read(state);
    let lost = lost(judge.facts, change, &held);
    let is_partial = !judge.facts.unlisted(&need).is_empty();
    let fate = fate(change);
    if judge.facts.cluster.side == ClusterSide::Directory {
        let shown = match lost.as_slice() {
            [] => String::new(),
            [first, ..] => format!(", such as {}", first.object),
        };
        let message = format!(
            "the namespace is {fate}, with everything that a cluster has in it{shown}: files do not show what that is"
        );
        let finding = finding(change, CHECK, Verdict::Unknown, message);
        return judge.lose(LostFrom::Others, finding.remedy(judge.ways_out(change, CHECK)));
    }
    if lost.is_empty() {
        let listed = if is_partial { ", as far as it could be listed" } else { "" };
        let message =
            format!("the namespace is {fate}; nothing is in it that this change set does not delete itself{listed}");
        return judge.note(finding(change, CHECK, Verdict::Change, message));
    }
    let objects = if lost.len() == 1 { "1 object".to_owned() } else { format!("{} objects", lost.len()) };
    let message = format!(
        "the namespace is {fate}, and with it {objects} that this change set does not delete itself{}",
        of_apps(&lost, &held)
    );
    let mut finding = finding(change, CHECK, Verdict::Breaking, message).bound_to(&fate.into());
    finding.live_objects = Some(LiveObjects::exactly(
        lost.len() as u64,
        examined,
        lost.iter().take(SHOWN).map(|held| held.object.clone()).collect(),
    ));
    judge.lose(LostFrom::Others, finding.remedy(judge.ways_out(change, CHECK)));
}

/// The objects that are lost with the namespace: neither deleted by the change set, nor made for an object in the
/// namespace or in the app. Objects that hold data come first.
fn lost<'h>(facts: &Facts, change: &Change, held: &'h [Held]) -> Vec<&'h Held> {
    let changes = &facts.changes;
    let uid_of = |change: &Change| change.live.as_deref().map(|live| live.uid().to_owned()).unwrap_or_default();
    let deleted: BTreeMap<String, String> = changes
        .changes
        .iter()
        .filter(|other| other.ends_live_object() && other.object.namespace == change.object.name)
        .map(|other| (other.object.to_string(), uid_of(other)))
        .collect();
    // A different uid under the same name is a new object, created since.
    let is_deleted = |held: &Held| {
        deleted.get(&held.object).is_some_and(|uid| uid.is_empty() || held.uid.is_empty() || *uid == held.uid)
    };
    let known: BTreeSet<String> =
        held.iter().map(|held| held.uid.clone()).chain(changes.changes.iter().map(uid_of)).collect();
    let is_made_for_them = |held: &Held| held.owners.iter().any(|owner| known.contains(owner));
    let is_own_record = |held: &Held| !changes.app.is_empty() && held.bookkeeping_of == changes.app;
    // The claims of the app's StatefulSets carry its label. Deleting the app by name asks for their deletion.
    let own_labels = cascaded::own_labels(changes);
    let is_own_claim =
        |held: &Held| changes.deletes_app && held.is_claim() && own_labels.contains(held.app_label.as_str());
    let mut lost: Vec<&Held> = held
        .iter()
        .filter(|held| !is_deleted(held) && !is_made_for_them(held) && !is_own_record(held) && !is_own_claim(held))
        .collect();
    lost.sort_by_key(|held| (!held.is_claim(), held.object.as_str()));
    lost.dedup_by_key(|held| held.object.as_str());
    lost
}

/// The apps that lose objects, for a message: `, 2 of them of app quota`.
fn of_apps(lost: &[&Held], held: &[Held]) -> String {
    let counted = counts(lost, held).into_iter().map(|(app, count)| format!(", {count} of them of {app}"));
    counted.collect()
}

/// The number of objects that each other app loses with a namespace.
pub(super) fn apps_in(facts: &Facts, change: &Change) -> BTreeMap<String, usize> {
    match need(change).and_then(|need| facts.folded(super::loss::NAME, &need)) {
        Some(Folded::State { state, .. }) => {
            let held = read(state);
            counts(&lost(facts, change, &held), &held)
        }
        _ => BTreeMap::new(),
    }
}

fn read(state: &Value) -> Vec<Held> {
    state.as_array().into_iter().flatten().filter_map(|held| Held::deserialize(held).ok()).collect()
}

fn counts(lost: &[&Held], held: &[Held]) -> BTreeMap<String, usize> {
    let recorded = held.iter().filter(|held| !held.bookkeeping_of.is_empty() && !held.app_label.is_empty());
    let names: BTreeMap<&str, &str> =
        recorded.map(|held| (held.app_label.as_str(), held.bookkeeping_of.as_str())).collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for held in lost {
        let app = match (held.bookkeeping_of.as_str(), held.app_label.as_str()) {
            ("", "") => continue,
            ("", label) => names.get(label).map_or("another app".to_owned(), |name| format!("app {name}")),
            (name, _) => format!("app {name}"),
        };
        *counts.entry(app).or_default() += 1;
    }
    counts
}
