//! Admission webhooks that are removed. A later apply does not check again what was written in the meantime.

use std::collections::BTreeSet;

use pushback_crd::definition::listed;
use pushback_objects::finding::Verdict;
use pushback_objects::object::ObjectExt;
use pushback_releases::webhook_rules::Scope;
use serde_json::{Value, json};

use super::loss::{Judge, LostFrom, finding};
use crate::facts::{Change, ChangeSet, Operation};

pub(super) const CHECK: &str = "webhookRemoved";
const GROUP: &str = "admissionregistration.k8s.io";
const KINDS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
/// Maximum number of webhooks in a message.
const SHOWN: usize = 5;

/// Reports the webhooks of a configuration that the run removes. `pushback delete` asks for that.
pub(super) fn check(judge: &mut Judge<'_>, change: &Change) {
    if judge.is_off(CHECK) || judge.facts.changes.deletes_app || !removes_webhooks(change) {
        return;
    }
    let kind = change.object.kind.as_str();
    let removed = removed(&judge.facts.changes, kind).into_iter();
    let removed: Vec<&str> =
        removed.filter(|(of, _)| of.object == change.object).map(|(_, webhook)| name(webhook)).collect();
    if removed.is_empty() {
        return;
    }
    let (webhooks, are, they, them) = match removed.len() {
        1 => ("webhook", "is", "it", "it"),
        _ => ("webhooks", "are", "they", "them"),
    };
    let (sort, effect) = match kind {
        "MutatingWebhookConfiguration" => ("mutating", format!("what {they} set is missing from now on")),
        _ => ("validating", format!("what {they} rejected is accepted from now on")),
    };
    let shown = listed(&removed, SHOWN);
    let message = format!("{sort} {webhooks} {shown} {are} removed: {effect}");
    let remedy = format!(
        "keep {them} in the manifests until nothing depends on {them}; if the removal is intended, waive this finding or \
         set `checks: {{{CHECK}: off}}`"
    );
    let finding = finding(change, CHECK, Verdict::Breaking, message).values(Some(json!(removed)), None);
    judge.lose(LostFrom::App, finding.remedy(remedy));
}

/// Returns whether a change deletes a configuration, or may remove webhooks from it.
fn removes_webhooks(change: &Change) -> bool {
    let is_configuration = change.object.group == GROUP && KINDS.contains(&change.object.kind.as_str());
    let is_written = match change.operation {
        Operation::Delete => !change.orphaned,
        Operation::Update | Operation::Replace => change.after().is_some(),
        Operation::Create | Operation::Noop | Operation::Exists => false,
    };
    is_configuration && is_written && change.live.as_deref().is_some_and(|live| !live.is_terminating())
}

/// The webhooks of a kind of configuration that are neither left nor renamed, with the change that removes each.
fn removed<'c>(changes: &'c ChangeSet, kind: &str) -> Vec<(&'c Change, &'c Value)> {
    let after = wanted(changes, kind);
    let left: BTreeSet<&str> = after.iter().copied().map(name).collect();
    let of_kind = || changes.changes.iter().filter(|change| change.object.kind == kind);
    let live = of_kind().filter_map(|change| change.live.as_deref()).flat_map(entries);
    let known: BTreeSet<&str> = live.map(name).collect();
    let mut fresh: Vec<&Value> = after.into_iter().filter(|webhook| !known.contains(name(webhook))).collect();
    let removing = of_kind().filter(|change| removes_webhooks(change));
    let entries_of = |change: &'c Change| {
        let live = change.live.as_deref().into_iter();
        live.flat_map(entries).map(move |webhook| (change, webhook))
    };
    fresh.sort_by_key(|webhook| name(webhook));
    let is_gone = |(_, webhook): &(&Change, &Value)| !left.contains(name(webhook));
    let mut gone: Vec<(&Change, &Value)> = removing.flat_map(entries_of).filter(is_gone).collect();
    gone.sort_by_key(|(_, webhook)| name(webhook));
    // Each new webhook takes the place of one.
    gone.retain(|(_, webhook)| match fresh.iter().position(|other| scope(other).includes(&scope(webhook))) {
        Some(index) => {
            fresh.remove(index);
            false
        }
        None => true,
    });
    gone
}

/// The webhooks of a kind of configuration after the run.
fn wanted<'c>(changes: &'c ChangeSet, kind: &str) -> Vec<&'c Value> {
    let kept = changes.kept.iter().map(AsRef::as_ref);
    let after = changes.changes.iter().filter_map(Change::after).chain(kept);
    after.filter(|object| object.text("/kind") == kind).flat_map(entries).collect()
}

fn entries(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten()
}

fn scope(webhook: &Value) -> Scope<'_> {
    let field = |key: &str| webhook.get(key).unwrap_or(&Value::Null);
    Scope { rules: field("rules"), conditions: ["namespaceSelector", "objectSelector", "matchConditions"].map(field) }
}

/// The name of a webhook, which is unique in its configuration.
fn name(webhook: &Value) -> &str {
    webhook.text("/name")
}
