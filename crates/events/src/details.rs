//! What events carry for renderers that show a run in another tool's words. Not part of the JSON form.

use std::sync::Arc;

use pushback_manifest::collect::Problem;
use pushback_objects::{Finding, ObjectRef};
use pushback_preflight::Operation;
use serde_json::Value;

use super::{Awaited, Millis};

/// The server that a run works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address, without credentials.
    pub server: String,
    /// Names of its nodes, the oldest first; empty if they may not be listed.
    pub nodes: Vec<String>,
}

/// Why a run ended without success.
#[derive(Clone, Debug, PartialEq)]
pub enum EndCause {
    /// The user declined.
    Declined,
    /// The input ended before an answer.
    NoAnswer,
    /// Objects belong to other apps.
    Ownership(Vec<Owned>),
    /// There is no such app.
    NoApp(MissingApp),
    /// There is no such app to rename.
    NoAppToRename(MissingApp),
    /// The record has this label with another value.
    RecordLabel(String),
    /// A rename without a new name.
    NoNewName,
    /// The input has no object.
    Empty,
    /// There is no `-f`.
    NoInputs,
    /// `--filter-age` is no age.
    FilterAge,
    /// The directory of a group cannot be read.
    NoDirectory(String),
    /// There is no such file: its name in the error.
    NoFile(String),
    /// The record cannot be created under its new name: what the cluster says.
    NoNewRecord(String),
    /// Objects of the input lack what every object has.
    Invalid(Vec<Problem>),
    /// Objects are where nothing may be written.
    OutOfBounds(Vec<OutOfBounds>),
    /// `--preflight` names a rule that does not exist.
    UnknownRule(String),
    /// The Config names a rule that does not exist.
    UnknownRuleInConfig(String),
    /// Change rules contradict each other: the objects on the cycle, the first one again at the end.
    Cycle(Vec<ObjectRef>),
    /// The cluster has no such kind: API version and kind.
    UnknownKind(String, String),
    /// Waiting took too long.
    TimedOut {
        /// The limit.
        after: Millis,
        /// Whether it is that of one object, not of the run.
        of_object: bool,
    },
    /// The server or a rule refuses.
    Refused {
        /// Why.
        findings: Vec<Finding>,
        /// What the server said about each object, in the order of their changes.
        said: Vec<Said>,
        /// What could not be asked: the rule, and why.
        unable: Vec<(String, String)>,
    },
}

/// An app that does not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingApp {
    /// Its name.
    pub app: String,
    /// Namespace of its record.
    pub namespace: String,
    /// Other namespaces with an app of this name.
    pub elsewhere: Vec<String>,
}

/// An object that is waited for, as it was seen last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenObject {
    /// The object.
    pub live: Option<Arc<Value>>,
    /// The condition by which a wait rule judges it.
    pub matched: Option<Box<MatchedCondition>>,
    /// ReplicaSets and Pods below it, while it is waited for.
    pub below: Vec<Arc<Value>>,
}

/// The condition of an object by which a wait rule judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCondition {
    /// What the rule takes it for.
    pub meaning: ConditionMeaning,
    /// `type`.
    pub name: String,
    /// `status`.
    pub status: String,
    /// `reason`; can be empty.
    pub reason: String,
    /// `message`, shortened; can be empty.
    pub message: String,
}

/// What a condition says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionMeaning {
    /// It has failed.
    Failure,
    /// It is ready.
    Success,
    /// Its dependents may proceed.
    Unblock,
}

/// An object where nothing may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The object.
    pub object: ObjectRef,
    /// Its file.
    pub file: String,
    /// Which object of the file it is, from 1.
    pub document: usize,
}

/// What the server said of a write that it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The object.
    pub object: ObjectRef,
    /// The write.
    pub operation: Operation,
    /// The server's words, without the object's name before them.
    pub message: String,
    /// The server's reason, such as `Invalid`.
    pub reason: String,
}

/// An object of another app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The object.
    pub object: ObjectRef,
    /// The app, and the namespace of its record; `None` if only its label is known.
    pub app: Option<(String, String)>,
    /// The label that says so, `key=value`; empty if a record does.
    pub label: String,
}

/// Both sides of a change as a tool sees them that applies whole objects: what it applied last, and what it applies
/// now, each with the metadata of the live object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whole {
    /// The old side; `None` for an object that does not exist.
    pub old: Option<Value>,
    /// The new side; `None` for an object that is deleted.
    pub new: Option<Value>,
    /// How many changes come before it on the longest way to it.
    pub wave: usize,
    /// Creation time of the live object, RFC 3339; empty if there is none.
    pub created: String,
    /// What is done differently: `fallback on replace`, `orphan`.
    pub strategy: String,
    /// What is waited for, if anything.
    pub awaited: Option<Awaited>,
    /// The live object, unless it has values that are masked.
    pub live: Option<Arc<Value>>,
    /// Whether the live object is ready as far as the run can tell.
    pub is_ready: bool,
}
