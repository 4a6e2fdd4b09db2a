//! Admission policies and their bindings that are removed. A later apply does not check again what was written in the
//! meantime.

use pushback_objects::finding::Verdict;
use pushback_objects::object::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::loss::{Judge, LostFrom, finding};
use crate::facts::{Change, ChangeSet, Operation};

pub(super) const CHECK: &str = "admissionPolicyRemoved";
const GROUP: &str = "admissionregistration.k8s.io";
const BINDING: &str = "Binding";

/// Reports an admission policy or a binding that the run removes. `pushback delete` asks for that.
pub(super) fn check(judge: &mut Judge<'_>, change: &Change) {
    if judge.is_off(CHECK) || judge.facts.changes.deletes_app || !removes_policy(change) {
        return;
    }
    if is_renamed(&judge.facts.changes, change) {
        return;
    }
    let kind = change.object.kind.as_str();
    let live = change.live.as_deref().unwrap_or(&Value::Null);
    let subject = match kind.strip_suffix(BINDING) {
        Some(_) => format!("policy {} no longer applies where this binding bound it", live.text("/spec/policyName")),
        None => "the policy is removed".to_owned(),
    };
    let effect = match kind.starts_with("Mutating") {
        true => "what it set is missing from now on",
        false => "what it rejected is accepted from now on",
    };
    let remedy = format!(
        "keep it in the manifests until nothing depends on it; if the removal is intended, waive this finding or set \
         `checks: {{{CHECK}: off}}`"
    );
    let finding = finding(change, CHECK, Verdict::Breaking, format!("{subject}: {effect}"));
    judge.lose(LostFrom::App, finding.remedy(remedy));
}

/// Returns whether a change deletes an admission policy or a binding.
fn removes_policy(change: &Change) -> bool {
    let kind = change.object.kind.as_str();
    let policy = kind.strip_suffix(BINDING).unwrap_or(kind);
    change.object.group == GROUP
        && ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"].contains(&policy)
        && change.operation == Operation::Delete
        && !change.orphaned
        && change.live.as_deref().is_some_and(|live| !live.is_terminating())
}

/// Returns whether another object does the work of a removed one after the run. A policy without a binding does nothing.
fn is_renamed(changes: &ChangeSet, change: &Change) -> bool {
    let Some(live) = change.live.as_deref() else { return false };
    let kind = change.object.kind.as_str();
    match kind.strip_suffix(BINDING) {
        Some(policy) => {
            let names = policy_names(changes, policy, live.text("/spec/policyName"));
            let is_equal = |other: &&Value| {
                let mut expected = live.get("spec").cloned().unwrap_or_default();
                expected["policyName"] = other.text("/spec/policyName").into();
                names.contains(&other.text("/spec/policyName")) && other.get("spec") == Some(&expected)
            };
            objects_after(changes, kind).filter(|it| it.name() != live.name()).any(|other| is_equal(&other))
        }
        None => {
            let names = new_names(changes, kind, live);
            let bindings = format!("{kind}{BINDING}");
            let bound: Vec<&str> = objects_after(changes, &bindings).map(|it| it.text("/spec/policyName")).collect();
            names.iter().any(|name| bound.contains(name)) && !bound.contains(&live.name())
        }
    }
}

/// Collects the names under which a policy exists after the run.
fn policy_names<'c>(changes: &'c ChangeSet, kind: &str, name: &'c str) -> Vec<&'c str> {
    let is_removed =
        |change: &&Change| change.object.kind == kind && change.object.name == name && removes_policy(change);
    let removed = changes.changes.iter().find(is_removed).and_then(|change| change.live.as_deref());
    removed.map_or_else(|| vec![name], |live| new_names(changes, kind, live))
}

/// Collects the names of other policies with the spec of a removed one.
fn new_names<'c>(changes: &'c ChangeSet, kind: &str, live: &Value) -> Vec<&'c str> {
    let others = objects_after(changes, kind).filter(|it| it.name() != live.name());
    others.filter(|it| it.get("spec") == live.get("spec")).map(ObjectExt::name).collect()
}

/// Returns the objects of a kind that the run leaves, as the server stores them if it was asked.
fn objects_after<'c>(changes: &'c ChangeSet, kind: &str) -> impl Iterator<Item = &'c Value> {
    let kept = changes.kept.iter().map(AsRef::as_ref);
    let after = changes.changes.iter().filter_map(Change::after).chain(kept);
    after.filter(move |object| {
        let object = ObjectRef::of(object);
        object.group == GROUP && object.kind == kind
    })
}
