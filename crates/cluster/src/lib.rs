//! Access to live state: one trait, two implementations (`kube`: an API server; `directory`: a folder of YAML or a git
//! ref).
//! Only this module uses the client library.

pub mod compact;
pub mod core_kinds;
mod debug;
pub mod directory;
pub mod estimate;
mod json_patch;
pub use json_patch::merge;
pub mod kinds;
pub mod kube;
mod label_query;
pub mod managed_fields;
pub mod pages;
pub mod reviews;
pub mod server_message;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use pushback_manifest::Manifest;
use pushback_objects::ObjectExt;
use serde_json::{Value, json};

pub use kinds::{Kind, Kinds};
pub use kube::{Announce, ConnectOptions, KubeCluster, contexts};
pub use label_query::label_query;
pub use pages::{Pages, Turn, list_all};

/// A cluster, real or not. All calls may run concurrently.
#[async_trait]
pub trait Cluster: fmt::Debug + Send + Sync {
    /// Description for people: `dir:./live`, or the context and server of a kubeconfig.
    fn description(&self) -> String;

    /// Address of the API server, without credentials; `None` on a directory.
    fn server(&self) -> Option<String> {
        None
    }

    /// What it can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// The server's version; `None` on a directory.
    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError>;

    /// All kinds that it serves. Fetched once and cached.
    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError>;

    /// Fetches the kinds of one group again, after one of its CRDs was written.
    async fn rediscover(&self, group: &str) -> Result<Arc<Kinds>, ClusterError>;

    /// The server's hash of the version that it stores objects of this custom resource in: `storageVersionHash` of its
    /// discovery, which follows the definition as the server knows it. `None` if it gives none.
    async fn storage_version_hash(&self, _kind: &Kind) -> Result<Option<String>, ClusterError> {
        Ok(None)
    }

    /// One object, or `None` if it does not exist. A 403 is an error, never `None`.
    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError>;

    /// One page of a list.
    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError>;

    /// POST, for records and access reviews. The address may have no name (`generateName`, reviews).
    async fn create(&self, address: &Address, body: &Value, dry_run: bool) -> Result<Written, ClusterError>;

    /// Server-side apply as [`FIELD_MANAGER`].
    async fn apply(&self, address: &Address, body: &Value, options: ApplyOptions) -> Result<Written, ClusterError>;

    /// A JSON patch or JSON merge patch.
    async fn patch(&self, address: &Address, patch: &Patch, dry_run: bool) -> Result<Written, ClusterError>;

    /// Deletes; `Ok(None)` if the object no longer existed.
    async fn delete(&self, address: &Address, options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError>;

    /// Changes since `resource_version`. The stream ends with the connection; the caller lists and watches again.
    async fn watch(
        &self,
        query: &ListQuery,
        resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError>;

    /// Lines of a container's log. Ends with the log or, where it is followed, with the container.
    async fn logs(
        &self,
        pod: &Address,
        _query: &LogQuery,
    ) -> Result<BoxStream<'static, Result<String, ClusterError>>, ClusterError> {
        Err(ClusterError::new(ErrorKind::Unsupported, format!("{} has no log of {pod}", self.description())))
    }

    /// A lock on this machine for one app, if the cluster cannot store one (a directory).
    /// `Ok(None)`: the lock is in the app's record. `ErrorKind::Locked` while another process holds it.
    async fn local_lock(&self, _namespace: &str, _app: &str) -> Result<Option<LocalLock>, ClusterError> {
        Ok(None)
    }

    /// The folder behind it, by the path that no link is part of; `None` for a server and for what cannot be written.
    fn folder(&self) -> Option<PathBuf> {
        None
    }

    /// Config documents among its files: the policy of the existing state. An API server has none.
    async fn configs(&self) -> Result<Vec<Manifest>, ClusterError> {
        Ok(Vec::new())
    }

    /// Fails all requests that are currently queued, with [`ErrorKind::TurnedAway`]. Requests already sent, urgent
    /// ones, and later ones are not affected.
    fn turn_away(&self) {}

    /// Requests sent so far, including retries; 0 if nothing is sent.
    fn request_count(&self) -> u64 {
        0
    }
}

/// The field manager of every apply. Constant: it does not depend on the name of the binary.
pub const FIELD_MANAGER: &str = "pushback";

/// `reason` of an [`ErrorKind::Denied`] because the namespace is being deleted.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// `reason` of an [`ErrorKind::NotFound`].
pub const NOT_FOUND: &str = "NotFound";

/// `reason` where an object that is to be created is there already.
pub const ALREADY_EXISTS: &str = "AlreadyExists";

/// A local lock; released on drop.
pub struct LocalLock(Box<dyn Send + Sync>);

impl LocalLock {
    /// Wraps what releases the lock on drop.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for LocalLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = &self.0;
        f.write_str("LocalLock")
    }
}

/// What a cluster can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// It is an API server: it has defaulting, admission, field ownership, controllers and users.
    pub server: bool,
    /// It accepts writes.
    pub writable: bool,
}

/// Version of an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// As the server spells it, `v1.36.3`.
    pub text: String,
}

/// Address of an object, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Kind of the object.
    pub kind: Arc<Kind>,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name; empty if the server generates one.
    pub name: String,
    /// `status`, `scale` and so on; empty for the object itself.
    pub subresource: String,
    /// Whether its requests skip the queue.
    pub urgent: bool,
}

impl Address {
    /// Address of an object itself. The namespace is dropped for cluster-scoped kinds.
    #[must_use]
    pub fn new(kind: Arc<Kind>, namespace: &str, name: &str) -> Self {
        let namespace = if kind.namespaced { namespace.to_owned() } else { String::new() };
        Self { kind, namespace, name: name.to_owned(), subresource: String::new(), urgent: false }
    }

    /// The same address with requests that must not wait behind hundreds of others.
    #[must_use]
    pub fn urgent(self) -> Self {
        Self { urgent: true, ..self }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// What to read of a container's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Name of the container.
    pub container: String,
    /// Whether to read what the container wrote before its last restart.
    pub previous: bool,
    /// Whether to wait for what is written from now on.
    pub follow: bool,
    /// Number of lines at its end; `None` for all.
    pub lines: Option<u64>,
}

/// What to list or watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListQuery {
    /// Kind of the objects.
    pub kind: Arc<Kind>,
    /// Namespace; `None` for all namespaces.
    pub namespace: Option<String>,
    /// Label selector; empty for all.
    pub label_selector: String,
    /// Field selector; empty for all.
    pub field_selector: String,
    /// Objects per page; 0 for the server's default.
    pub limit: u32,
    /// Token from the previous page; empty for the first.
    pub continue_token: String,
    /// Whether only `metadata` is wanted. A directory returns whole objects all the same.
    pub metadata_only: bool,
}

impl ListQuery {
    /// The first page of all objects of a kind that carry a label.
    #[must_use]
    pub fn new(kind: Arc<Kind>, namespace: Option<&str>, label_selector: &str) -> Self {
        Self {
            kind,
            namespace: namespace.map(str::to_owned),
            label_selector: label_selector.to_owned(),
            field_selector: String::new(),
            limit: 500,
            continue_token: String::new(),
            metadata_only: false,
        }
    }
}

/// One page of a list. Items carry `apiVersion` and `kind`.
#[derive(Clone, Default)]
pub struct Page {
    /// Objects of the page.
    pub items: Vec<Arc<Value>>,
    /// Token for the next page; empty on the last.
    pub continue_token: String,
    /// The list's resourceVersion, to watch from.
    pub resource_version: String,
    /// How many objects follow on later pages, if the server says so.
    pub remaining: Option<u64>,
    /// Length of the server's answer in bytes.
    pub bytes: u64,
}

/// Options of an apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// Whether to take over fields from other managers.
    pub force: bool,
    /// Whether unknown and duplicate fields are errors (`fieldValidation=Strict`).
    pub strict: bool,
}

impl ApplyOptions {
    /// Asks what an apply would do: nothing is stored, the manifest wins, and unknown fields are errors.
    pub const DRY_RUN: Self = Self { dry_run: true, force: true, strict: true };

    /// The same for good.
    pub const WRITE: Self = Self { dry_run: false, ..Self::DRY_RUN };
}

/// What of an object must not have changed since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Anything: its uid and resourceVersion.
    State,
    /// That it is this object: its uid. For dry-runs of an object whose status keeps changing.
    Identity,
}

impl Guard {
    /// The body with what the live object must still have: otherwise an apply of it is refused with `Conflict`.
    #[must_use]
    pub fn of(self, body: &Value, live: &Value) -> Value {
        let mut guarded = body.clone();
        if let Some(metadata) = guarded.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), live.uid().into());
            if self == Self::State {
                metadata.insert("resourceVersion".to_owned(), live.resource_version().into());
            }
        }
        guarded
    }

    /// The operation of a JSON patch with the same effect.
    #[must_use]
    pub fn operation(self, live: &Value) -> Value {
        match self {
            Self::State => {
                json!({"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()})
            }
            Self::Identity => json!({"op": "test", "path": "/metadata/uid", "value": live.uid()}),
        }
    }
}

/// [`Guard::State`] of an apply.
#[must_use]
pub fn guarded(body: &Value, live: &Value) -> Value {
    Guard::State.of(body, live)
}

/// A patch other than an apply.
#[derive(Clone, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386. With `metadata.resourceVersion`, an outdated one is refused with `Conflict`.
    Merge(Value),
}

/// The result of a write.
#[derive(Clone)]
pub struct Written {
    /// The object as it is now (in a dry-run: as it would be).
    pub object: Arc<Value>,
    /// Whether it did not exist before (201).
    pub created: bool,
    /// The texts of the server's `Warning:` headers.
    pub warnings: Vec<String>,
}

/// The result of a delete.
#[derive(Clone, PartialEq)]
pub struct Deleted {
    /// The last state that the server returned.
    pub object: Arc<Value>,
    /// The texts of the server's `Warning:` headers.
    pub warnings: Vec<String>,
}

/// Options of a delete. Dependents are deleted after the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// uid that the object must have; empty for any.
    pub uid: String,
    /// resourceVersion that the object must have; empty for any.
    pub resource_version: String,
    /// Whether to delete at once, without a Pod's grace period.
    pub immediate: bool,
    /// Whether nothing is deleted.
    pub dry_run: bool,
}

/// One change that a watch saw.
#[derive(Clone, PartialEq)]
pub enum WatchEvent {
    /// An object exists, new or changed.
    Applied(Arc<Value>),
    /// An object was deleted; its last state.
    Deleted(Arc<Value>),
    /// Only the resourceVersion advanced.
    Bookmark(String),
}

/// An event below the trait that is worth showing; sent during a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A request is about to be retried.
    Retry {
        /// The request: `apply Deployment shop/web`.
        request: String,
        /// Why it is retried.
        reason: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Delay before the next attempt.
        delay: Duration,
    },
    /// A `Warning:` header of an answer that is not otherwise returned.
    Warning {
        /// The request.
        request: String,
        /// The server's words.
        message: String,
    },
}

/// Channel for notices.
pub type Notices = tokio::sync::mpsc::UnboundedSender<Notice>;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// No kubeconfig, no such context, unreadable folder: no request was sent.
    Configuration,
    /// No connection, or it broke and retries did not help.
    Unreachable,
    /// 401.
    Unauthorized,
    /// 403 from authorization.
    Forbidden,
    /// 404 for the object.
    NotFound,
    /// 404 for the kind: no such resource.
    UnknownKind,
    /// 409 because of resourceVersion, uid or field manager.
    Conflict,
    /// 409 AlreadyExists.
    AlreadyExists,
    /// 410: the continue token or the watch's resourceVersion is too old.
    Expired,
    /// 400, 422, or 500 for a patch that does not fit its schema: the input is wrong.
    Invalid,
    /// An admission webhook or policy, or a quota, refused.
    Denied,
    /// A webhook could not be reached.
    WebhookUnavailable,
    /// 413, or an object over etcd's limit.
    TooLarge,
    /// 429.
    Busy,
    /// 5xx.
    Server,
    /// No answer in time.
    Timeout,
    /// The answer could not be parsed.
    Protocol,
    /// This cluster does not support the operation.
    Unsupported,
    /// A file of a folder cannot be written: no room, or the disk failed.
    Disk,
    /// Another process holds the local lock.
    Locked,
    /// The request was not sent: see [`Cluster::turn_away`].
    TurnedAway,
}

impl ErrorKind {
    /// Returns whether the cluster gave no answer about the object: it must be asked again.
    #[must_use]
    pub fn is_unanswered(self) -> bool {
        matches!(self, Self::Unreachable | Self::Unauthorized | Self::Timeout | Self::Busy)
    }
}

/// An error of a cluster, with everything that an error message needs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ClusterError {
    /// Class of the error.
    pub kind: ErrorKind,
    /// A lower-case sentence that follows "failed to …: "; escaped, without secrets.
    pub message: String,
    /// HTTP status; 0 if there is none.
    pub status: u16,
    /// The server's `reason`, such as `Invalid`.
    pub reason: String,
    /// The individual causes that the server listed.
    pub causes: Vec<Cause>,
    /// Whether the request may have taken effect nevertheless.
    pub ambiguous: bool,
    /// A fact of the error's class. Boxed, because an error is returned by value.
    pub note: Option<Box<ErrorNote>>,
}

/// A fact that only errors of one class have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorNote {
    /// With `Expired`: the token with which a list goes on, on later contents.
    ContinueToken(Box<str>),
    /// With `Unreachable`: a way out, as a sentence.
    Hint(Box<str>),
}

/// One cause of a refused request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The server's reason: `FieldValueInvalid`, `FieldManagerConflict`…
    pub reason: String,
    /// Field path as the server writes it.
    pub field: String,
    /// The server's words.
    pub message: String,
}

impl ClusterError {
    /// An error without an HTTP answer.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: 0,
            reason: String::new(),
            causes: Vec::new(),
            ambiguous: false,
            note: None,
        }
    }

    /// The same error with a reason of the server's vocabulary.
    #[must_use]
    pub fn with_reason(self, reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..self }
    }

    /// Rewrites all text for people: the message, and those of its causes.
    pub fn rewrite(&mut self, rewrite: impl Fn(&str) -> String) {
        self.message = rewrite(&self.message);
        for cause in &mut self.causes {
            cause.message = rewrite(&cause.message);
        }
    }
}
