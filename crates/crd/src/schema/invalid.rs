//! Finds definitions that the API server would reject, with the places at fault, including the types and cost of their
//! rules. Undecided problems are reported as uncertain.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`.

mod conversion;
mod document;
mod metadata;
mod path;
mod problem;
mod rules;
mod schema;

use serde_json::Value;

use super::pattern::Pattern;
use super::pipeline::{Path, Server};
use crate::names::{is_dns_1035_label, is_dns_subdomain};
pub use document::unknown_fields;
pub use problem::Problem;
use problem::{Collector, at, field, items, text};

/// Why the API server would reject this CustomResourceDefinition on creation, in document order. Only definitions of
/// `apiextensions.k8s.io/v1` are checked.
#[must_use]
pub fn problems(definition: &Value) -> Vec<Problem> {
    problems_on(Server::default(), definition)
}

/// Returns the reasons for which an API server of this version rejects the CRD on creation, in document order.
#[must_use]
pub fn problems_on(server: Server, definition: &Value) -> Vec<Problem> {
    if definition.get("apiVersion").and_then(Value::as_str) != Some("apiextensions.k8s.io/v1") {
        return Vec::new();
    }
    let mut found = Collector { path: Path::new(), problems: Vec::new(), server };
    // What cannot be decoded is not validated.
    document::check(&mut found, definition);
    if !found.problems.is_empty() {
        return found.problems;
    }
    metadata::check(&mut found, definition);
    found.below("spec", |found| spec(found, definition.get("spec").unwrap_or(&Value::Null)));
    found.problems
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
    found.below("conversion", |found| conversion::check(found, &spec["conversion"]));
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
    hoisted(found, spec);
}

/// The server keeps what all versions have in common once for all of them, schemas apart from `selectableFields`: it
/// then looks for the schema of the one where the other is.
fn hoisted(found: &mut Collector, spec: &Value) {
    let all = |same: fn(&Value) -> &Value| {
        let mut of_versions = items(spec, "versions").map(|(_, version)| same(version));
        of_versions.next().is_none_or(|first| of_versions.all(|other| other == first))
    };
    let has_fields = |version: &Value| items(version, "selectableFields").next().is_some();
    if !items(spec, "versions").any(|(_, version)| has_fields(version)) {
        return;
    }
    match (all(|version| at(version, "schema")), all(|version| at(version, "selectableFields"))) {
        (false, true) => found.here(
            "selectableFields of all versions are equal and their schemas are not, which the API server does not accept: \
             make the schemas equal, or the fields different, if only in their order",
        ),
        (true, false) => {
            for (index, _) in items(spec, "versions").filter(|(_, version)| has_fields(version)) {
                found.below(index, |found| {
                    found.at(
                        "selectableFields",
                        "schemas of all versions are equal and their selectableFields are not, which the API server does \
                         not accept: make the fields equal, or the schemas different, if only in a description",
                    );
                });
            }
        }
        _ => {}
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
    if items(version, "selectableFields").next().is_some() {
        found.known_field("selectableFields");
    }
    if field(version, "deprecationWarning").is_some() {
        match text(version, "deprecationWarning") {
            _ if version["deprecated"] != true => found.at("deprecationWarning", "is for deprecated versions only"),
            "" => found.at("deprecationWarning", "must not be empty"),
            warning if warning.len() > 256 => found.at("deprecationWarning", "must not be longer than 256 bytes"),
            warning if !is_printable(warning) => {
                found.at(
                    "deprecationWarning",
                    "must only contain printable characters, and no white space but the blank",
                );
            }
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

/// Returns whether Go's `unicode.IsPrint` accepts every character: letters, marks, numbers, punctuation, symbols and the blank.
fn is_printable(text: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_graphic() || character == ' ';
    let printable = || Pattern::shared(r"^[\pL\pM\pN\pP\pS ]*$");
    text.chars().all(is_plain) || printable().is_ok_and(|pattern| pattern.try_match(text) != Some(false))
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

#[cfg(test)]
mod tests;
