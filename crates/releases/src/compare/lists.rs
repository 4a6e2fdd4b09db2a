//! Changes in the finalizers, dependencies, controller, recovery and steady state of a component.

use std::collections::BTreeSet;

use pushback_objects::duration;
use serde_json::json;

use super::super::difference::{Change, ChangeType, Severity};
use super::super::model::{CheckKind, Component, FactClass, Operator, SteadyStateCheck};
use super::context::{Context, Owner};

/// Prefix of names that no part of the release owns.
const EXTERNAL: &str = "external:";

pub(super) fn finalizers(
    context: &Context<'_>,
    (old, old_owner): (&Component, Owner<'_>),
    (new, new_owner): (&Component, Owner<'_>),
    changes: &mut Vec<Change>,
) {
    if context.is_blind(FactClass::Finalizers) {
        return;
    }
    let (removed, added) = difference(&old.finalizers, &new.finalizers);
    for finalizer in removed {
        let (severity, message) = match context.finalizer_owner(finalizer, new_owner) {
            Some(owner) => (Severity::Info, format!("component {owner} handles finalizer {finalizer} now")),
            None => (
                Severity::Breaking,
                format!("finalizer {finalizer} is no longer handled: objects with it cannot be deleted"),
            ),
        };
        let change = Change::new(ChangeType::FinalizerRemoved, severity, finalizer, message);
        changes.push(change.values(Some(json!(finalizer)), None).at(&new.position));
    }
    for finalizer in added.iter().filter(|finalizer| context.former_finalizer_owner(finalizer, old_owner).is_none()) {
        let message =
            format!("finalizer {finalizer} is new: objects with it are deleted only once the operator removes it");
        let change = Change::new(ChangeType::FinalizerAdded, Severity::Warning, *finalizer, message);
        changes.push(change.values(None, Some(json!(finalizer))).at(&new.position));
    }
}

/// `is_known`: whether a name is a component of the same operator, or an operator of the new release.
pub(super) fn dependencies(
    context: &Context<'_>,
    before: &[String],
    new: &Component,
    is_known: &dyn Fn(&str) -> bool,
    changes: &mut Vec<Change>,
) {
    if context.is_blind(FactClass::Dependencies) {
        return;
    }
    let (removed, added) = difference(before, &new.dependencies);
    for name in removed {
        let message = format!("no longer depends on {}", shown(name));
        let change = Change::new(ChangeType::DependencyRemoved, Severity::Info, name, message);
        changes.push(change.values(Some(json!(name)), None).at(&new.position));
    }
    for name in added {
        // Dependencies within a release are inferred from its manifests, and change with it.
        let (severity, tail) = match (is_known(name), context.derived) {
            (true, true) => (Severity::Info, ""),
            (true, false) => (Severity::Warning, ""),
            (false, _) => (Severity::Warning, ", which is no part of this release"),
        };
        let message = format!("depends on {}{tail}", shown(name));
        let change = Change::new(ChangeType::DependencyAdded, severity, name, message);
        changes.push(change.values(None, Some(json!(name))).at(&new.position));
    }
}

fn shown(dependency: &str) -> String {
    dependency.strip_prefix(EXTERNAL).unwrap_or(dependency).to_owned()
}

pub(super) fn controller(context: &Context<'_>, old: &Component, new: &Component, changes: &mut Vec<Change>) {
    if old.controller == new.controller {
        return;
    }
    let change = if context.derived {
        // The containers are reported already; images of init containers are not compared.
        if changes.iter().any(|change| change.change_type == ChangeType::ImageChanged) {
            return;
        }
        let message = format!("images come from {} instead of {}", new.controller, old.controller);
        Change::new(ChangeType::ImageChanged, Severity::Info, "controller", message)
    } else {
        let message = format!("reconciled by {} instead of {}", new.controller, old.controller);
        Change::new(ChangeType::SpecChanged, Severity::Warning, "controller", message)
    };
    changes.push(change.values(Some(json!(old.controller)), Some(json!(new.controller))).at(&new.position));
}

pub(super) fn recovery(
    context: &Context<'_>,
    (old_operator, old): (&Operator, &Component),
    (new_operator, new): (&Operator, &Component),
    changes: &mut Vec<Change>,
) {
    if context.is_blind(FactClass::Recovery) {
        return;
    }
    let (before, after) = (&old_operator.recovery, &new_operator.recovery);
    let seconds = |count: u64| duration::written(count);
    let mut changed = |field: &str, what: &str, old: String, new: String| {
        let message = format!("{what} changed from {old} to {new}");
        let change = Change::new(ChangeType::RecoveryChanged, Severity::Info, field, message);
        changes.push(change.values(Some(json!(old)), Some(json!(new))).at(&new_operator.position));
    };
    let (one, other) = (before.reconcile_timeout_seconds, after.reconcile_timeout_seconds);
    if one != other && one != 0 && other != 0 {
        changed("recovery.reconcileTimeout", "time to recover", seconds(one), seconds(other));
    }
    let (one, other) = (before.max_reconcile_cycles, after.max_reconcile_cycles);
    if one != other && one != 0 && other != 0 {
        changed("recovery.maxReconcileCycles", "reconcile cycles to recover", one.to_string(), other.to_string());
    }
    let (one, other) = (old.steady_state.timeout_seconds, new.steady_state.timeout_seconds);
    if one != other && one != 0 && other != 0 {
        changed("steadyState.timeout", "time to reach the steady state", seconds(one), seconds(other));
    }
    // The checks of derived models follow from their resources, which are compared anyway.
    if context.derived {
        return;
    }
    // A check of a moved or renamed object is the same check.
    let kinds =
        |component: &Component| -> BTreeSet<String> { component.steady_state.checks.iter().map(check).collect() };
    let (before, after) = (kinds(old), kinds(new));
    for gone in before.difference(&after) {
        let message = format!("the steady state no longer asks for {gone}");
        let change = Change::new(ChangeType::RecoveryChanged, Severity::Info, "steadyState.checks", message);
        changes.push(change.values(Some(json!(gone)), None).at(&new.position));
    }
    for added in after.difference(&before) {
        let message = format!("the steady state asks for {added}");
        let change = Change::new(ChangeType::RecoveryChanged, Severity::Info, "steadyState.checks", message);
        changes.push(change.values(None, Some(json!(added))).at(&new.position));
    }
}

/// A check without the name of its object.
fn check(check: &SteadyStateCheck) -> String {
    let kind = &check.object.kind;
    match &check.kind {
        CheckKind::ResourceExists => format!("{kind} exists"),
        CheckKind::ConditionTrue { condition } => format!("{kind} is {condition}"),
        CheckKind::FieldEquals { path, value } => format!("{kind} has {path} = {value}"),
        CheckKind::AllReady => format!("{kind} has all Pods ready"),
    }
}

/// Elements of only the old list and of only the new list, each in its own order.
fn difference<'a>(old: &'a [String], new: &'a [String]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (before, after): (BTreeSet<&String>, BTreeSet<&String>) = (old.iter().collect(), new.iter().collect());
    let removed = old.iter().filter(|text| !after.contains(text)).map(String::as_str);
    let added = new.iter().filter(|text| !before.contains(text)).map(String::as_str);
    (removed.collect(), added.collect())
}
