//! Webhooks in configurations and definitions, with the API server's defaults.

use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::objects::{Object, list};
use crate::model::{Webhook, WebhookDetails};

/// The API server's fixed timeout for a conversion, in seconds.
const CONVERSION_SECONDS: u64 = 30;

/// The webhooks that an object declares.
pub(super) fn of(object: &Object) -> Vec<Webhook> {
    match (object.reference.group.as_str(), object.reference.kind.as_str()) {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => entries(object, "validating"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => entries(object, "mutating"),
        _ if object.is_crd() => conversion(object).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn entries(object: &Object, kind: &str) -> Vec<Webhook> {
    // The defaults of v1beta1 were more lenient.
    let (policy, seconds) = if object.reference.version == "v1beta1" { ("Ignore", 30) } else { ("Fail", 10) };
    let webhooks = list(object.value.get("webhooks")).enumerate();
    let read = |(number, entry): (usize, &Value)| Webhook {
        name: entry.text("/name").to_owned(),
        kind: kind.to_owned(),
        path: path(entry.get("clientConfig")),
        details: Some(WebhookDetails {
            configuration: object.reference.name.clone(),
            failure_policy: text_or(entry, "/failurePolicy", policy),
            timeout_seconds: entry.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(seconds),
            service: service(entry.get("clientConfig")),
            rules: rules(entry),
            namespace_selector: selector(entry, "namespaceSelector"),
            object_selector: selector(entry, "objectSelector"),
            match_conditions: entry
                .get("matchConditions")
                .filter(|it| it.as_array().is_some_and(|list| !list.is_empty()))
                .cloned()
                .unwrap_or_default(),
            side_effects: entry.text("/sideEffects").to_owned(),
            reinvocation_policy: text_or(entry, "/reinvocationPolicy", "Never"),
        }),
        position: object.position(&["webhooks".into(), number.into()]),
    };
    webhooks.filter(|(_, entry)| !entry.text("/name").is_empty()).map(read).collect()
}

/// The conversion webhook of a definition, named after it.
fn conversion(object: &Object) -> Option<Webhook> {
    let conversion = object.value.pointer("/spec/conversion").filter(|it| it.text("/strategy") == "Webhook")?;
    let client = conversion.pointer("/webhook/clientConfig").or_else(|| conversion.get("webhookClientConfig"));
    Some(Webhook {
        name: object.reference.name.clone(),
        kind: "conversion".to_owned(),
        path: path(client),
        details: Some(WebhookDetails {
            configuration: object.reference.name.clone(),
            failure_policy: "Fail".to_owned(),
            timeout_seconds: CONVERSION_SECONDS,
            service: service(client),
            ..WebhookDetails::default()
        }),
        position: object.position(&["spec".into(), "conversion".into()]),
    })
}

fn text_or(value: &Value, pointer: &str, default: &str) -> String {
    Some(value.text(pointer)).filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
}

/// The request path; for a URL, the part after its host, without a query.
fn path(client: Option<&Value>) -> String {
    let Some(client) = client else { return "/".to_owned() };
    let url = client.text("/url");
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => client.text("/service/path"),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if path.is_empty() { "/".to_owned() } else { path.to_owned() }
}

fn service(client: Option<&Value>) -> Option<(String, String)> {
    let service = client?.get("service").filter(|service| service.is_object())?;
    Some((service.text("/namespace").to_owned(), service.text("/name").to_owned()))
}

/// The rules, each with its scope.
fn rules(entry: &Value) -> Value {
    let mut rules: Vec<Value> = list(entry.get("rules")).cloned().collect();
    for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
        if rule.get("scope").is_none_or(Value::is_null) {
            rule.insert("scope".to_owned(), json!("*"));
        }
    }
    Value::Array(rules)
}

/// A selector; null if it selects everything: the API server writes `{}` for none.
fn selector(entry: &Value, field: &str) -> Value {
    let selector = entry.get(field).filter(|it| it.as_object().is_some_and(|fields| !fields.is_empty()));
    selector.cloned().unwrap_or(Value::Null)
}
