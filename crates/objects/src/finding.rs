//! A finding: what a rule says about one object, with everything that a person, a pipeline or a code scanner needs.
//! Its JSON form is stable.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use pushback_crd::order::in_order;

use crate::hex;
use crate::object::ObjectRef;
use crate::remedy::Remedy;
use crate::source::Position;

/// Name under which rejections by the API server are reported. Not a rule: it cannot be selected or waived.
pub const SERVER: &str = "server";

/// Rule name of findings about stored objects that `--storage` cannot carry over: nothing is written, whatever is accepted.
pub const STORAGE: &str = "storage";

/// Name under which unused and expired waivers are reported. Not a rule.
pub const WAIVERS: &str = "preflightWaivers";

/// Number of hexadecimal digits in a fingerprint.
pub const FINGERPRINT_DIGITS: usize = 32;

/// What a rule proved, after its own settings: a check that is set to `warn` makes a change worth knowing of a breaking one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Proved unsafe, with a witness where the rule can give one.
    Breaking,
    /// Not provable either way; the message says what blocked the proof.
    Unknown,
    /// Worth knowing; never refuses.
    #[default]
    Change,
}

/// The weight of a finding in this run, from its verdict, the rule's `mode` and `failMode`, and waivers; the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Refuses the run.
    Error,
    /// Reported, does not refuse.
    Warning,
    /// For information only.
    #[default]
    Info,
}

impl Severity {
    /// Its name in texts: `error`, `warning`, `info`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Number of stored objects that a finding affects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveObjects {
    /// Number of affected objects.
    pub affected: u64,
    /// Number of examined objects.
    pub examined: u64,
    /// True if `affected` is the highest possible number: a read shows defaults as if they were stored.
    #[serde(default, rename = "upTo", skip_serializing_if = "std::ops::Not::not")]
    pub up_to: bool,
    /// Some of the affected objects, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl LiveObjects {
    /// Counts objects exactly.
    #[must_use]
    pub fn exactly(affected: u64, examined: u64, names: Vec<String>) -> Self {
        Self { affected, examined, up_to: false, names }
    }
}

/// What decided the severity of a finding instead of its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// What decided.
    pub by: Decider,
    /// The verdict that it overrode.
    pub was: Verdict,
}

/// What can decide instead of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decider {
    /// The objects that are there, none of which is affected.
    LiveObjects,
}

/// Evidence of use of a version: what `managedFields` says about who writes in it, and what the definition says about
/// what is stored in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionUse {
    /// Number of objects that a manager has written in the version.
    pub objects: u64,
    /// Number of examined objects.
    pub examined: u64,
    /// The managers with the most objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<VersionWriter>,
    /// Whether there are more managers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_writers: bool,
    /// The versions that objects may be stored in, as the definition lists them.
    pub stored_versions: Vec<String>,
}

/// A field manager that writes in a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionWriter {
    /// Name of the manager.
    pub manager: String,
    /// Number of objects that it has written in the version.
    pub objects: u64,
    /// Time of its last write in the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_write: Option<String>,
}

/// One problem, or one noteworthy change, that a rule found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Name of the rule, such as `CRDUpgradeSafety`; `server` for what the API server rejected.
    pub rule: String,
    /// Check within the rule, such as `scope`.
    pub check: String,
    /// What was proved.
    pub verdict: Verdict,
    /// The weight of the verdict in this run.
    pub severity: Severity,
    /// The object that the finding is about.
    pub object: ObjectRef,
    /// The object that a controller makes this CRD from, if the run changes that object and not the CRD itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<ObjectRef>,
    /// Position in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// API version within a CRD, if the finding is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Path of the field, if the finding is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Value before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// Value after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// One sentence, without the object's name and without a full stop.
    pub message: String,
    /// Effect on stored objects: `rejected`, `pruned`, `altered` or `unreadable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// What users can no longer do: `create`, `edit`, `read`…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// An object that was valid before and is not after. Shared by all copies of the finding, as it may be large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Arc<Value>>,
    /// What the new definition does to the witness, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offence: Option<Offence>,
    /// For an unknown: what blocked the proof, as one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// How many stored objects are affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_objects: Option<LiveObjects>,
    /// True if it affects only values that the server lets through by a quirk: it warns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unusual: bool,
    /// What decided the severity instead of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// Who still uses the version that the finding is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_use: Option<VersionUse>,
    /// What the user can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The ways out, as data: what is best for who deploys first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// Reason of the waiver that covers the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// Omitted findings that report the same problem, such as `server/invalid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Stable identifier of this finding; independent of positions and order.
    pub fingerprint: String,
    /// Findings that report the same fact; this one is omitted if any of them is present.
    #[serde(skip)]
    pub repeats: Vec<FindingRef>,
    /// Fingerprints of the findings about clients that can no longer use its version; they need the user's own waiver.
    #[serde(skip)]
    pub client_waivers: Vec<String>,
    /// Value of `liveObjects` under which it would be a warning, as no object on the API server is affected.
    #[serde(skip)]
    pub passes_under: Option<&'static str>,
    /// The same once the affected objects are corrected, if the value in force would refuse even then.
    #[serde(skip)]
    pub passes_once_corrected: Option<&'static str>,
    /// Digest of what the finding depends on beyond the old and new value, such as both whole subschemas.
    #[serde(skip)]
    pub content: Option<[u8; 32]>,
    /// Digest of what the finding shares with others of one reason besides its values, such as both subschemas of a
    /// field; unlike `content`, it says nothing about the place.
    #[serde(skip)]
    pub reason: Option<[u8; 32]>,
}

/// What happens to a witness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offence {
    /// The value concerned, as a JSON pointer into the witness; a missing value is named too.
    pub pointer: String,
    /// The server's error, or a description of the damage.
    pub message: String,
}

/// A reference to another finding about the same object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingRef {
    /// Name of the rule.
    pub rule: String,
    /// Name of the check.
    pub check: String,
    /// API version within a definition.
    pub version: Option<String>,
    /// Path of the field.
    pub path: Option<String>,
}

impl Finding {
    /// Whether a waiver can cover it: what the API server refuses itself cannot be accepted.
    #[must_use]
    pub fn is_waivable(&self) -> bool {
        let is_of_the_server = |also: &String| also.split('/').next() == Some(SERVER);
        ![SERVER, STORAGE, WAIVERS].contains(&self.rule.as_str()) && !self.also.iter().any(is_of_the_server)
    }

    /// A finding with the mandatory fields; severity and fingerprint are set when it is judged.
    #[must_use]
    pub fn new(rule: &str, check: &str, verdict: Verdict, object: ObjectRef, message: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            check: check.to_owned(),
            verdict,
            object,
            message: message.into(),
            ..Self::default()
        }
    }

    /// Sets the position in the input.
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

    /// Sets the values before and after the change.
    #[must_use]
    pub fn values(mut self, old: Option<Value>, new: Option<Value>) -> Self {
        self.old = old;
        self.new = new;
        self
    }

    /// Sets what the user can do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Binds the fingerprint to content beyond the old and new value. Without it, the fingerprint covers the message,
    /// so a finding whose message contains counts or times must call this.
    #[must_use]
    pub fn bound_to(mut self, content: &Value) -> Self {
        self.content = Some(Sha256::digest(in_order(content)).into());
        self
    }

    /// Names what the finding shares with others of one reason, such as both schemas of a field.
    #[must_use]
    pub fn shares(mut self, reason: &Value) -> Self {
        self.reason = Some(Sha256::digest(in_order(reason)).into());
        self
    }

    /// Digest of rule, check, object without its API version, version, path, old, new, and the bound content. The same
    /// problem keeps its fingerprint if files move or other findings appear, and accepting a fingerprint accepts
    /// exactly this change. It is long enough to make a collision infeasible.
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

    /// Number of affected objects, as far as they were counted.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.live_objects.as_ref().map_or(0, |live| live.affected)
    }
}
