//! History: one ConfigMap per change, in kapp's format, with the run's findings and waivers in a key of our own.

use std::sync::Arc;

use pushback_preflight::{Finding, bookkeeping};
use serde_json::{Value, json};

use super::identity::HISTORY_LABEL;
use super::record::{AppError, AppName, config_map_kind};
use crate::cluster::{Address, Cluster, DeleteOptions, ListQuery, Patch, list_all};

/// Number of entries that are kept.
pub const KEEP: usize = 200;
/// Findings beyond this size are truncated: a ConfigMap holds one MiB.
const FINDINGS_BYTES: usize = 256 * 1024;

/// Maximum number of waivers in an entry; each has one finding in the full output.
const WAIVERS: usize = 500;

/// The preflight result, for the history entry of a change.
#[derive(Debug)]
pub struct Judged<'a> {
    /// All findings of preflight.
    pub findings: &'a [Finding],
    /// The policy: its source, disabled rules, and what the manifests loosened.
    pub policy: Value,
}

/// Result of a change: kapp's `lastChange`.
#[derive(Clone, Debug, Default)]
pub struct ChangeSummary {
    /// Start, RFC 3339; empty on a directory, which stores no times.
    pub started_at: String,
    /// End; empty while the change is running.
    pub finished_at: String,
    /// Whether the change succeeded; `None` while it is running.
    pub successful: Option<bool>,
    /// Text in kapp's format: `update: Op: 1 create, …`.
    pub description: String,
    /// Namespaces of the app, `(cluster)` for cluster-scoped objects.
    pub namespaces: Vec<String>,
}

impl ChangeSummary {
    /// The JSON that kapp writes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut change = serde_json::Map::new();
        for (key, time) in [("startedAt", &self.started_at), ("finishedAt", &self.finished_at)] {
            if !time.is_empty() {
                change.insert(key.to_owned(), json!(time));
            }
        }
        if let Some(successful) = self.successful {
            change.insert("successful".to_owned(), json!(successful));
        }
        change.insert("description".to_owned(), json!(self.description));
        change.insert("namespaces".to_owned(), json!(self.namespaces));
        Value::Object(change)
    }
}

/// Starts a history entry and returns its name.
///
/// # Errors
/// The cluster's error.
pub async fn start(
    cluster: &dyn Cluster,
    app: &AppName,
    label_value: &str,
    summary: &ChangeSummary,
    run: &str,
    judged: &Judged<'_>,
) -> Result<String, AppError> {
    let mut labels = serde_json::Map::new();
    labels.insert(HISTORY_LABEL.to_owned(), json!(""));
    // A label value has at most 63 characters; kapp omits the legacy label for longer names.
    if app.name.len() <= 63 {
        labels.insert("kapp.k14s.io/app-change-app".to_owned(), json!(app.name));
    }
    labels.insert("kapp.k14s.io/app-change-app-label".to_owned(), json!(label_value));
    let findings = judged.findings;
    let mut shown = findings;
    let mut findings_text = serde_json::to_string(shown).unwrap_or_default();
    while findings_text.len() > FINDINGS_BYTES {
        shown = &shown[..shown.len() / 2];
        findings_text = serde_json::to_string(shown).unwrap_or_default();
    }
    let waivers = findings.iter().filter(|finding| finding.waived.is_some()).take(WAIVERS).map(
        |finding| json!({"fingerprint": finding.fingerprint, "reason": finding.waived, "affected": finding.affected()}),
    );
    // If there are too many findings, the waived ones are dropped first: the waivers are recorded separately.
    let own = json!({
        "run": run, "findings": findings.len(), "policy": judged.policy, "waivers": waivers.collect::<Vec<_>>(),
    });
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "generateName": format!("{}-change-", name_stem(&app.name)),
            "namespace": app.namespace, "labels": labels,
        },
        "data": {
            "spec": summary.to_json().to_string(),
            "pushback": own.to_string(),
            "findings": findings_text,
        },
    });
    let address = Address::new(config_map_kind(), &app.namespace, "");
    let written = cluster.create(&address, &body, false).await.map_err(AppError::cluster("write the app's history"))?;
    Ok(pushback_preflight::ObjectExt::name(&*written.object).to_owned())
}

/// Records how a change ended.
///
/// # Errors
/// The cluster's error.
pub async fn finish(cluster: &dyn Cluster, app: &AppName, name: &str, summary: &ChangeSummary) -> Result<(), AppError> {
    let address = Address::new(config_map_kind(), &app.namespace, name);
    let patch = Patch::Merge(json!({"data": {"spec": summary.to_json().to_string()}}));
    cluster.patch(&address, &patch, false).await.map_err(AppError::cluster("write the app's history"))?;
    Ok(())
}

/// Deletes the oldest entries beyond `keep`; with 0, the whole history. Best effort: returns how many were deleted.
pub async fn trim(cluster: &dyn Cluster, app: &AppName, label_value: &str, keep: usize) -> usize {
    let selector = format!("{HISTORY_LABEL}=,kapp.k14s.io/app-change-app-label={label_value}");
    let query = ListQuery::new(config_map_kind(), Some(&app.namespace), &selector);
    let Ok(page) = list_all(cluster, &query).await else { return 0 };
    // Objects that carry the labels but are not part of this app's history are kept.
    let stem = name_stem(&app.name);
    let is_entry = |item: &&Arc<Value>| bookkeeping::entry_of(item) == Some(&stem);
    let mut entries: Vec<_> = page.items.iter().filter(is_entry).map(|item| (created(item), item)).collect();
    entries.sort_by(|left, right| right.0.cmp(&left.0));
    // There can be hundreds; the cluster limits its own requests.
    let delete = async |entry: &Value| {
        let name = pushback_preflight::ObjectExt::name(entry);
        let address = Address::new(config_map_kind(), &app.namespace, name);
        let uid = pushback_preflight::ObjectExt::uid(entry).to_owned();
        cluster.delete(&address, &DeleteOptions { uid, ..DeleteOptions::default() }).await.is_ok()
    };
    let gone = futures::future::join_all(entries.iter().skip(keep).map(|(_, entry)| delete(entry))).await;
    gone.into_iter().filter(|gone| *gone).count()
}

/// Prefix of the names of an app's entries.
fn name_stem(app: &str) -> String {
    app.chars().take(230).collect()
}

/// Sort key by age. Creation times are in whole seconds, the start of a change is more precise; a directory stores no
/// times, but its names count up.
fn created(entry: &Value) -> (String, Option<jiff::Timestamp>, String) {
    use pushback_preflight::ObjectExt;
    let spec: Value = serde_json::from_str(entry.text("/data/spec")).unwrap_or_default();
    let started = spec.text("/startedAt").parse().ok();
    (entry.text("/metadata/creationTimestamp").to_owned(), started, entry.name().to_owned())
}
