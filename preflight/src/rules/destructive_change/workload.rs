//! Workloads whose size, Pods or claims are lost through a change.

use std::collections::BTreeSet;

use pushback_objects::finding::Verdict;
use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::loss::{Judge, LostFrom, REPLACED, REPLICAS, fate, finding};
use crate::facts::{Change, Operation};

pub(super) const CLAIMS: &str = "statefulSetClaimsDeleted";

pub(super) fn check(judge: &mut Judge<'_>, change: &Change) {
    let Some(live) = change.live.as_deref() else { return };
    replicas_reset(judge, change, live);
    if change.object.group == "apps" && change.object.kind == "StatefulSet" {
        claims_deleted(judge, change, live);
        if change.operation == Operation::Replace {
            replaced(judge, change, live);
        }
    }
}

/// A number in the manifest is intended; one that results from its absence is not.
fn replicas_reset(judge: &mut Judge<'_>, change: &Change, live: &Value) {
    let is_set = change.desired.as_deref().is_none_or(|desired| desired.pointer("/spec/replicas").is_some());
    let (Some(before), Some(after), false) = (replicas(live), replicas_after(change), is_set) else { return };
    if before == after {
        return;
    }
    let message = format!("the manifest does not set spec.replicas, and {before} live replicas become {after}");
    let finding = finding(change, REPLICAS, Verdict::Breaking, message)
        .at(change.locate(&["spec".into()]))
        .path("spec.replicas")
        .values(Some(before.into()), Some(after.into()))
        .remedy(format!(
            "set `replicas: {before}`, or the intended number, in the manifest; if the reset is intended, waive this finding or set `checks: {{{REPLICAS}: warn}}`"
        ));
    judge.lose(LostFrom::App, finding);
}

fn replicas(object: &Value) -> Option<i64> {
    object.pointer("/spec/replicas").and_then(Value::as_i64)
}

fn replicas_after(change: &Change) -> Option<i64> {
    match change.operation {
        Operation::Update => replicas(change.result.as_deref()?),
        // Nothing of the old object remains; these kinds then have one replica.
        Operation::Replace if is_workload(change) => Some(change.result.as_deref().and_then(replicas).unwrap_or(1)),
        _ => None,
    }
}

fn is_workload(change: &Change) -> bool {
    change.object.group == "apps" && ["Deployment", "ReplicaSet", "StatefulSet"].contains(&change.object.kind.as_str())
}

fn replaced(judge: &mut Judge<'_>, change: &Change, live: &Value) {
    let pods = match replicas(live) {
        Some(1) => "its Pod stops".to_owned(),
        Some(count) => format!("its {count} Pods stop at the same time"),
        None => "its Pods stop at the same time".to_owned(),
    };
    let before = templates(live);
    let after = change.desired.as_deref().map(templates).unwrap_or_default();
    let left: Vec<&str> = before.difference(&after).copied().collect();
    let new: Vec<&str> = after.difference(&before).copied().collect();
    let claims = match (before.is_empty(), left.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "; the claims of its templates are used again".to_owned(),
        (false, false) => format!("; the claims of template {} are no longer used", left.join(", ")),
    };
    let empty = match new.as_slice() {
        [] => String::new(),
        new => format!("; the claims of template {} are new and empty", new.join(", ")),
    };
    let message = format!("the StatefulSet is deleted and created anew: {pods}{claims}{empty}");
    let finding = finding(change, REPLACED, Verdict::Breaking, message).remedy(format!(
        "to keep the Pods running, delete it with `kubectl delete statefulset {} -n {} --cascade=orphan` and apply \
         again; if the replacement is intended, waive this finding or set `checks: {{{REPLACED}: warn}}`",
        change.object.name, change.object.namespace
    ));
    judge.lose(LostFrom::App, finding);
}

fn claims_deleted(judge: &mut Judge<'_>, change: &Change, live: &Value) {
    let templates: Vec<&str> = templates(live).into_iter().collect();
    let deletes = |object: &Value, when: &str| {
        object.pointer("/spec/persistentVolumeClaimRetentionPolicy").is_some_and(|policy| policy.text(when) == "Delete")
    };
    let count = replicas(live).unwrap_or(1);
    let (kept, reason) = if change.ends_live_object() && deletes(live, "/whenDeleted") {
        (0, format!("the StatefulSet is {} (`whenDeleted: Delete`)", fate(change)))
    } else {
        let after = change.result.as_deref().or(change.desired.as_deref());
        let Some(after) = after.filter(|after| change.operation == Operation::Update && deletes(after, "/whenScaled"))
        else {
            return;
        };
        let Some(kept) = replicas(after).filter(|kept| *kept < count) else { return };
        (kept, format!("the StatefulSet goes from {count} to {kept} replicas (`whenScaled: Delete`)"))
    };
    if templates.is_empty() || kept == count {
        return;
    }
    let start = live.pointer("/spec/ordinals/start").and_then(Value::as_i64).unwrap_or(0);
    let (first, last) = (start.saturating_add(kept), start.saturating_add(count).saturating_sub(1));
    let name = &change.object.name;
    let names = |template: &&str| match last > first {
        true => format!("{template}-{name}-{first} to {last}"),
        false => format!("{template}-{name}-{first}"),
    };
    let claims: Vec<String> = templates.iter().map(names).collect();
    let message = format!("{reason}, and claims are deleted: {}", claims.join(", "));
    let finding = finding(change, CLAIMS, Verdict::Breaking, message)
        .path("spec.persistentVolumeClaimRetentionPolicy")
        .values(Some(json!({"replicas": count})), (kept > 0).then(|| json!({"replicas": kept})))
        .remedy("set `Retain` in persistentVolumeClaimRetentionPolicy in an apply of its own first".to_owned());
    judge.lose(LostFrom::App, finding);
}

fn templates(stateful_set: &Value) -> BTreeSet<&str> {
    let templates = stateful_set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    templates.into_iter().flatten().map(ObjectExt::name).collect()
}
