//! Admission policies and their bindings that are removed. A later apply does not check again what was written in the
//! meantime.

use serde_json::Value;

use super::loss::{Judge, LostFrom, finding};
use crate::facts::{Change, ChangeSet, Operation};
use crate::finding::Verdict;
use crate::object::ObjectExt;

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

/// Whether the run creates an object of the same kind and spec. A binding may name the renamed policy.
fn is_renamed(changes: &ChangeSet, change: &Change) -> bool {
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    let Some(old) = change.live.as_deref().map(spec) else { return false };
    let created = |kind: &str| {
        let kind = kind.to_owned();
        let of_kind = move |it: &&Change| it.object.kind == kind && it.operation == Operation::Create;
        changes.changes.iter().filter(of_kind)
    };
    created(&change.object.kind).any(|other| {
        let Some(new) = other.desired.as_deref().map(spec) else { return false };
        let mut expected = old.clone();
        if let Some(policy) = change.object.kind.strip_suffix(BINDING)
            && let Some(name) = new_name(changes, policy, old.text("/policyName"))
        {
            expected["policyName"] = name.into();
        }
        expected == new
    })
}

/// The name that the run gives to a policy which it deletes and creates again.
fn new_name(changes: &ChangeSet, kind: &str, name: &str) -> Option<String> {
    let named = |change: &&Change| change.object.kind == kind && change.object.name == name && removes_policy(change);
    let old = changes.changes.iter().find(named)?.live.as_deref()?.get("spec")?;
    let created = |change: &&Change| change.object.kind == kind && change.operation == Operation::Create;
    let is_same = |change: &&Change| change.desired.as_deref().and_then(|it| it.get("spec")) == Some(old);
    let other = changes.changes.iter().filter(created).find(is_same)?;
    Some(other.object.name.clone())
}
