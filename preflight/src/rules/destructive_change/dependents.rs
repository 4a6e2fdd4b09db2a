//! Objects that the garbage collector deletes with their owners: refused if they are outside the app, if the app keeps
//! them, or if they are claims whose data is lost.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::finding::{LiveObjects, Severity, Verdict};
use pushback_objects::object::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::Value;

use super::loss::{Judge, LostFrom, fate, finding};
use super::storage;
use crate::cascade::{CascadeCause, Dependent, OwnerReference, owners_of};
use crate::facts::{Answer, Change, ClusterSide, Facts, Needs};
use crate::rules::cascaded;

pub(super) const CHECK: &str = "dependentsDeleted";
pub(super) const OWN: &str = "ownObjectDeleted";

/// Maximum number of names in a finding.
const SHOWN: usize = 5;

/// The volumes of claims that are deleted with their owners.
pub(super) fn volumes(facts: &Facts) -> Needs {
    let claims = dependents(facts).into_iter().filter(|(_, fate)| *fate == Fate::Claim);
    claims.filter_map(|(dependent, _)| storage::volume_need(&dependent.volume)).collect()
}

/// The meaning of a cascaded deletion for the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// A controller made it for an object of the app, or the change set deletes it itself.
    Expected,
    /// A claim that a controller made for an object of the app.
    Claim,
    /// The app has it and keeps it.
    Own,
    /// It is not the app's.
    Outside,
}

/// Every dependent with its fate. What the objects of a deleted CRD own belongs to the finding about the CRD; what the CRD itself
/// owns does not.
fn dependents(facts: &Facts) -> Vec<(&Dependent, Fate)> {
    let changes = &facts.changes;
    let Some(Answer::Dependents { objects, .. }) = cascaded::need(changes).and_then(|need| facts.answers.get(&need))
    else {
        return Vec::new();
    };
    let by_key: BTreeMap<ObjectKey, &Change> =
        changes.changes.iter().map(|change| (change.object.key(), change)).collect();
    let crds: BTreeSet<&str> = changes
        .changes
        .iter()
        .filter(|change| change.object.is_definition() && change.ends_live_object())
        .filter_map(|change| change.live.as_deref().map(ObjectExt::uid))
        .collect();
    let own_labels = cascaded::own_labels(changes);
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    let parents: BTreeMap<ObjectKey, &Dependent> = objects.iter().map(|it| (it.object.key(), it)).collect();
    for dependent in objects {
        // The dependents of what is lost are lost with it.
        let mut fate = own_fate(dependent, &by_key, &own_labels);
        let mut above = dependent;
        for _ in 0..objects.len() {
            let Some(parent) = parents.get(&above.parent.key()).filter(|_| fate != Fate::Own) else { break };
            if own_fate(parent, &by_key, &own_labels) == Fate::Outside && !is_deleted(dependent, &by_key) {
                fate = Fate::Outside;
                break;
            }
            above = parent;
        }
        fates.insert(&dependent.uid, fate);
    }
    objects
        .iter()
        .filter(|dependent| !crds.contains(dependent.root.as_str()) || is_owned_by_crd(dependent, &parents))
        .map(|dependent| (dependent, fates.get(dependent.uid.as_str()).copied().unwrap_or(Fate::Outside)))
        .collect()
}

/// Whether a chain of owners begins with a CRD, rather than with an object of its kind.
fn is_owned_by_crd(dependent: &Dependent, parents: &BTreeMap<ObjectKey, &Dependent>) -> bool {
    let mut above = dependent;
    for _ in 0..parents.len() {
        match parents.get(&above.parent.key()) {
            Some(parent) => above = parent,
            None => break,
        }
    }
    above.cause == CascadeCause::Owner && above.parent.is_definition()
}

fn is_deleted(dependent: &Dependent, changes: &BTreeMap<ObjectKey, &Change>) -> bool {
    let change = changes.get(&dependent.object.key());
    change.is_some_and(|change| change.ends_live_object() && has_uid(change, &dependent.uid))
}

fn has_uid(change: &Change, uid: &str) -> bool {
    change.live.as_deref().is_some_and(|live| live.uid() == uid)
}

fn own_fate(dependent: &Dependent, changes: &BTreeMap<ObjectKey, &Change>, own_labels: &BTreeSet<&str>) -> Fate {
    let ObjectRef { group, kind, .. } = &dependent.object;
    if let Some(change) = changes.get(&dependent.object.key()).filter(|change| has_uid(change, &dependent.uid)) {
        let is_expected = change.ends_live_object() || owners_after(change).is_empty();
        return if is_expected { Fate::Expected } else { Fate::Own };
    }
    let is_of_another_app = !dependent.app_label.is_empty() && !own_labels.contains(dependent.app_label.as_str());
    let holds_others = dependent.object.is_definition() || (group.as_str(), kind.as_str()) == ("", "Namespace");
    if is_of_another_app || holds_others || dependent.cause != CascadeCause::Owner {
        return Fate::Outside;
    }
    let is_claim = (group.as_str(), kind.as_str()) == ("", "PersistentVolumeClaim");
    match is_claim {
        // A StatefulSet declares whether its claims are deleted with it, and claims of a Pod live as long as the Pod.
        true if ["StatefulSet", "Pod"].contains(&dependent.parent.kind.as_str()) => Fate::Expected,
        true => Fate::Claim,
        false if dependent.made_by_controller || !dependent.app_label.is_empty() => Fate::Expected,
        false => Fate::Outside,
    }
}

/// The owners of an object that stays. A manifest without owner references leaves those of others as they are.
fn owners_after(change: &Change) -> Vec<OwnerReference> {
    let is_set = |manifest: &&Value| manifest.pointer("/metadata/ownerReferences").is_some();
    let manifest = || change.desired.as_deref().filter(is_set);
    change.result.as_deref().or_else(manifest).or(change.live.as_deref()).map(owners_of).unwrap_or_default()
}

/// Reports what is deleted with the objects of the change set.
pub(super) fn check(judge: &mut Judge<'_>) {
    let facts = judge.facts;
    if facts.cluster.side == ClusterSide::Directory {
        return;
    }
    let dependents = dependents(facts);
    for change in facts.changes.changes.iter().filter(|change| change.ends_live_object()) {
        let Some(uid) = change.live.as_deref().map(ObjectExt::uid).filter(|uid| !uid.is_empty()) else { continue };
        let of_change = || dependents.iter().filter(|(dependent, _)| dependent.root == uid);
        let outside: Vec<&Dependent> =
            of_change().filter(|(_, fate)| *fate == Fate::Outside).map(|(dependent, _)| *dependent).collect();
        if !outside.is_empty() && !judge.is_off(CHECK) {
            lost_outside(judge, change, &outside);
        }
        for (dependent, _) in of_change().filter(|(_, fate)| *fate == Fate::Claim) {
            claim(judge, change, dependent);
        }
        for (dependent, _) in of_change().filter(|(_, fate)| *fate == Fate::Own) {
            own(judge, dependent);
        }
    }
    lost_at_once(judge);
}

fn lost_outside(judge: &mut Judge<'_>, change: &Change, outside: &[&Dependent]) {
    let count = match outside.len() {
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    };
    let mut names: Vec<(u8, String)> = outside.iter().map(|dependent| named(dependent, outside)).collect();
    names.sort();
    names.dedup();
    let listed: Vec<String> = names.iter().take(SHOWN).map(|(_, name)| name.clone()).collect();
    let more = match names.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "the {} is {}, and the garbage collector deletes {count} outside the app with it: {}{more}",
        change.object.kind,
        fate(change),
        listed.join(", "),
    );
    let mut finding = finding(change, CHECK, Verdict::Breaking, message).bound_to(&fate(change).into());
    let mut plain: Vec<(u8, String)> = outside.iter().map(|it| (rank(&it.object), it.object.to_string())).collect();
    plain.sort();
    finding.live_objects = Some(LiveObjects::exactly(
        outside.len() as u64,
        outside.len() as u64,
        plain.into_iter().take(SHOWN).map(|(_, name)| name).collect(),
    ));
    judge.lose(LostFrom::Others, finding.remedy(judge.ways_out(change, CHECK)));
}

/// The name of a lost object; a CRD has the number of its objects with it.
fn named(dependent: &Dependent, outside: &[&Dependent]) -> (u8, String) {
    let inside = |cause| outside.iter().filter(|it| it.cause == cause && it.parent == dependent.object).count();
    let with = match dependent.object.is_definition() {
        true => (inside(CascadeCause::Crd), "of its kind"),
        false => (inside(CascadeCause::Namespace), "in it"),
    };
    let with = match with {
        (0, _) => String::new(),
        (1, place) => format!(" (with 1 object {place})"),
        (count, place) => format!(" (with {count} objects {place})"),
    };
    (rank(&dependent.object), format!("{}{with}", dependent.object))
}

/// CRDs and namespaces come first: most is lost with them.
fn rank(object: &ObjectRef) -> u8 {
    match object.kind.as_str() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "PersistentVolumeClaim" => 2,
        _ => 3,
    }
}

/// A claim that goes with its owner: its volume decides.
fn claim(judge: &mut Judge<'_>, change: &Change, dependent: &Dependent) {
    if judge.is_off(storage::CLAIM) {
        return;
    }
    let answer = storage::volume_need(&dependent.volume).map(|need| judge.facts.answer(&need));
    let ObjectRef { namespace, name, .. } = &dependent.object;
    let (volume, fate) = (&dependent.volume, fate(change));
    let subject = format!("the {} is {fate}, and its claim {namespace}/{name} with it", change.object.kind);
    let (verdict, message) = match answer {
        None | Some(Answer::Object { object: None }) => return,
        Some(Answer::Object { object: Some(live) }) if storage::deletes_data(&live) => {
            let size = storage::capacity(&live);
            (Verdict::Breaking, format!("{subject}: its volume {volume}{size} is deleted with all data"))
        }
        Some(Answer::Object { object: Some(_) }) => return,
        Some(Answer::Unable { reason }) => (
            Verdict::Unknown,
            format!("{subject}; it is not known whether its volume {volume} is deleted, too: {reason}"),
        ),
        Some(_) => return,
    };
    let finding = finding(change, storage::CLAIM, verdict, message).path(format!("{namespace}/{name}"));
    judge.lose(LostFrom::App, finding.remedy(judge.ways_out(change, storage::CLAIM)));
}

/// An object that the app keeps, and whose owner the change set deletes.
fn own(judge: &mut Judge<'_>, dependent: &Dependent) {
    let Some(change) = judge.facts.changes.find(&dependent.object.key()) else { return };
    lose_own(judge, change, &dependent.parent);
}

fn lose_own(judge: &mut Judge<'_>, change: &Change, owner: &ObjectRef) {
    if judge.is_off(OWN) {
        return;
    }
    let message = format!("the app keeps it, but the garbage collector deletes it with its owner, {owner}");
    let finding = finding(change, OWN, Verdict::Breaking, message)
        .path("metadata.ownerReferences")
        .bound_to(&owner.to_string().into())
        .remedy(format!(
            "keep {owner} in the manifests, or remove the owner reference from {}; if the loss is intended, waive this \
             finding or set `checks: {{{OWN}: warn}}`",
            change.object
        ));
    judge.lose(LostFrom::Others, finding);
}

/// Objects that this run creates, or gives owners, all of which it deletes.
fn lost_at_once(judge: &mut Judge<'_>) {
    let facts = judge.facts;
    let deleted: BTreeMap<String, ObjectRef> =
        cascaded::owners(&facts.changes).into_iter().map(|owner| (owner.uid, owner.object)).collect();
    if deleted.is_empty() {
        return;
    }
    for change in facts.changes.changes.iter().filter(|change| change.operation.applies()) {
        let live = change.live.as_deref().map(owners_of).unwrap_or_default();
        let owners = change.after().map(owners_of).unwrap_or_default();
        let is_deleted = |uid: &str| deleted.contains_key(uid);
        let is_new = !live.iter().any(|owner| is_deleted(&owner.uid));
        if let Some(first) = owners.first().filter(|_| is_new && owners.iter().all(|owner| is_deleted(&owner.uid)))
            && let Some(owner) = deleted.get(&first.uid)
        {
            lose_own(judge, change, owner);
        }
    }
}

/// Reports the kinds that could not be listed: as facts that are missing, or once as a warning.
pub(super) fn unlisted(judge: &mut Judge<'_>, needs: &Needs) {
    let facts = judge.facts;
    let reasons: BTreeSet<&str> =
        needs.iter().flat_map(|need| facts.unlisted(need)).map(|kind| kind.reason.as_str()).collect();
    if reasons.is_empty() {
        return;
    }
    let total = reasons.len();
    let shown: Vec<&str> = reasons.into_iter().take(SHOWN).collect();
    let more = if total > shown.len() { format!(", and {} more", total - shown.len()) } else { String::new() };
    let message = format!("it is not known what else the deletions of this run delete: {}{more}", shown.join(", "));
    if !judge.settings.only_warns_of_unlisted() {
        judge.judgement.unable.push(message);
        return;
    }
    let Some(change) = facts.changes.changes.iter().find(|change| change.ends_live_object()) else { return };
    let mut finding = finding(change, super::NOT_LISTED, Verdict::Change, message)
        .remedy("grant the right to list these kinds, or run the check as a user who has it");
    finding.severity = Severity::Warning;
    judge.judgement.findings.push(finding);
}
