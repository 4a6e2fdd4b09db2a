//! Finds definitions that the API server would reject, with the places at fault, including the types and cost of their
//! rules. Undecided problems are reported as uncertain.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`.

mod path;
mod problem;
mod rules;
mod schema;

use serde_json::Value;

use super::pipeline::Path;
use crate::names::{is_dns_1035_label, is_dns_subdomain};
pub use problem::Problem;
use problem::{Collector, at, field, items, text};

/// Why the API server would reject this CustomResourceDefinition on creation, in document order. Only definitions of
/// `apiextensions.k8s.io/v1` are checked.
#[must_use]
pub fn problems(definition: &Value) -> Vec<Problem> {
    if definition.get("apiVersion").and_then(Value::as_str) != Some("apiextensions.k8s.io/v1") {
        return Vec::new();
    }
    let mut found = Collector { path: Path::new(), problems: Vec::new() };
    definition_name(&mut found, definition);
    found.below("spec", |found| spec(found, definition.get("spec").unwrap_or(&Value::Null)));
    found.problems
}

fn definition_name(found: &mut Collector, definition: &Value) {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let (plural, group) = (text(&spec["names"], "plural"), text(spec, "group"));
    let metadata = definition.get("metadata").unwrap_or(&Value::Null);
    let name = text(metadata, "name");
    found.below("metadata", |found| {
        if !plural.is_empty() && !group.is_empty() && name != format!("{plural}.{group}") {
            found.at("name", format!("must be {plural}.{group}, of spec.names.plural and spec.group"));
        }
        let is_protected = ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
        if is_protected && text(&metadata["annotations"], "api-approved.kubernetes.io").is_empty() {
            found.at("annotations", "groups of Kubernetes need the annotation api-approved.kubernetes.io");
        }
    });
}

fn spec(found: &mut Collector, spec: &Value) {
    match text(spec, "group") {
        "" => found.at("group", "is required"),
        group if !is_dns_subdomain(group) => found.at("group", "must be a DNS subdomain"),
        group if !group.contains('.') => found.at("group", "must be a domain with at least one dot"),
        _ => {}
    }
    if !matches!(text(spec, "scope"), "Cluster" | "Namespaced") {
        found.at("scope", "must be Cluster or Namespaced");
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        found.at(
            "preserveUnknownFields",
            "must be false; x-kubernetes-preserve-unknown-fields in the schema takes its place",
        );
    }
    found.below("names", |found| names(found, &spec["names"]));
    found.below("versions", |found| versions(found, spec));
    found.below("conversion", |found| conversion(found, &spec["conversion"]));
}

fn names(found: &mut Collector, names: &Value) {
    for key in ["plural", "kind"] {
        if text(names, key).is_empty() {
            found.at(key, "is required");
        }
    }
    for (key, is_mixed) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let name = text(names, key);
        let compared = if is_mixed { name.to_lowercase() } else { name.to_owned() };
        if !name.is_empty() && !is_dns_1035_label(&compared) {
            found.at(key, "must be a DNS label that starts with a letter");
        }
    }
    if !text(names, "kind").is_empty() && text(names, "kind") == text(names, "listKind") {
        found.at("listKind", "must differ from kind");
    }
    for key in ["shortNames", "categories"] {
        found.below(key, |found| {
            for (index, name) in items(names, key) {
                if !name.as_str().is_some_and(is_dns_1035_label) {
                    found.below(index, |found| found.here("must be a DNS label that starts with a letter"));
                }
            }
        });
    }
}

fn versions(found: &mut Collector, spec: &Value) {
    let storage = items(spec, "versions").filter(|(_, version)| version["storage"] == true).count();
    if storage != 1 {
        found.here(format!("exactly one version must be stored, here are {storage}"));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, version) in items(spec, "versions") {
        found.below(index, |found| {
            let name = text(version, "name");
            if !is_dns_1035_label(name) {
                found.at("name", "must be a DNS label that starts with a letter");
            } else if seen.contains(&name) {
                found.at("name", "must be unique");
            }
            seen.push(name);
            self::version(found, version);
        });
    }
}

fn version(found: &mut Collector, version: &Value) {
    let subresources = &version["subresources"];
    match field(&version["schema"], "openAPIV3Schema") {
        None => found.at("schema", "is required"),
        Some(schema) => found.below("schema", |found| {
            found.below("openAPIV3Schema", |found| {
                schema::root(found, schema, field(subresources, "status").is_some());
            });
        }),
    }
    if let Some(schema) = field(&version["schema"], "openAPIV3Schema") {
        path::selectable_fields(found, version, schema);
    }
    if field(version, "deprecationWarning").is_some() {
        match text(version, "deprecationWarning") {
            _ if version["deprecated"] != true => found.at("deprecationWarning", "is for deprecated versions only"),
            "" => found.at("deprecationWarning", "must not be empty"),
            warning if warning.len() > 256 => found.at("deprecationWarning", "must not be longer than 256 bytes"),
            _ => {}
        }
    }
    found.below("additionalPrinterColumns", |found| {
        for (index, column) in items(version, "additionalPrinterColumns") {
            found.below(index, |found| printer_column(found, column));
        }
    });
    if let Some(scale) = field(subresources, "scale") {
        found.below("subresources", |found| found.below("scale", |found| self::scale(found, scale)));
    }
}

fn printer_column(found: &mut Collector, column: &Value) {
    if text(column, "name").is_empty() {
        found.at("name", "is required");
    }
    if !["integer", "number", "string", "boolean", "date"].contains(&text(column, "type")) {
        found.at("type", "must be integer, number, string, boolean or date");
    }
    const FORMATS: [&str; 9] = ["", "int32", "int64", "float", "double", "byte", "date", "date-time", "password"];
    if !FORMATS.contains(&text(column, "format")) {
        found.at("format", format!("must be one of {}", FORMATS[1..].join(", ")));
    }
    if !text(column, "jsonPath").starts_with('.') {
        found.at("jsonPath", "must start with a dot");
    }
}

fn scale(found: &mut Collector, scale: &Value) {
    for (key, prefixes, is_required) in [
        ("specReplicasPath", &[".spec."][..], true),
        ("statusReplicasPath", &[".status."], true),
        ("labelSelectorPath", &[".spec.", ".status."], false),
    ] {
        let path = text(scale, key);
        let is_absent = path.is_empty() && !is_required;
        if !is_absent && !prefixes.iter().any(|prefix| path.starts_with(prefix)) {
            found.at(key, format!("must start with {}", prefixes.join(" or ")));
        }
    }
}

fn conversion(found: &mut Collector, conversion: &Value) {
    if conversion.is_null() {
        return;
    }
    let webhook = &conversion["webhook"];
    match text(conversion, "strategy") {
        "None" => {
            if field(webhook, "clientConfig").is_some() || items(webhook, "conversionReviewVersions").count() > 0 {
                found.at("webhook", "must not be set where strategy is None");
            }
        }
        "Webhook" => found.below("webhook", |found| {
            let client = &webhook["clientConfig"];
            if client.is_null() {
                found.at("clientConfig", "is required where strategy is Webhook");
            } else if field(client, "url").is_some() == field(client, "service").is_some() {
                found.at("clientConfig", "needs either url or service");
            }
            let versions: Vec<&str> =
                items(webhook, "conversionReviewVersions").filter_map(|(_, version)| version.as_str()).collect();
            if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
                found.at("conversionReviewVersions", "must hold v1 or v1beta1");
            }
        }),
        _ => found.at("strategy", "must be None or Webhook"),
    }
}

#[cfg(test)]
mod tests;
