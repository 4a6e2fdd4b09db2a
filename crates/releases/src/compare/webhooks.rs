//! Changes in the webhooks of a component, and webhooks that would block the deletion of their own namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::difference::{Change, ChangeType, Severity, WebhookSummary};
use super::super::model::{Component, FactClass, Webhook, WebhookDetails};
use super::context::{Context, Owner};
use crate::webhook_rules::{self, Scope};

/// Compares both sides of a component; one side is empty if the component is new or removed.
pub(super) fn compare(
    context: &Context<'_>,
    (old, old_owner): (&Component, Owner<'_>),
    (new, new_owner): (&Component, Owner<'_>),
    changes: &mut Vec<Change>,
) {
    if context.is_blind(FactClass::Webhooks) {
        return;
    }
    let (pairs, removed, added) = pair(&old.webhooks, &new.webhooks);
    for (before, after) in pairs {
        paired(before, after, changes);
        deadlock(context, before, Some(after), changes);
    }
    for webhook in removed {
        changes.push(match context.webhook_owner(webhook, new_owner) {
            Some(owner) => {
                let message = format!("webhook {} is now served by component {owner}", webhook.name);
                change(ChangeType::WebhookModified, Severity::Info, webhook, "component", message)
            }
            None => {
                let effect = match webhook.kind.as_str() {
                    "mutating" => "what it set is now missing",
                    "conversion" => "objects of other versions cannot be read",
                    _ => "what it rejected is now accepted",
                };
                let message = format!("{} webhook {} is gone: {effect}", webhook.kind, webhook.name);
                change(ChangeType::WebhookRemoved, Severity::Breaking, webhook, "", message)
            }
        });
        deadlock(context, webhook, None, changes);
    }
    for webhook in added {
        if context.former_webhook_owner(webhook, old_owner).is_none() {
            changes.push(new_webhook(webhook));
        }
        deadlock(context, webhook, Some(webhook), changes);
    }
}

fn new_webhook(webhook: &Webhook) -> Change {
    let policy = webhook.details.as_ref().map(|details| details.failure_policy.as_str());
    let (severity, effect) = match policy {
        Some("Ignore") => (Severity::Info, "requests pass while it does not answer"),
        Some(_) => (Severity::Warning, "requests are refused while it does not answer"),
        None => (Severity::Warning, "it can refuse or delay requests that passed before"),
    };
    let message = format!("{} webhook {} is new: {effect}", webhook.kind, webhook.name);
    change(ChangeType::WebhookAdded, severity, webhook, "", message)
}

/// Pairs, and the webhooks of only one side.
type Paired<'a> = (Vec<(&'a Webhook, &'a Webhook)>, Vec<&'a Webhook>, Vec<&'a Webhook>);

/// Matches by type, name and configuration, then by type and name, then by name alone if the type changed.
fn pair<'a>(old: &'a [Webhook], new: &'a [Webhook]) -> Paired<'a> {
    let mut pairs = Vec::new();
    let mut removed: Vec<&Webhook> = old.iter().collect();
    let mut added: Vec<&Webhook> = new.iter().collect();
    let by_key: [fn(&Webhook) -> [&str; 3]; 3] = [
        |webhook| [&webhook.kind, &webhook.name, configuration(webhook)],
        |webhook| [&webhook.kind, &webhook.name, ""],
        |webhook| ["", &webhook.name, ""],
    ];
    for key in by_key {
        let mut found: BTreeMap<[&str; 3], Vec<&Webhook>> = BTreeMap::new();
        for webhook in added.iter().rev() {
            found.entry(key(webhook)).or_default().push(webhook);
        }
        removed.retain(|before| match found.get_mut(&key(before)).and_then(Vec::pop) {
            Some(after) => {
                pairs.push((*before, after));
                false
            }
            None => true,
        });
        added = found.into_values().flatten().collect();
    }
    // One that is only renamed sees the same requests.
    removed.sort_by(|one, other| (&one.name, &one.kind).cmp(&(&other.name, &other.kind)));
    added.sort_by(|one, other| (&one.name, &one.kind).cmp(&(&other.name, &other.kind)));
    removed.retain(|before| match added.iter().position(|after| is_renamed(before, after)) {
        Some(index) => {
            pairs.push((*before, added.remove(index)));
            false
        }
        None => true,
    });
    (pairs, removed, added)
}

fn is_renamed(before: &Webhook, after: &Webhook) -> bool {
    match (&before.details, &after.details) {
        (Some(one), Some(other)) => before.kind == after.kind && scope_of(other).includes(&scope_of(one)),
        _ => false,
    }
}

fn scope_of(details: &WebhookDetails) -> Scope<'_> {
    Scope {
        rules: &details.rules,
        conditions: [&details.namespace_selector, &details.object_selector, &details.match_conditions],
    }
}

fn configuration(webhook: &Webhook) -> &str {
    webhook.details.as_ref().map(|details| details.configuration.as_str()).unwrap_or_default()
}

fn paired(before: &Webhook, after: &Webhook, changes: &mut Vec<Change>) {
    let mut modified = |severity, field: &str, message: String, old: Value, new: Value| {
        let found = change(ChangeType::WebhookModified, severity, after, field, message);
        changes.push(found.values(Some(old), Some(new)));
    };
    if before.kind != after.kind {
        let message = format!("type changed from {} to {}", before.kind, after.kind);
        modified(Severity::Breaking, "type", message, json!(before.kind), json!(after.kind));
    }
    if before.name != after.name {
        let message = format!("renamed from {} to {}: it sees the same requests", before.name, after.name);
        modified(Severity::Info, "name", message, json!(before.name), json!(after.name));
    }
    if before.path != after.path {
        let message = format!("path changed from {} to {}", before.path, after.path);
        modified(Severity::Warning, "path", message, json!(before.path), json!(after.path));
    }
    if let (Some(before), Some(after)) = (&before.details, &after.details) {
        details(before, after, &mut modified);
    }
}

fn details(
    before: &WebhookDetails,
    after: &WebhookDetails,
    modified: &mut impl FnMut(Severity, &str, String, Value, Value),
) {
    if before.failure_policy != after.failure_policy {
        let (old, new) = (&before.failure_policy, &after.failure_policy);
        let (severity, effect) = if new == "Fail" {
            (Severity::Breaking, "requests that passed while it did not answer are now refused")
        } else {
            (Severity::Info, "requests pass while it does not answer")
        };
        let message = format!("failurePolicy changed from {old} to {new}: {effect}");
        modified(severity, "failurePolicy", message, json!(old), json!(new));
    }
    if before.timeout_seconds != after.timeout_seconds {
        let (old, new) = (before.timeout_seconds, after.timeout_seconds);
        let (severity, effect) =
            if new > old { (Severity::Warning, ": requests may take longer") } else { (Severity::Info, "") };
        let message = format!("timeout changed from {old}s to {new}s{effect}");
        modified(severity, "timeoutSeconds", message, json!(old), json!(new));
    }
    if before.rules != after.rules {
        let (severity, what) = if webhook_rules::covers(&before.rules, &after.rules) {
            (Severity::Info, "it sees fewer requests")
        } else {
            (Severity::Warning, "it sees requests that it did not see before")
        };
        let message = format!("rules changed: {what}");
        modified(severity, "rules", message, before.rules.clone(), after.rules.clone());
    }
    let selectors = [
        ("namespaceSelector", &before.namespace_selector, &after.namespace_selector),
        ("objectSelector", &before.object_selector, &after.object_selector),
    ];
    for (field, old, new) in selectors {
        let is_empty =
            |selector: &Value| selector.is_null() || selector.as_object().is_some_and(serde_json::Map::is_empty);
        let (severity, what) = match (is_empty(old), is_empty(new)) {
            (true, true) => continue,
            (false, true) => (Severity::Warning, "removed: it sees all requests"),
            (true, false) => (Severity::Info, "added: it sees fewer requests"),
            (false, false) if old == new => continue,
            (false, false) => (Severity::Warning, "changed: it may see requests that it did not see before"),
        };
        modified(severity, field, format!("{field} {what}"), old.clone(), new.clone());
    }
    if before.match_conditions != after.match_conditions {
        let (severity, what) = match (before.match_conditions.is_null(), after.match_conditions.is_null()) {
            (true, _) => (Severity::Info, "added: it sees fewer requests"),
            (false, true) => (Severity::Warning, "removed: it sees requests that it did not see before"),
            (false, false) => (Severity::Warning, "changed: it may see requests that it did not see before"),
        };
        let (old, new) = (before.match_conditions.clone(), after.match_conditions.clone());
        modified(severity, "matchConditions", format!("matchConditions {what}"), old, new);
    }
    if before.side_effects != after.side_effects {
        let (old, new) = (&before.side_effects, &after.side_effects);
        let (severity, effect) = match new.as_str() {
            "None" | "NoneOnDryRun" => (Severity::Info, ""),
            _ => (Severity::Warning, ": dry-runs that reach it are refused"),
        };
        let message = format!("sideEffects changed from {old} to {new}{effect}");
        modified(severity, "sideEffects", message, json!(old), json!(new));
    }
    if before.reinvocation_policy != after.reinvocation_policy {
        let (old, new) = (&before.reinvocation_policy, &after.reinvocation_policy);
        let message = format!("reinvocationPolicy changed from {old} to {new}");
        modified(Severity::Info, "reinvocationPolicy", message, json!(old), json!(new));
    }
    if before.service != after.service {
        let shown = |service: &Option<(String, String)>| match service {
            Some((namespace, name)) => format!("Service {namespace}/{name}"),
            None => "a URL".to_owned(),
        };
        let (old, new) = (shown(&before.service), shown(&after.service));
        let message = format!("served by {new} instead of {old}");
        modified(Severity::Info, "service", message, json!(old), json!(new));
    }
}

/// While a namespace is being deleted, the webhook's server is gone early and its configuration is not: requests that
/// it must be asked about fail, those that delete what is left in the namespace among them.
fn deadlock(context: &Context<'_>, before: &Webhook, after: Option<&Webhook>, changes: &mut Vec<Change>) {
    let served_from = |webhook: &Webhook| {
        let details = webhook.details.as_ref().filter(|details| details.failure_policy == "Fail")?;
        details.service.as_ref().map(|(namespace, _)| namespace.clone())
    };
    let webhook = after.unwrap_or(before);
    let Some(namespace) = [after, Some(before)].into_iter().flatten().find_map(|webhook| {
        let namespace = served_from(webhook)?;
        let is_leaving = |left: &BTreeSet<&str>| left.contains(namespace.as_str());
        (is_leaving(&context.removed_namespaces) || is_leaving(&context.left_namespaces)).then_some(namespace)
    }) else {
        return;
    };
    let (severity, what) = if context.removed_namespaces.contains(namespace.as_str()) {
        (Severity::Breaking, "which is being removed")
    } else {
        (Severity::Warning, "which the new release leaves")
    };
    let message = format!(
        "webhook {} has failurePolicy Fail and is served from namespace {namespace}, {what}: delete its configuration \
         before the namespace, or the deletion hangs",
        webhook.name
    );
    changes.push(change(ChangeType::WebhookDeadlock, severity, webhook, "namespace", message));
}

fn change(kind: ChangeType, severity: Severity, webhook: &Webhook, field: &str, message: String) -> Change {
    let separator = if field.is_empty() { "" } else { " " };
    let path = format!("{}/{}{separator}{field}", webhook.kind, webhook.name);
    let mut change = Change::new(kind, severity, path, message).at(&webhook.position);
    change.webhook = Some(WebhookSummary {
        name: webhook.name.clone(),
        kind: webhook.kind.clone(),
        path: webhook.path.clone(),
        configuration: Some(configuration(webhook).to_owned()).filter(|name| !name.is_empty()),
    });
    change
}
