//! The conversion of a CRD: its strategy, and the client configuration of its webhook.
//!
//! Follows `validateCustomResourceConversion` in k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation`, and
//! k8s.io/apiserver `pkg/util/webhook/validation.go`.

use serde_json::Value;

use super::{Collector, field, items, text};
use crate::names::{is_dns_1035_label, is_dns_subdomain};
use crate::schema::pipeline::format::{UriParts, uri_parts};

pub(super) fn check(found: &mut Collector, conversion: &Value) {
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
            found.below("clientConfig", |found| client(found, &webhook["clientConfig"]));
            found.below("conversionReviewVersions", |found| review_versions(found, webhook));
        }),
        _ => found.at("strategy", "must be None or Webhook"),
    }
}

fn client(found: &mut Collector, client: &Value) {
    match (field(client, "url").and_then(Value::as_str), field(client, "service")) {
        _ if client.is_null() => found.here("is required where strategy is Webhook"),
        (Some(url), None) => found.below("url", |found| self::url(found, url)),
        (None, Some(service)) => found.below("service", |found| self::service(found, service)),
        _ => found.here("needs either url or service"),
    }
}

fn url(found: &mut Collector, url: &str) {
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let Some(UriParts { scheme, user, host, query }) = uri_parts(url) else {
        return found.here("must be a URL of the form https://host[/path]");
    };
    if !scheme.eq_ignore_ascii_case("https") {
        found.here("scheme must be https");
    }
    if host.is_empty() {
        found.here("host is required");
    }
    for (part, is_there) in
        [("user information", user.is_some()), ("a fragment", !fragment.is_empty()), ("a query", !query.is_empty())]
    {
        if is_there {
            found.here(format!("must not have {part}"));
        }
    }
}

fn service(found: &mut Collector, service: &Value) {
    for key in ["name", "namespace"] {
        if text(service, key).is_empty() {
            found.at(key, "is required");
        }
    }
    if let Some(port) = field(service, "port")
        && !port.as_i64().is_some_and(|port| (1..=65_535).contains(&port))
    {
        found.at("port", "must be from 1 to 65535");
    }
    let path = text(service, "path");
    if path.is_empty() || path == "/" {
        return;
    }
    let Some(inner) = path.strip_prefix('/') else { return found.at("path", "must start with /") };
    let segments = inner.strip_suffix('/').unwrap_or(inner);
    if !segments.split('/').all(is_dns_subdomain) {
        found.at("path", "each segment must be a DNS subdomain");
    }
}

fn review_versions(found: &mut Collector, webhook: &Value) {
    let versions: Vec<&str> =
        items(webhook, "conversionReviewVersions").filter_map(|(_, version)| version.as_str()).collect();
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        found.here("must hold v1 or v1beta1");
    }
    for (index, version) in versions.iter().enumerate() {
        found.below(index, |found| {
            if versions[..index].contains(version) {
                found.here("must be unique");
            } else if !is_dns_1035_label(version) {
                found.here("must be a DNS label that starts with a letter");
            }
        });
    }
}
