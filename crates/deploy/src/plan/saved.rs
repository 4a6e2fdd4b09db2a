//! A saved plan: what an apply was to change, and everything that this rests on, as digests.
//! Canonical JSON with a digest over itself, one line for each object; no secret value, and none that could be guessed.

pub mod compare;
pub mod digests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pushback_events::FieldLine;
use pushback_objects::{ObjectRef, Position, Severity, hex};
use pushback_preflight::{Operation, Outcome, RuleOutcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Version of the format.
pub const SCHEMA_VERSION: u32 = 1;

/// The first line of every plan.
const KIND: &str = "{\"kind\":\"SavedPlan\",\n";

/// What stands before the digest at the end of every plan.
const DIGEST: &str = ",\n\"digest\":\"sha256:";

/// A saved plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedPlan {
    /// Version of the format.
    pub schema_version: u32,
    /// The program that made it.
    pub tool: SavedTool,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Until when it may be carried out, RFC 3339.
    pub expires: String,
    /// The app.
    pub app: SavedApp,
    /// The cluster.
    pub cluster: SavedCluster,
    /// Value of annotations that are new in every run.
    pub nonce: String,
    /// Options of the command line, by name, with their values.
    pub options: BTreeMap<String, Vec<String>>,
    /// Whether values of Secrets are bound by digests with a key that is not in the plan.
    pub secrets: SecretBinding,
    /// Files of the input, in order.
    pub inputs: Vec<SavedFile>,
    /// The policy.
    pub policy: SavedPolicy,
    /// What the rules knew of the cluster.
    pub facts: SavedFacts,
    /// The verdict.
    pub verdict: SavedVerdict,
    /// All objects: those of the input in its order, then deletions.
    pub objects: Vec<SavedObject>,
}

impl SavedTool {
    /// This program.
    #[must_use]
    pub fn this() -> Self {
        Self { name: "pushback".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The program that made a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedTool {
    /// Program name.
    pub name: String,
    /// Program version.
    pub version: String,
}

/// The app of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedApp {
    /// App name.
    pub name: String,
    /// Namespace of its record.
    pub namespace: String,
    /// Namespace of objects that name none.
    pub default_namespace: String,
    /// Value of its label: the record's, or that of the new record.
    pub label: String,
}

/// The cluster of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedCluster {
    /// The cluster, as shown to people.
    pub description: String,
    /// What it is recognised by: `Namespace kube-system`, `folder`, `server`.
    pub by: String,
    /// Digest of that object's uid, of the folder's path, of the server's address.
    pub id: String,
}

/// How values of Secrets are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretBinding {
    /// By digests with a key.
    Keyed,
    /// Not at all: only which fields there are.
    NamesOnly,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedFile {
    /// Its name in messages.
    pub name: String,
    /// Digest of its content.
    pub digest: String,
}

/// The policy of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedPolicy {
    /// Its source; `None` if the manifests decide.
    pub source: Option<String>,
    /// The files of `--config`.
    pub files: Vec<SavedFile>,
    /// The rules that ran, with their settings.
    pub rules: BTreeMap<String, Map<String, Value>>,
    /// The waivers that were in effect, used or not.
    pub waivers: Vec<Map<String, Value>>,
}

/// What the rules of a plan knew of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedFacts {
    /// Number of questions asked.
    pub answers: usize,
    /// Digest of the answers.
    pub digest: String,
}

/// The verdict of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedVerdict {
    /// The overall outcome.
    pub outcome: Outcome,
    /// The outcome of each rule.
    pub rules: BTreeMap<String, RuleOutcome>,
    /// The findings.
    pub findings: Vec<SavedFinding>,
}

/// A finding of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedFinding {
    /// Its fingerprint.
    pub fingerprint: String,
    /// The rule.
    pub rule: String,
    /// The check.
    pub check: String,
    /// Its severity.
    pub severity: Severity,
    /// The object.
    pub object: ObjectRef,
    /// What was found.
    pub message: String,
    /// Why it is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

/// An object of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedObject {
    /// The object.
    pub object: ObjectRef,
    /// What is done to it.
    pub operation: Operation,
    /// The deletion only releases it from the app.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphaned: bool,
    /// The update changes no value, only who owns which field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ownership_only: bool,
    /// uid of the live object; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Digest of what the app has set of it; for deletions and replacements see `parts`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub live: String,
    /// Digest of what is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// Digest of the change: each field with its old and new value, and who loses it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub change: String,
    /// Digests of the fields that go with the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// The fields that change, for display, Secrets masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldLine>,
    /// Remarks, for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Position in the input, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl SavedObject {
    /// Returns the operation that is reported.
    #[must_use]
    pub fn reported_operation(&self) -> Operation {
        if self.ownership_only { Operation::Noop } else { self.operation }
    }
}

/// Whether an object is deleted that was changed since it was planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deletion {
    /// It goes anyway: it is no longer in the input.
    #[default]
    Anyway,
    /// It stays, and its deletion has failed: somebody has approved to delete it as it was.
    AsPlanned,
}

/// Why a file is no plan that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedPlanError {
    /// It is something else.
    #[error("not a saved plan")]
    NotAPlan,
    /// It is not as it was written.
    #[error("the plan was edited, or not written completely: it does not have the digest that it names")]
    Edited,
    /// A later version has made it.
    #[error("the plan has format {0}, and this version reads up to {SCHEMA_VERSION}")]
    Newer(u64),
    /// Its digest is right, and its content is not.
    #[error("the plan cannot be read: {0}")]
    Unreadable(String),
}

impl SavedPlan {
    /// Whether a text is a plan, rightly or wrongly.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.starts_with(KIND)
    }

    /// The text of the file. The same plan gives the same bytes.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = KIND.to_owned();
        let value = serde_json::to_value(self).unwrap_or_default();
        for (index, (key, value)) in value.as_object().into_iter().flatten().enumerate() {
            let separator = if index == 0 { "" } else { ",\n" };
            text.push_str(&format!("{separator}\"{key}\":"));
            write_lines(value, &mut text);
        }
        seal(text)
    }

    /// Reads a file of this format, or of an earlier one.
    ///
    /// # Errors
    /// It is something else, was edited, or is of a later format.
    pub fn parse(text: &str) -> Result<Self, SavedPlanError> {
        if !Self::is_one(text) {
            return Err(SavedPlanError::NotAPlan);
        }
        let Some((content, _)) = text.rsplit_once(DIGEST) else { return Err(SavedPlanError::Edited) };
        if seal(content.to_owned()) != text {
            return Err(SavedPlanError::Edited);
        }
        let unreadable = |error: serde_json::Error| SavedPlanError::Unreadable(error.to_string());
        let mut value: Map<String, Value> = serde_json::from_str(text).map_err(unreadable)?;
        let version = value.get("schemaVersion").and_then(Value::as_u64).unwrap_or_default();
        if version > u64::from(SCHEMA_VERSION) {
            return Err(SavedPlanError::Newer(version));
        }
        value.retain(|key, _| key != "kind" && key != "digest");
        serde_json::from_value(value.into()).map_err(unreadable)
    }

    /// The digest by which others name the plan.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = self.render();
        text.rsplit_once(DIGEST).map(|(content, _)| sha256(content.as_bytes())).unwrap_or_default()
    }
}

/// Adds the digest of the text, and the end of the file.
fn seal(mut text: String) -> String {
    let digest = sha256(text.as_bytes());
    text.push_str(&format!("{DIGEST}{digest}\"}}\n"));
    text
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

/// Writes a list with one item a line, and anything else on one line.
fn write_lines(value: &Value, text: &mut String) {
    let Value::Array(items) = value else { return text.push_str(&value.to_string()) };
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&item.to_string());
    }
    text.push_str(if items.is_empty() { "]" } else { "\n]" });
}
