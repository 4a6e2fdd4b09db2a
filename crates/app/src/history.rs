//! History: one ConfigMap per change, in kapp's format, with the run's findings and waivers in a key of our own.

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, DeleteOptions, ListQuery, Patch, list_all};
use pushback_manifest::revision::Revision;
use pushback_objects::{Finding, ObjectExt, bookkeeping};
use serde_json::{Value, json};

use super::identity::HISTORY_LABEL;
use super::record::{AppError, AppName, config_map_kind};

/// Number of entries that are kept.
pub const KEEP: usize = 200;
/// When the change was first recorded, on an entry that was copied.
const CREATED_ANNOTATION: &str = "pushback.dev/created-at";
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
    /// User of the credentials, with user and host, `admin (me@laptop)`; empty on a directory, which must not differ from
    /// machine to machine.
    pub by: String,
    /// Where the input came from, if that is known.
    pub revision: Option<Revision>,
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

/// A change as it was recorded, by kapp or by us.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Name of the entry.
    pub name: String,
    /// What kapp records.
    pub change: ChangeSummary,
    /// User of the credentials, with user and host, where recorded.
    pub by: String,
    /// Commit that the input came from, where recorded.
    pub commit: String,
    /// Whether the input was not what the commit has.
    pub modified: bool,
    /// Id of the run, where recorded.
    pub run: String,
    /// Rules that were off and would have run.
    pub rules_off: Vec<String>,
    /// Findings that were waived.
    pub waivers: Vec<WaivedFinding>,
}

/// A finding that was waived, as it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaivedFinding {
    /// Its fingerprint.
    pub fingerprint: String,
    /// The reason of the waiver.
    pub reason: String,
    /// Rule and check, `CRDUpgradeSafety/enum`; empty in entries of older versions.
    pub rule: String,
    /// Kind and name of its object; empty in entries of older versions.
    pub object: String,
}

impl WaivedFinding {
    fn read(waiver: &Value) -> Self {
        let text = |key: &str| waiver.text(&format!("/{key}")).to_owned();
        Self { fingerprint: text("fingerprint"), reason: text("reason"), rule: text("rule"), object: text("object") }
    }

    fn record(finding: &Finding) -> Value {
        let Finding { rule, check, .. } = finding;
        let rule = if check.is_empty() { rule.clone() } else { format!("{rule}/{check}") };
        json!({
            "fingerprint": finding.fingerprint, "reason": finding.waived, "affected": finding.affected(),
            "rule": rule, "object": finding.object.to_string(),
        })
    }
}

impl Entry {
    /// Reads an entry; parts that cannot be read are left out.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let part =
            |key: &str| -> Value { serde_json::from_str(object.text(&format!("/data/{key}"))).unwrap_or(Value::Null) };
        let (spec, own) = (part("spec"), part("pushback"));
        let texts = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let list = |pointer: &str| own.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        Self {
            name: object.name().to_owned(),
            change: ChangeSummary {
                started_at: spec.text("/startedAt").to_owned(),
                // A change that has not ended has Go's zero time in kapp's entries.
                finished_at: spec.text("/finishedAt").to_owned(),
                successful: spec.get("successful").and_then(Value::as_bool),
                description: spec.text("/description").to_owned(),
                namespaces: texts(spec.get("namespaces").unwrap_or(&Value::Null)),
            },
            by: own.text("/by").to_owned(),
            commit: own.text("/commit").to_owned(),
            modified: own["modified"] == json!(true),
            run: own.text("/run").to_owned(),
            rules_off: list("/policy/rulesOff").map(|off| off.text("/name").to_owned()).collect(),
            waivers: list("/waivers").map(WaivedFinding::read).collect(),
        }
    }
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
    let findings = judged.findings;
    let mut shown = findings;
    let mut findings_text = serde_json::to_string(shown).unwrap_or_default();
    while findings_text.len() > FINDINGS_BYTES {
        shown = &shown[..shown.len() / 2];
        findings_text = serde_json::to_string(shown).unwrap_or_default();
    }
    let waivers = findings.iter().filter(|finding| finding.waived.is_some()).take(WAIVERS);
    let waivers = waivers.map(WaivedFinding::record);
    // If there are too many findings, the waived ones are dropped first: the waivers are recorded separately.
    let mut own = json!({
        "run": run, "by": judged.by, "findings": findings.len(), "policy": judged.policy, "waivers": waivers.collect::<Vec<_>>(),
    });
    if let Some(Revision { commit, modified }) = &judged.revision {
        own["commit"] = json!(commit);
        own["modified"] = json!(modified);
    }
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "generateName": format!("{}-change-", name_stem(&app.name)),
            "namespace": app.namespace, "labels": labels(app, label_value),
        },
        "data": {
            "spec": summary.to_json().to_string(),
            "pushback": own.to_string(),
            "findings": findings_text,
        },
    });
    let address = Address::new(config_map_kind(), &app.namespace, "");
    let written = cluster.create(&address, &body, false).await.map_err(AppError::cluster("write the app's history"))?;
    Ok(written.object.name().to_owned())
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
    let Ok(entries) = entries(cluster, app, label_value).await else { return 0 };
    delete(cluster, &app.namespace, entries.get(keep..).unwrap_or_default()).await
}

/// An app's entries, newest first. Objects that carry the labels but are not part of this app's history are left out.
///
/// # Errors
/// The cluster's error.
pub async fn entries(cluster: &dyn Cluster, app: &AppName, label_value: &str) -> Result<Vec<Arc<Value>>, ClusterError> {
    let selector = format!("{HISTORY_LABEL}=,kapp.k14s.io/app-change-app-label={label_value}");
    let query = ListQuery::new(config_map_kind(), Some(&app.namespace), &selector);
    let mut entries = list_all(cluster, &query).await?.items;
    let stem = name_stem(&app.name);
    entries.retain(|item| bookkeeping::entry_of(item) == Some(&stem));
    entries.sort_by_cached_key(|entry| std::cmp::Reverse(created(entry)));
    Ok(entries)
}

/// Deletes entries. Best effort: returns how many were deleted.
pub async fn delete(cluster: &dyn Cluster, namespace: &str, entries: &[Arc<Value>]) -> usize {
    // There can be hundreds; the cluster limits its own requests.
    let delete = async |entry: &Value| {
        let address = Address::new(config_map_kind(), namespace, entry.name());
        let options = DeleteOptions { uid: entry.uid().to_owned(), ..DeleteOptions::default() };
        cluster.delete(&address, &options).await.is_ok()
    };
    let gone = futures::future::join_all(entries.iter().map(|entry| delete(entry))).await;
    gone.into_iter().filter(|gone| *gone).count()
}

/// Name of an entry after its app got another name: derived from the old one, so that an entry has one copy only.
#[must_use]
pub fn moved_name(name: &str, to: &AppName) -> String {
    // Of a long app's entry the server has cut the name, but for its own five letters.
    let cut = || name.get(name.len().saturating_sub(5)..).unwrap_or(name);
    let suffix = name.rsplit_once("-change-").map_or_else(cut, |(_, suffix)| suffix);
    format!("{}-change-{suffix}", name_stem(&to.name))
}

/// An entry for the app under its new name. Its age stays.
#[must_use]
pub fn moved(entry: &Value, to: &AppName, label_value: &str) -> Value {
    let of = |key: &str| entry.pointer(&format!("/metadata/{key}")).cloned().unwrap_or_else(|| json!({}));
    let mut annotations = of("annotations");
    let created = created(entry).0;
    if !created.is_empty() {
        annotations[CREATED_ANNOTATION] = json!(created);
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": moved_name(entry.name(), to), "namespace": to.namespace, "labels": labels(to, label_value),
            "annotations": annotations,
        },
        "data": entry.get("data"),
    })
}

fn labels(app: &AppName, label_value: &str) -> serde_json::Map<String, Value> {
    let mut labels = serde_json::Map::new();
    labels.insert(HISTORY_LABEL.to_owned(), json!(""));
    // A label value has at most 63 characters; kapp omits the legacy label for longer names.
    if app.name.len() <= 63 {
        labels.insert("kapp.k14s.io/app-change-app".to_owned(), json!(app.name));
    }
    labels.insert("kapp.k14s.io/app-change-app-label".to_owned(), json!(label_value));
    labels
}

/// Prefix of the names of an app's entries.
fn name_stem(app: &str) -> String {
    app.chars().take(230).collect()
}

/// Sort key by age. Creation times are in whole seconds, the start of a change is more precise; a directory stores no
/// times, but its names count up.
fn created(entry: &Value) -> (String, Option<jiff::Timestamp>, String) {
    let spec: Value = serde_json::from_str(entry.text("/data/spec")).unwrap_or_default();
    let started = spec.text("/startedAt").parse().ok();
    let created = entry.annotation(CREATED_ANNOTATION).unwrap_or_else(|| entry.text("/metadata/creationTimestamp"));
    (created.to_owned(), started, entry.name().to_owned())
}
