//! Reads model files strictly: every unknown key, wrong type and contradiction is an error with its position, and all
//! errors are reported at once.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::duration;
use pushback_objects::object::{ObjectRef, split_api_version};
use pushback_objects::reader::{Fields, Node, Reader};
use pushback_objects::source::{Document, InputError, Position};
use serde_json::Value;

use super::model::{
    CheckKind, Component, Definition, Operator, Origin, Recovery, Release, Resource, SteadyState, SteadyStateCheck,
    Webhook,
};

/// Whether a document is a model rather than a Kubernetes object.
#[must_use]
pub fn is_model(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    (has("operator") || has("components")) && !has("apiVersion") && !has("kind")
}

/// Reads all models of one side as a release. Documents about the same operator are merged.
///
/// # Errors
/// Every error in any of them, in the order of the documents.
pub fn release(documents: &[Document], mut definitions: Vec<Definition>) -> Result<Release, Vec<InputError>> {
    let (single, mut errors) = read(documents);
    let first = |field: fn(&Operator) -> &String| {
        single.iter().map(field).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    let (version, platform) = (first(|operator| &operator.version), first(|operator| &operator.platform));
    let (operators, conflicts) = merge(single);
    errors.extend(conflicts);
    if !errors.is_empty() {
        return Err(errors);
    }
    definitions.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Release { version, platform, origin: Origin::Written, operators, definitions, unobserved: BTreeSet::new() })
}

/// The operators of the valid documents, and the errors in the others.
#[must_use]
pub fn read(documents: &[Document]) -> (Vec<Operator>, Vec<InputError>) {
    let (mut operators, mut errors) = (Vec::new(), Vec::new());
    for document in documents {
        let reader = Reader::new(&document.positions).ignoring_blanks();
        let operator = model(&reader.root(&document.value));
        let found = reader.into_errors();
        if found.is_empty() {
            operators.push(operator);
        }
        errors.extend(found);
    }
    (operators, errors)
}

/// Merges operators by name; returns contradictions between their documents as errors.
#[must_use]
pub fn merge(single: Vec<Operator>) -> (Vec<Operator>, Vec<InputError>) {
    let mut errors = Vec::new();
    let mut operators: BTreeMap<String, Operator> = BTreeMap::new();
    for operator in single {
        match operators.get_mut(&operator.name) {
            Some(known) => add(known, operator, &mut errors),
            None => {
                operators.insert(operator.name.clone(), operator);
            }
        }
    }
    (operators.into_values().collect(), errors)
}

/// Adds another document about the same operator.
fn add(operator: &mut Operator, more: Operator, errors: &mut Vec<InputError>) {
    let mut conflict = |position: &Position, message: String, hint: &str| {
        errors.push(InputError { message, position: position.clone(), hints: vec![hint.to_owned()] });
    };
    let fields: [(&str, &mut String, String); 4] = [
        ("namespace", &mut operator.namespace, more.namespace),
        ("version", &mut operator.version, more.version),
        ("platform", &mut operator.platform, more.platform),
        ("olmChannel", &mut operator.olm_channel, more.olm_channel),
    ];
    for (field, known, other) in fields {
        if known.is_empty() {
            *known = other;
        } else if !other.is_empty() && *known != other {
            let message = format!(
                "operator {:?} has {field} {other:?} here and {known:?} at {}",
                operator.name, operator.position
            );
            conflict(
                &more.position,
                message,
                "documents of one operator are merged, so they must agree; or give the operators different names",
            );
        }
    }
    if operator.repository.is_empty() {
        operator.repository = more.repository;
    }
    if operator.recovery != more.recovery {
        let message = format!("operator {:?} has another recovery here than at {}", operator.name, operator.position);
        conflict(&more.position, message, "documents of one operator are merged, so they must agree");
    }
    let known: BTreeMap<String, Position> =
        operator.components.iter().map(|known| (known.name.clone(), known.position.clone())).collect();
    for component in more.components {
        match known.get(&component.name) {
            Some(place) => {
                let message = format!(
                    "component {:?} of operator {:?} is already given at {}",
                    component.name, operator.name, place
                );
                conflict(&component.position, message, "give each component of an operator a name of its own");
            }
            None => operator.components.push(component),
        }
    }
}

fn model(root: &Node<'_>) -> Operator {
    let fields = root.fields(&["operator", "components", "recovery"]);
    let mut operator = Operator { position: root.position(), ..Operator::default() };
    if let Some(node) = fields.required("operator") {
        operator.position = node.position();
        let fields = node.fields(&["name", "namespace", "repository", "version", "platform", "olmChannel"]);
        operator.name = fields.required_text("name");
        operator.namespace = fields.required_text("namespace");
        operator.repository = fields.text("repository").unwrap_or_default();
        operator.version = fields.text("version").unwrap_or_default();
        operator.platform = fields.text("platform").unwrap_or_default();
        operator.olm_channel = fields.text("olmChannel").unwrap_or_default();
    }
    operator.components = fields.filled_list("components", "component").iter().map(component).collect();
    unique(&operator.components, |component| (&component.name, &component.position), root, "component");
    if let Some(node) = fields.required("recovery") {
        operator.recovery = recovery(&node);
    }
    operator
}

fn recovery(node: &Node<'_>) -> Recovery {
    let fields = node.fields(&["reconcileTimeout", "maxReconcileCycles"]);
    Recovery {
        reconcile_timeout_seconds: fields
            .required("reconcileTimeout")
            .and_then(|node| node.positive_duration())
            .map_or(0, duration::rounded_up),
        max_reconcile_cycles: fields
            .required("maxReconcileCycles")
            .and_then(|node| node.whole_number(1..=u64::MAX))
            .unwrap_or_default(),
    }
}

fn component(node: &Node<'_>) -> Component {
    let fields = node.fields(&[
        "name",
        "controller",
        "managedResources",
        "dependencies",
        "webhooks",
        "finalizers",
        "steadyState",
    ]);
    let component = Component {
        name: fields.required_text("name"),
        controller: fields.required_text("controller"),
        resources: fields.filled_list("managedResources", "managed resource").iter().map(resource).collect(),
        dependencies: distinct_texts(&fields, "dependencies"),
        webhooks: fields.list("webhooks").iter().map(webhook).collect(),
        finalizers: distinct_texts(&fields, "finalizers"),
        steady_state: fields.optional("steadyState").map(|node| steady_state(&node)).unwrap_or_default(),
        specific: BTreeSet::new(),
        position: node.position(),
    };
    let named = |resource: &Resource| {
        (resource.object.kind.clone(), resource.object.namespace.clone(), resource.object.name.clone())
    };
    let mut seen: BTreeMap<_, &Position> = BTreeMap::new();
    for resource in component.resources.iter().filter(|resource| !resource.object.name.is_empty()) {
        if let Some(earlier) = seen.insert(named(resource), &resource.position) {
            let message = format!("{} is given a second time, first at {earlier}", resource.object);
            node.note_at(&resource.position, message, &["remove one of them"]);
        }
    }
    let mut seen: BTreeMap<(&str, &str), &Position> = BTreeMap::new();
    for webhook in component.webhooks.iter().filter(|webhook| !webhook.name.is_empty()) {
        if let Some(earlier) = seen.insert((&webhook.kind, &webhook.name), &webhook.position) {
            let message = format!("webhook {:?} is given a second time, first at {earlier}", webhook.name);
            node.note_at(&webhook.position, message, &["remove one of them"]);
        }
    }
    if !component.name.is_empty() && component.dependencies.contains(&component.name) {
        node.note(format!("component {:?} depends on itself", component.name), &["remove it from dependencies"]);
    }
    component
}

fn resource(node: &Node<'_>) -> Resource {
    let fields = node.fields(&["apiVersion", "kind", "name", "namespace", "labels", "ownerRef", "expectedSpec"]);
    let labels = fields.optional("labels").map(|node| texts_by_key(&node)).unwrap_or_default();
    Resource {
        object: object(&fields),
        selector: labels.clone(),
        labels,
        owner_kind: fields.text("ownerRef").unwrap_or_default(),
        expected_spec: fields.optional("expectedSpec").and_then(|node| node.map().cloned()).unwrap_or_default(),
        manifest: None,
        position: node.position(),
    }
}

fn object(fields: &Fields<'_>) -> ObjectRef {
    let api_version = fields.required_text("apiVersion");
    let (group, version) = split_api_version(&api_version);
    ObjectRef {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: fields.required_text("kind"),
        namespace: fields.text("namespace").unwrap_or_default(),
        name: fields.required_text("name"),
    }
}

fn webhook(node: &Node<'_>) -> Webhook {
    let fields = node.fields(&["name", "type", "path"]);
    let kinds = ["validating", "mutating"].map(|word| (word, word));
    Webhook {
        name: fields.required_text("name"),
        kind: fields.required("type").and_then(|node| node.choice(&kinds)).unwrap_or_default().to_owned(),
        path: fields.required_text("path"),
        details: None,
        position: node.position(),
    }
}

fn steady_state(node: &Node<'_>) -> SteadyState {
    let fields = node.fields(&["checks", "timeout"]);
    SteadyState {
        checks: fields.list("checks").iter().map(check).collect(),
        timeout_seconds: fields.optional("timeout").and_then(|node| node.duration()).map_or(0, duration::rounded_up),
    }
}

fn check(node: &Node<'_>) -> SteadyStateCheck {
    let fields = node.fields(&[
        "type",
        "apiVersion",
        "kind",
        "name",
        "namespace",
        "conditionType",
        "fieldPath",
        "expectedValue",
    ]);
    let words = ["conditionTrue", "resourceExists", "fieldEquals"].map(|word| (word, word));
    let kind = match fields.required("type").and_then(|node| node.choice(&words)) {
        Some("conditionTrue") => CheckKind::ConditionTrue { condition: fields.required_text("conditionType") },
        Some("fieldEquals") => CheckKind::FieldEquals {
            path: fields.required_text("fieldPath"),
            value: fields.text("expectedValue").unwrap_or_default(),
        },
        _ => CheckKind::ResourceExists,
    };
    SteadyStateCheck { kind, object: object(&fields), position: node.position() }
}

/// A list of strings, each of which is reported if it is repeated.
fn distinct_texts(fields: &Fields<'_>, key: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let texts = fields.list(key).into_iter().filter_map(|node| {
        let text = node.filled_text()?;
        if !seen.insert(text) {
            node.note(format!("{text:?} is given a second time"), &["remove one of them"]);
        }
        Some(text.to_owned())
    });
    texts.collect()
}

/// A map of strings; values may be empty, like those of labels.
fn texts_by_key(node: &Node<'_>) -> BTreeMap<String, String> {
    let entries = node.entries().into_iter();
    entries.filter_map(|(key, node)| Some((key.to_owned(), node.text()?.to_owned()))).collect()
}

/// Reports every name that is given twice.
fn unique<'a, T>(items: &'a [T], of: impl Fn(&'a T) -> (&'a String, &'a Position), root: &Node<'_>, what: &str) {
    let mut seen: BTreeMap<&str, &Position> = BTreeMap::new();
    for (name, position) in items.iter().map(of).filter(|(name, _)| !name.is_empty()) {
        if let Some(earlier) = seen.insert(name, position) {
            let message = format!("{what} {name:?} is given a second time, first at {earlier}");
            root.note_at(position, message, &["give it a name of its own"]);
        }
    }
}

#[cfg(test)]
mod tests;
