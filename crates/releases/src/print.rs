//! Prints a release in the form of model files, so that a derived one can be stored, edited and read back.

use std::collections::BTreeSet;

use pushback_objects::object::ObjectRef;
use serde_json::{Map, Value, json};

use super::model::{CheckKind, Component, Operator, Release, Resource, SteadyStateCheck, Webhook};

/// The namespace of an operator without a known one: a model file must name it.
const NO_NAMESPACE: &str = "default";

/// One document per operator, without what a model file cannot express: details of webhooks, conversion webhooks, and
/// dependencies outside the release.
#[must_use]
pub fn documents(release: &Release) -> Vec<Value> {
    release.operators.iter().map(|it| operator(it, release)).collect()
}

fn operator(operator: &Operator, release: &Release) -> Value {
    let namespace = if operator.namespace.is_empty() { NO_NAMESPACE } else { &operator.namespace };
    let version = if operator.version.is_empty() { &release.version } else { &operator.version };
    let platform = if operator.platform.is_empty() { &release.platform } else { &operator.platform };
    let mut head = Map::new();
    head.insert("name".to_owned(), json!(operator.name));
    head.insert("namespace".to_owned(), json!(namespace));
    text(&mut head, "repository", &operator.repository);
    text(&mut head, "version", version);
    text(&mut head, "platform", platform);
    text(&mut head, "olmChannel", &operator.olm_channel);
    let recovery = &operator.recovery;
    json!({
        "operator": head,
        "components": operator.components.iter().map(component).collect::<Vec<_>>(),
        "recovery": {
            "reconcileTimeout": seconds(recovery.reconcile_timeout_seconds.max(1)),
            "maxReconcileCycles": recovery.max_reconcile_cycles.max(1),
        },
    })
}

fn component(component: &Component) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(component.name));
    fields.insert("controller".to_owned(), json!(component.controller));
    // A model file identifies resources by kind, namespace and name, and webhooks by type and name.
    let mut named = BTreeSet::new();
    let resources = component.resources.iter().filter(|resource| {
        let object = &resource.object;
        named.insert((&object.kind, &object.namespace, &object.name))
    });
    list(&mut fields, "managedResources", resources.map(resource));
    let own = component.dependencies.iter().filter(|name| !name.starts_with("external:"));
    list(&mut fields, "dependencies", own.map(|name| json!(name)));
    let mut named = BTreeSet::new();
    let admission = component.webhooks.iter().filter(|webhook| webhook.kind != "conversion");
    let admission = admission.filter(|webhook| named.insert((&webhook.kind, &webhook.name)));
    list(&mut fields, "webhooks", admission.map(webhook));
    list(&mut fields, "finalizers", component.finalizers.iter().map(|name| json!(name)));
    let mut steady = Map::new();
    list(&mut steady, "checks", component.steady_state.checks.iter().map(check));
    if component.steady_state.timeout_seconds > 0 {
        steady.insert("timeout".to_owned(), json!(seconds(component.steady_state.timeout_seconds)));
    }
    if !steady.is_empty() {
        fields.insert("steadyState".to_owned(), Value::Object(steady));
    }
    Value::Object(fields)
}

fn resource(resource: &Resource) -> Value {
    let mut fields = identity(&resource.object);
    // The labels of a resource in a model file are those that select its pods, if it has any.
    let labels = if resource.selector.is_empty() { &resource.labels } else { &resource.selector };
    if !labels.is_empty() {
        fields.insert("labels".to_owned(), json!(labels));
    }
    text(&mut fields, "ownerRef", &resource.owner_kind);
    if !resource.expected_spec.is_empty() {
        fields.insert("expectedSpec".to_owned(), Value::Object(resource.expected_spec.clone()));
    }
    Value::Object(fields)
}

fn identity(object: &ObjectRef) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), json!(object.api_version()));
    fields.insert("kind".to_owned(), json!(object.kind));
    fields.insert("name".to_owned(), json!(object.name));
    text(&mut fields, "namespace", &object.namespace);
    fields
}

fn webhook(webhook: &Webhook) -> Value {
    json!({"name": webhook.name, "type": webhook.kind, "path": webhook.path})
}

fn check(check: &SteadyStateCheck) -> Value {
    let mut fields = Map::new();
    let kind = match &check.kind {
        CheckKind::ConditionTrue { .. } => "conditionTrue",
        CheckKind::FieldEquals { .. } => "fieldEquals",
        // A model file cannot express the second.
        CheckKind::ResourceExists | CheckKind::AllReady => "resourceExists",
    };
    fields.insert("type".to_owned(), json!(kind));
    fields.extend(identity(&check.object));
    match &check.kind {
        CheckKind::ConditionTrue { condition } => {
            fields.insert("conditionType".to_owned(), json!(condition));
        }
        CheckKind::FieldEquals { path, value } => {
            fields.insert("fieldPath".to_owned(), json!(path));
            fields.insert("expectedValue".to_owned(), json!(value));
        }
        CheckKind::ResourceExists | CheckKind::AllReady => {}
    }
    Value::Object(fields)
}

fn text(fields: &mut Map<String, Value>, name: &str, value: &str) {
    if !value.is_empty() {
        fields.insert(name.to_owned(), json!(value));
    }
}

fn list(fields: &mut Map<String, Value>, name: &str, values: impl Iterator<Item = Value>) {
    let values: Vec<Value> = values.collect();
    if !values.is_empty() {
        fields.insert(name.to_owned(), Value::Array(values));
    }
}

fn seconds(count: u64) -> String {
    format!("{count}s")
}
