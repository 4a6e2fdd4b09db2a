//! Measures how a webhook admits: requests in its scope, sent as dry runs and timed, and one outside its scope, which
//! it must not touch. Nothing is stored.

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kind, Kinds, ListQuery, Patch};
use pushback_objects::ObjectExt;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::change::recreatable;

/// From here on users notice; the server gives up at 30 s.
pub const SLOW_SECONDS: f64 = 10.0;
/// Name of the objects in probe requests; never stored.
const PROBE: &str = "pushback-probe";
/// Kinds that a namespace may hold and few webhooks match.
const OUTSIDE: [(&str, &str); 3] = [("", "ServiceAccount"), ("", "ConfigMap"), ("coordination.k8s.io", "Lease")];

/// One measured admission request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    /// Entry of the webhook configuration; empty for a request outside its scope.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub webhook: String,
    /// Description of the request.
    pub request: String,
    /// Time until the response.
    pub seconds: f64,
    /// `admitted`, `denied` by admission, `unavailable` where the webhook did not answer, `error`.
    pub answer: &'static str,
    /// Message of the response.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Results of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// Requests in scope, one per entry.
    pub inside: Vec<Admission>,
    /// Requests out of scope, as far as possible.
    pub outside: Vec<Admission>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

/// Measures one request in the scope of each entry of a configuration, and one outside every scope.
///
/// # Errors
/// The objects to send cannot be listed.
pub async fn measure(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    configuration: &Value,
    namespace: &str,
) -> Result<Measurements, ClusterError> {
    let mut measured = Measurements::default();
    let entries: Vec<&Value> = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten().collect();
    for entry in &entries {
        let name = entry.text("/name");
        match example(cluster, kinds, entry, namespace).await? {
            Some((kind, object, updates)) => {
                let admission = ask(cluster, &kind, &object, namespace, updates).await;
                measured.inside.push(Admission { webhook: name.to_owned(), ..admission });
            }
            None => measured.notes.push(format!("namespace {namespace} has nothing to ask webhook {name} about")),
        }
    }
    let rules: Vec<&Value> = entries.iter().filter_map(|entry| entry.get("rules")?.as_array()).flatten().collect();
    let outside = OUTSIDE.iter().find_map(|(group, kind)| {
        kinds.preferred(group, kind).filter(|kind| !rules.iter().any(|rule| is_about(rule, kind)))
    });
    match outside {
        Some(kind) => {
            let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {}});
            measured.outside.push(ask(cluster, kind, &object, namespace, false).await);
        }
        None => measured.notes.push("no request outside of the webhook's scope was found to ask with".to_owned()),
    }
    Ok(measured)
}

/// An object that the entry's rules match, and whether they match its updates.
async fn example(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    entry: &Value,
    namespace: &str,
) -> Result<Option<(Arc<Kind>, Arc<Value>, bool)>, ClusterError> {
    for rule in entry.get("rules").and_then(Value::as_array).into_iter().flatten() {
        let (creates, updates) = (has(rule, "operations", "CREATE"), has(rule, "operations", "UPDATE"));
        if !creates && !updates {
            continue;
        }
        for kind in kinds.iter().filter(|kind| kind.namespaced && kind.offers("list") && is_about(rule, kind)) {
            let version =
                kinds.versions(&kind.group, &kind.kind).iter().find(|kind| has(rule, "apiVersions", &kind.version));
            let kind = version.unwrap_or(kind);
            let mut query = ListQuery::new(Arc::clone(kind), Some(namespace), "");
            query.limit = 1;
            if let Some(object) = cluster.list(&query).await?.items.into_iter().next() {
                return Ok(Some((Arc::clone(kind), object, updates)));
            }
        }
    }
    Ok(None)
}

fn is_about(rule: &Value, kind: &Kind) -> bool {
    has(rule, "apiGroups", &kind.group)
        && has(rule, "resources", &kind.plural)
        && (rule.text("/scope") != "Cluster" || !kind.namespaced)
}

/// Whether a list of a rule contains a word or `*`.
fn has(rule: &Value, list: &str, word: &str) -> bool {
    let words = rule.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    words.into_iter().any(|given| given == word || given == "*" || (list == "resources" && given == "*/*"))
}

async fn ask(cluster: &dyn Cluster, kind: &Arc<Kind>, object: &Value, namespace: &str, updates: bool) -> Admission {
    let name = if updates { object.name() } else { PROBE };
    let address = Address::new(Arc::clone(kind), namespace, name).urgent();
    let started = Instant::now();
    let answer = if updates {
        let patch = json!({"metadata": {"annotations": {"pushback.dev/probe": "dry run"}}});
        cluster.patch(&address, &Patch::Merge(patch), true).await
    } else {
        let mut body = recreatable(object);
        body["metadata"]["name"] = json!(PROBE);
        body["metadata"]["namespace"] = json!(namespace);
        cluster.create(&address, &body, true).await
    };
    let seconds = started.elapsed().as_secs_f64();
    let (answer, detail) = match answer {
        Ok(_) => ("admitted", String::new()),
        Err(error) => match error.kind {
            ErrorKind::Denied => ("denied", error.message),
            ErrorKind::WebhookUnavailable | ErrorKind::Timeout => ("unavailable", error.message),
            _ => ("error", error.message),
        },
    };
    let verb = if updates { "update of" } else { "creation of" };
    Admission { webhook: String::new(), request: format!("{verb} {address}"), seconds, answer, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_with_their_wildcards_and_scope() {
        let config_map = Kind { plural: "configmaps".to_owned(), namespaced: true, ..Kind::default() };
        let rule = |groups: &str, resources: &str, scope: &str| json!({"apiGroups": [groups], "resources": [resources], "scope": scope});
        for about in [rule("", "configmaps", "*"), rule("*", "*", "Namespaced"), rule("*", "*/*", "")] {
            assert!(is_about(&about, &config_map), "{about}");
        }
        for not in [rule("apps", "configmaps", "*"), rule("", "secrets", "*"), rule("", "*", "Cluster")] {
            assert!(!is_about(&not, &config_map), "{not}");
        }
    }
}
