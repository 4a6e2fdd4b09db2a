//! The ways out of a reference that leads nowhere, as data.

use pushback_objects::finding::{Finding, Severity};
use pushback_objects::object::ObjectExt;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::{Value, json};

use super::{DELETED, MISSING, NAME, SELECTS_NOTHING};
use crate::facts::Facts;
use crate::rules::remedies::{join_resource, kubectl};

/// The ways out of a finding, the best first.
pub(super) fn ways_out(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let Some(remedy) = &finding.remedy else { return Vec::new() };
    let target = match &finding.new {
        Some(Value::String(target)) => target.clone(),
        _ => finding.object.to_string(),
    };
    let mut ways = match finding.check.as_str() {
        DELETED => keep(facts, &target).into_iter().collect(),
        MISSING => create(facts, &target).into_iter().collect(),
        _ => Vec::new(),
    };
    ways.push(Remedy::author(remedy));
    let step = match finding.check.as_str() {
        SELECTS_NOTHING => "if its Pods come later, have the rule ignore it",
        _ => "if it comes from elsewhere, have the rule ignore it",
    };
    let mode = if finding.severity == Severity::Error { "error" } else { "warn" };
    let config = json!({"preflightRules": [{"name": NAME, "config": {"mode": mode, "ignore": [target]}}]});
    ways.push(Remedy::deployer(RemedyKind::Configure, step).config(config));
    ways
}

/// Keeps the object that would be deleted.
fn keep(facts: &Facts, target: &str) -> Option<Remedy> {
    let change = facts.changes.changes.iter().find(|change| change.object.to_string() == target)?;
    let resource = join_resource(&change.resource, &change.object.group);
    let name = change.live.as_deref()?.full_name();
    let annotate = kubectl(&facts.invocation, "annotate", &resource, &name, &["kapp.k14s.io/delete-strategy=orphan"]);
    let step = "have it stay when it leaves the app";
    Some(Remedy::deployer(RemedyKind::Keep, step).commands([annotate, facts.invocation.to_string()]))
}

/// Creates what has no content of its own.
fn create(facts: &Facts, target: &str) -> Option<Remedy> {
    let (kind, name) = target.split_once(' ')?;
    let resource = match kind {
        "ServiceAccount" => "serviceaccount",
        _ => return None,
    };
    let create = kubectl(&facts.invocation, "create", resource, name, &[]);
    let step = "create it before";
    Some(Remedy::deployer(RemedyKind::CorrectObjects, step).commands([create, facts.invocation.to_string()]))
}
