//! What a rule says about one thing: the finding, with everything that a person, a pipeline or a
//! code scanner needs. Its JSON form is stable.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use pushback_crd::order::in_order;

use crate::hex;
use crate::object::ObjectRef;
use crate::source::Position;

/// Hexadecimal digits of a fingerprint.
pub const FINGERPRINT_DIGITS: usize = 32;

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
    /// Who says the same and is left out for it, as `server/invalid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Stable name of this very finding; independent of positions and order.
    pub fingerprint: String,
    /// Findings that tell the same fact, any of which it is left out for.
    #[serde(skip)]
    pub repeats: Vec<FindingRef>,
    /// Digest of what it is about beyond the values before and after, such as both whole subschemas.
    #[serde(skip)]
    pub(crate) content: Option<[u8; 32]>,
}

/// A finding as another one refers to it, which is about the same object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingRef {
    /// Its rule.
    pub rule: String,
    /// Its check.
    pub check: String,
    /// The API version of a definition that it is about.
    pub version: Option<String>,
    /// Its field path.
    pub path: Option<String>,
}

impl FindingRef {
    /// What a finding is referred to by.
    #[must_use]
    pub fn of(finding: &Finding) -> Self {
        let Finding { rule, check, version, path, .. } = finding.clone();
        Self { rule, check, version, path }
    }
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
            also: Vec::new(),
            fingerprint: String::new(),
            repeats: Vec::new(),
            content: None,
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

    /// Binds it to what it is about beyond the values before and after. A finding that is bound to nothing is bound to
    /// its message; one whose message says numbers of objects, or times, is to be bound.
    #[must_use]
    pub fn bound_to(mut self, content: &Value) -> Self {
        self.content = Some(Sha256::digest(in_order(content)).into());
        self
    }

    /// Digest over rule, check, object without its API version, version, path, old, new, and what it is bound to:
    /// the same problem keeps its fingerprint when files move or other findings come and go, and what is accepted by its
    /// fingerprint is this very change. As long as it takes for nobody to find two changes with one fingerprint.
    #[must_use]
    pub fn compute_fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        let in_order = |value: &Option<Value>| value.as_ref().map_or_else(String::new, in_order);
        let parts = [
            self.rule.as_str(),
            &self.check,
            &self.object.group,
            &self.object.kind,
            &self.object.namespace,
            &self.object.name,
            self.version.as_deref().unwrap_or_default(),
            self.path.as_deref().unwrap_or_default(),
            &in_order(&self.old),
            &in_order(&self.new),
        ];
        let content = match &self.content {
            Some(digest) => digest.as_slice(),
            None => self.message.as_bytes(),
        };
        for part in parts.iter().map(|part| part.as_bytes()).chain([content]) {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hex::encode(&hasher.finalize()[..FINGERPRINT_DIGITS / 2])
    }

    /// How many objects it is about, as far as they were counted.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.live_objects.as_ref().map_or(0, |live| live.affected)
    }
}
