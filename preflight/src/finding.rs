//! What a rule says about one thing: the finding, with everything that a person, a pipeline or a
//! code scanner needs. Its JSON form is stable.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::object::ObjectRef;
use crate::source::Position;

/// What a rule proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Proved unsafe, with a witness where the rule can give one.
    Breaking,
    /// Not provable either way; the message says what blocked the proof.
    Unknown,
    /// Worth knowing; never refuses.
    Change,
}

/// How much a finding weighs in this run: from its verdict, the rule's `mode` and `failMode`, and waivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Refuses.
    Error,
    /// Shown, does not refuse.
    Warning,
    /// For information.
    Info,
}

/// How many stored objects a finding touches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveObjects {
    /// Objects that are affected.
    pub affected: u64,
    /// Objects that were looked at.
    pub examined: u64,
    /// Some of the affected ones, `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// One thing that a rule found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Rule, such as `CRDUpgradeSafety`; `server` for what the API server refused.
    pub rule: String,
    /// Check inside the rule, such as `scope`.
    pub check: String,
    /// What was proved.
    pub verdict: Verdict,
    /// What that means in this run.
    pub severity: Severity,
    /// The object it is about.
    pub object: ObjectRef,
    /// Where it stands in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// API version of a CRD that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Field path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// Value after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// One sentence, without the object's name and without a full stop.
    pub message: String,
    /// `rejected`, `pruned`, `altered` or `unreadable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// `create`, `edit`, `read`…: what users can no longer do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// An object that was fine before and is not after. Shared by all copies of the finding: it may be large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Arc<Value>>,
    /// How many stored objects are touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_objects: Option<LiveObjects>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The reason of the waiver that covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// Stable name of this very finding; independent of positions and order.
    pub fingerprint: String,
}

impl Finding {
    /// A finding with the fields that every one has; severity and fingerprint are set when it is judged.
    #[must_use]
    pub fn new(rule: &str, check: &str, verdict: Verdict, object: ObjectRef, message: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            check: check.to_owned(),
            verdict,
            severity: Severity::Info,
            object,
            position: None,
            version: None,
            path: None,
            old: None,
            new: None,
            message: message.into(),
            effect: None,
            blocks: None,
            witness: None,
            live_objects: None,
            remedy: None,
            waived: None,
            fingerprint: String::new(),
        }
    }

    /// Sets where it stands.
    #[must_use]
    pub fn at(mut self, position: Option<Position>) -> Self {
        self.position = position;
        self
    }

    /// Sets the field path.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the values before and after.
    #[must_use]
    pub fn values(mut self, old: Option<Value>, new: Option<Value>) -> Self {
        self.old = old;
        self.new = new;
        self
    }

    /// Sets what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Digest over rule, check, object without its API version, version, path, old and new:
    /// the same problem keeps its fingerprint when files move or other findings come and go.
    #[must_use]
    pub fn compute_fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        let null = Value::Null;
        let parts = [
            self.rule.as_str(),
            &self.check,
            &self.object.group,
            &self.object.kind,
            &self.object.namespace,
            &self.object.name,
            self.version.as_deref().unwrap_or_default(),
            self.path.as_deref().unwrap_or_default(),
            &self.old.as_ref().unwrap_or(&null).to_string(),
            &self.new.as_ref().unwrap_or(&null).to_string(),
        ];
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}
