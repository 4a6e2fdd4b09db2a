//! Changes of the run after which the API server judges a Pod differently: its answer before the run proves nothing.

use std::collections::BTreeSet;

use pushback_objects::object::{ObjectExt, ObjectKey, is_custom_group};
use serde_json::{Map, Value};

use super::template::{WorkloadTemplate, down};
use crate::facts::{Change, ChangeSet, Operation};

/// Annotation keys of deploy tools, which no admission reads.
const BOOKKEEPING: [&str; 3] = ["kapp.k14s.io/", "pushback.dev/", "kubectl.kubernetes.io/"];

/// The changes that alter the admission of Pods.
#[derive(Debug, Default)]
pub(super) struct AdmissionChanges<'a> {
    /// Namespaces, ServiceAccounts, classes, limits and quotas.
    named: BTreeSet<ObjectKey>,
    /// Webhooks and policies that may concern Pods.
    policies: Vec<&'a Change>,
    /// Custom resources: a webhook may judge by them.
    custom: Vec<&'a Change>,
}

impl<'a> AdmissionChanges<'a> {
    pub(super) fn new(changes: &'a ChangeSet) -> Self {
        let mut found = Self::default();
        for change in changes.changes.iter().filter(|change| change.operation.writes() && !change.orphaned) {
            let object = &change.object;
            match (object.group.as_str(), object.kind.as_str()) {
                ("", "Namespace" | "ServiceAccount" | "LimitRange" | "ResourceQuota")
                | ("scheduling.k8s.io", "PriorityClass")
                | ("node.k8s.io", "RuntimeClass")
                    if alters_admission(change) =>
                {
                    found.named.insert(object.key());
                }
                ("admissionregistration.k8s.io", _) if may_concern_pods(change) && alters_admission(change) => {
                    found.policies.push(change);
                }
                (group, _) if is_custom_group(group) => found.custom.push(change),
                _ => {}
            }
        }
        found
    }

    /// The change that leaves the answer for a template open, as a clause.
    pub(super) fn reason(&self, of: &WorkloadTemplate<'_>) -> Option<String> {
        let namespace = of.change.object.namespace.as_str();
        let account = of.service_account();
        let is_used = |key: &&ObjectKey| match (key.kind.as_str(), key.name.as_str()) {
            ("Namespace", name) => name == namespace,
            ("ServiceAccount", name) => key.namespace == namespace && name == account,
            ("PriorityClass", name) => name == of.template.text("/spec/priorityClassName"),
            ("RuntimeClass", name) => name == of.template.text("/spec/runtimeClassName"),
            _ => key.namespace == namespace,
        };
        let changed = match self.named.iter().find(is_used) {
            // Most workloads have one of their own: one line for all of them.
            Some(account) if account.kind == "ServiceAccount" => "their ServiceAccount".to_owned(),
            Some(named) => named.to_string(),
            None => self.policies.first()?.object.to_string(),
        };
        Some(format!("this run changes {changed}"))
    }

    /// The custom resource of the run that a webhook's refusal names: it may be the webhook's policy.
    pub(super) fn named_in(&self, message: &str) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let words: BTreeSet<&str> = message.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '_'])).collect();
        let is_named = |change: &&&Change| words.contains(change.object.name.as_str());
        self.custom.iter().find(is_named).map(|change| format!("this run changes {}", change.object))
    }
}

/// Returns whether a change of such an object is more than a label or annotation that admission does not read.
fn alters_admission(change: &Change) -> bool {
    let (Operation::Update, Some(live), Some(result)) = (change.operation, &change.live, &change.result) else {
        return true;
    };
    let is_namespace = change.object.kind == "Namespace";
    let names: &[&str] = if is_namespace { &["labels", "annotations"] } else { &[] };
    let metadata = |object: &Value| -> Vec<(String, Value)> {
        let maps = names.iter().filter_map(|name| object.pointer(&format!("/metadata/{name}"))?.as_object());
        let is_read = |key: &str| !BOOKKEEPING.iter().any(|prefix| key.starts_with(prefix));
        let mut read: Vec<_> =
            maps.flatten().filter(|(key, _)| is_read(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
        read.sort_by(|one, other| one.0.cmp(&other.0));
        read
    };
    let rest = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        let is_own = |(key, _): &(&String, &Value)| !["metadata", "status"].contains(&key.as_str());
        fields.filter(is_own).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
    rest(live) != rest(result)
        || metadata(live) != metadata(result)
        || live.annotation(MOUNTABLE) != result.annotation(MOUNTABLE)
}

/// Returns whether a webhook or policy, before or after the change, may judge the creation of Pods.
fn may_concern_pods(change: &Change) -> bool {
    let sides = [change.live.as_deref(), change.after()];
    sides.into_iter().flatten().any(|object| {
        let list = |path: &[&str]| down(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match change.object.kind.as_str() {
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => list(&["webhooks"])
                .iter()
                .any(|webhook| webhook.get("rules").and_then(Value::as_array).into_iter().flatten().any(matches_pods)),
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
                list(&["spec", "matchConstraints", "resourceRules"]).iter().any(matches_pods)
            }
            // A binding: the policy may match anything.
            _ => true,
        }
    })
}

fn matches_pods(rule: &Value) -> bool {
    let any = |field: &str, of: &[&str]| {
        let values = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).any(|value| of.contains(&value))
    };
    any("apiGroups", &["", "*"]) && any("resources", &["pods", "*", "*/*"]) && any("operations", &["CREATE", "*"])
}
