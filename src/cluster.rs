//! The seam to live state: one trait, two sides (`kube`: an API server; `directory`: a folder of YAML or a git ref).
//! Nothing outside this room names the client library.

mod debug;
pub mod directory;
pub mod kinds;
pub mod kube;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;

pub use kinds::{Kind, Kinds};
pub use kube::{Announce, ConnectOptions, KubeCluster};

use crate::manifest::Manifest;

/// A cluster, real or not. Every call may run concurrently with every other.
#[async_trait]
pub trait Cluster: fmt::Debug + Send + Sync {
    /// How it is shown to people: `dir:./live`, or the context and server of a kubeconfig.
    fn description(&self) -> String;

    /// What it can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// The server's version; `None` on a directory.
    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError>;

    /// All kinds that it serves. Read once and kept.
    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError>;

    /// Reads the kinds of one group anew, after a CRD of it was written.
    async fn rediscover(&self, group: &str) -> Result<Arc<Kinds>, ClusterError>;

    /// One object, or `None` where it does not exist. A 403 is an error, never `None`.
    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError>;

    /// One page of a list.
    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError>;

    /// POST: records, access reviews. The address' name may be empty (`generateName`, reviews).
    async fn create(&self, address: &Address, body: &Value, dry_run: bool) -> Result<Written, ClusterError>;

    /// Server-side apply as [`FIELD_MANAGER`].
    async fn apply(&self, address: &Address, body: &Value, options: ApplyOptions) -> Result<Written, ClusterError>;

    /// A JSON patch or JSON merge patch.
    async fn patch(&self, address: &Address, patch: &Patch, dry_run: bool) -> Result<Written, ClusterError>;

    /// Deletes; `Ok(None)` where the object was gone already.
    async fn delete(&self, address: &Address, options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError>;

    /// Changes from `resource_version` on. The stream ends with the connection; the caller lists and watches again.
    async fn watch(
        &self,
        query: &ListQuery,
        resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError>;

    /// A lock of this machine for one app, where the cluster has no place for one (a directory).
    /// `Ok(None)`: the lock lives in the app's record. `ErrorKind::Locked` while another process holds it.
    async fn local_lock(&self, _namespace: &str, _app: &str) -> Result<Option<LocalLock>, ClusterError> {
        Ok(None)
    }

    /// Config documents that lie among its files: the policy of what is there already. An API server has none.
    async fn configs(&self) -> Result<Vec<Manifest>, ClusterError> {
        Ok(Vec::new())
    }

    /// Sends back what waits to be sent at this moment, with [`ErrorKind::TurnedAway`]. What is under way already, what
    /// is urgent and what comes later goes as usual.
    fn turn_away(&self) {}

    /// Requests sent so far, repetitions included; 0 where nothing is sent.
    fn request_count(&self) -> u64 {
        0
    }
}

/// The field manager of every apply. A constant: it never follows the binary's file name.
pub const FIELD_MANAGER: &str = "pushback";

/// `reason` of a [`ErrorKind::Denied`] whose namespace is going away.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Held until dropped.
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
    /// It is an API server: it defaults, admits, owns fields, runs controllers, knows users.
    pub server: bool,
    /// It can be written.
    pub writable: bool,
}

/// Version of an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
    /// As the server spells it, `v1.36.3`.
    pub text: String,
}

/// One object, or a place for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name; empty where the server makes one.
    pub name: String,
    /// `status`, `scale`…; empty for the object itself.
    pub subresource: String,
    /// Requests about it do not queue behind others.
    pub urgent: bool,
}

impl Address {
    /// Address of an object itself. The namespace is dropped for cluster-scoped kinds.
    #[must_use]
    pub fn new(kind: Arc<Kind>, namespace: &str, name: &str) -> Self {
        let namespace = if kind.namespaced { namespace.to_owned() } else { String::new() };
        Self { kind, namespace, name: name.to_owned(), subresource: String::new(), urgent: false }
    }

    /// The same, for requests that must not wait until hundreds of others have been answered.
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

/// What to list or watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListQuery {
    /// Kind.
    pub kind: Arc<Kind>,
    /// Namespace; `None` for all.
    pub namespace: Option<String>,
    /// Label selector; empty for all.
    pub label_selector: String,
    /// Field selector; empty for all.
    pub field_selector: String,
    /// Objects a page; 0 leaves it to the server.
    pub limit: u32,
    /// Where the last page ended; empty for the first.
    pub continue_token: String,
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
        }
    }
}

/// One page of a list. Items carry `apiVersion` and `kind`.
#[derive(Clone, Default)]
pub struct Page {
    /// Objects.
    pub items: Vec<Arc<Value>>,
    /// Where the next page starts; empty at the end.
    pub continue_token: String,
    /// The list's resourceVersion, to watch from.
    pub resource_version: String,
    /// How long the server's answer was.
    pub bytes: u64,
}

/// Pages of one list, at 500 objects each more than any cluster holds. A server that still has another one has no end.
pub const MOST_PAGES: u32 = 10_000;

/// Pages in a row that bring nothing: a server fills each page but the last.
const MOST_EMPTY_PAGES: u32 = 20;

/// Objects of one list that are kept.
const MOST_OBJECTS: usize = 1_000_000;

/// Bytes of the answers to one list whose objects are looked at one by one: as much as etcd is made for.
const MOST_BYTES: u64 = 8 << 30;

/// The same where the objects are kept, which takes several times as much memory.
const MOST_KEPT_BYTES: u64 = 2 << 30;

/// Keeps count of the pages of a list, those of starts anew too, so that it has an end.
#[derive(Debug)]
pub struct Paging {
    pages: u32,
    empty: u32,
    bytes: u64,
    most_bytes: u64,
}

impl Paging {
    /// Of a list whose objects are not kept.
    #[must_use]
    pub fn passing() -> Self {
        Self { pages: 0, empty: 0, bytes: 0, most_bytes: MOST_BYTES }
    }

    fn kept() -> Self {
        Self { most_bytes: MOST_KEPT_BYTES, ..Self::passing() }
    }

    /// Takes note of a page after which another one is to come.
    ///
    /// # Errors
    /// `Protocol` where the list does not end, or has more bytes than can be taken in.
    pub fn next(&mut self, page: &Page) -> Result<(), ClusterError> {
        self.pages += 1;
        self.empty = if page.items.is_empty() { self.empty + 1 } else { 0 };
        self.bytes = self.bytes.saturating_add(page.bytes);
        if self.bytes > self.most_bytes {
            return Err(endless(&format!("it has more than {} MiB", self.most_bytes >> 20)));
        }
        if self.pages >= MOST_PAGES {
            return Err(endless(&format!("it has more than {MOST_PAGES} pages")));
        }
        if self.empty >= MOST_EMPTY_PAGES {
            return Err(endless(&format!("{MOST_EMPTY_PAGES} pages in a row are empty")));
        }
        Ok(())
    }
}

fn endless(how: &str) -> ClusterError {
    ClusterError::new(ErrorKind::Protocol, format!("the list does not end: {how}"))
}

/// Lists all pages. An expired continue token starts the list anew, at most three times.
///
/// # Errors
/// The error of the page that failed; `Protocol` where there is no last page.
pub async fn list_all(cluster: &dyn Cluster, query: &ListQuery) -> Result<Page, ClusterError> {
    list_within(cluster, query, Paging::kept()).await
}

async fn list_within(cluster: &dyn Cluster, query: &ListQuery, mut paging: Paging) -> Result<Page, ClusterError> {
    let mut restarts = 0;
    'restart: loop {
        let mut all = Page::default();
        let mut query = query.clone();
        loop {
            match cluster.list(&query).await {
                Ok(page) if page.continue_token.is_empty() => {
                    all.items.extend(page.items);
                    all.resource_version = page.resource_version;
                    return Ok(all);
                }
                Ok(page) => {
                    paging.next(&page)?;
                    all.items.extend(page.items);
                    if all.items.len() > MOST_OBJECTS {
                        return Err(endless(&format!("it has more than {MOST_OBJECTS} objects")));
                    }
                    query.continue_token = page.continue_token;
                }
                Err(error) if error.kind == ErrorKind::Expired && restarts < 3 => {
                    restarts += 1;
                    continue 'restart;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// How to apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Nothing is stored.
    pub dry_run: bool,
    /// Take fields over from other managers.
    pub force: bool,
    /// `fieldValidation=Strict`: unknown and duplicate fields are errors.
    pub strict: bool,
}

/// A patch that is not an apply.
#[derive(Clone, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386. With `metadata.resourceVersion` in it, a stale one is refused with `Conflict`.
    Merge(Value),
}

/// What a write came to.
#[derive(Clone)]
pub struct Written {
    /// The object as it is now (or would be).
    pub object: Arc<Value>,
    /// 201: it did not exist before.
    pub created: bool,
    /// The server's `Warning:` headers.
    pub warnings: Vec<String>,
}

/// What a delete came to.
#[derive(Clone, PartialEq)]
pub struct Deleted {
    /// The last state that the server showed.
    pub object: Arc<Value>,
    /// The server's `Warning:` headers.
    pub warnings: Vec<String>,
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only this very object; empty for any.
    pub uid: String,
    /// Only in this state; empty for any.
    pub resource_version: String,
    /// `Background` (the default), `Foreground` or `Orphan`.
    pub propagation: Propagation,
    /// At once, without the time that a Pod gets to end.
    pub immediate: bool,
    /// Nothing is deleted.
    pub dry_run: bool,
}

/// What happens to the objects that an object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Deleted afterwards.
    #[default]
    Background,
    /// Deleted before.
    Foreground,
    /// Left.
    Orphan,
}

/// One change that a watch saw.
#[derive(Clone, PartialEq)]
pub enum WatchEvent {
    /// An object is there, new or changed.
    Applied(Arc<Value>),
    /// An object is gone; its last state.
    Deleted(Arc<Value>),
    /// Only the resourceVersion moved on.
    Bookmark(String),
}

/// Something worth showing that happened below the trait; sent while a call goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A request is going to be sent again.
    Retry {
        /// What was tried: `apply Deployment shop/web`.
        request: String,
        /// Why.
        reason: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits.
        delay: Duration,
    },
    /// A `Warning:` header of an answer that has no other way to the user.
    Warning {
        /// What was asked.
        request: String,
        /// The server's words.
        message: String,
    },
}

/// Where notices go.
pub type Notices = tokio::sync::mpsc::UnboundedSender<Notice>;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// No kubeconfig, no such context, unreadable folder: nothing was asked.
    Configuration,
    /// No connection, or it broke and no retry helped.
    Unreachable,
    /// 401.
    Unauthorized,
    /// 403 by authorization.
    Forbidden,
    /// 404 for the object.
    NotFound,
    /// 404 for the kind: no such resource.
    UnknownKind,
    /// 409 by resourceVersion, uid or field manager.
    Conflict,
    /// 409 AlreadyExists.
    AlreadyExists,
    /// 410: the continue token or the watch's resourceVersion is too old.
    Expired,
    /// 400, 422 and the 500 of a patch that does not fit its schema: the input is wrong.
    Invalid,
    /// An admission webhook or policy, or a quota, refused.
    Denied,
    /// A webhook could not be called.
    WebhookUnavailable,
    /// 413, or an object over etcd's limit.
    TooLarge,
    /// 429.
    Busy,
    /// 5xx.
    Server,
    /// No answer in time.
    Timeout,
    /// The answer could not be understood.
    Protocol,
    /// This cluster cannot do that.
    Unsupported,
    /// Another process holds the local lock.
    Locked,
    /// It was not sent: see [`Cluster::turn_away`].
    TurnedAway,
}

/// An error of a cluster, with everything that a message about it needs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ClusterError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// A lower-case sentence that reads after "failed to …: "; escaped, without secrets.
    pub message: String,
    /// HTTP status; 0 where there is none.
    pub status: u16,
    /// The server's reason word, such as `Invalid`.
    pub reason: String,
    /// The single causes that the server listed.
    pub causes: Vec<Cause>,
    /// Whether the request may have had its effect all the same.
    pub ambiguous: bool,
}

/// One cause of a refused request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldManagerConflict`…
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
        Self { kind, message: message.into(), status: 0, reason: String::new(), causes: Vec::new(), ambiguous: false }
    }

    /// Rewrites everything in it that people read: its message and its causes'.
    pub fn rewrite(&mut self, rewrite: impl Fn(&str) -> String) {
        self.message = rewrite(&self.message);
        for cause in &mut self.causes {
            cause.message = rewrite(&cause.message);
        }
    }
}
