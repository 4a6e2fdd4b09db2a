//! A cluster behind an API server. Requests are built here and sent through the client library's layers (credentials,
//! TLS settings), so that status codes, warnings and bodies are available unmodified.

mod client;
mod connect;
mod contact;
mod credentials;
mod discovery;
mod endpoint;
mod error;
mod exec;
/// Entry points of the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing;
mod kubeconfig;
mod lenient;
mod limit;
mod logs;
mod plain;
mod request;
mod retry;
mod transport;
mod watch;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::Timestamp;
use pushback_objects::object::ObjectExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OnceCell};

pub use self::connect::{Announce, ConnectOptions};
use self::credentials::Authenticator;
use self::endpoint::Endpoint;
pub use self::kubeconfig::contexts;
use self::lenient::Lenient;
pub use self::limit::Concurrency;
use self::plain::PlainWrites;
use self::request::Call;
pub use self::retry::RetryLimits;
use self::transport::{Answer, Server, Transport};
use super::compact::{Compact, CompactMap};
use super::estimate::{Going, written};
use super::{
    Address, ApplyOptions, Capabilities, Cluster, ClusterError, DeleteOptions, Deleted, ErrorKind, FIELD_MANAGER, Kind,
    Kinds, ListQuery, LogQuery, Notices, Page, Patch, ServerVersion, WatchEvent, Written, json_patch,
};

/// An API server, and what is known about it.
#[derive(Debug)]
pub struct KubeCluster {
    description: String,
    /// Its address, without credentials.
    server: String,
    default_namespace: String,
    transport: Transport,
    version: OnceCell<ServerVersion>,
    kinds: Mutex<Option<Arc<Kinds>>>,
    plain: PlainWrites,
    /// What is known of objects that server-side apply refuses; `None` if they are refused.
    lenient: Option<Lenient>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMetadata,
    items: Option<Vec<CompactMap>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    r#continue: Option<String>,
    resource_version: Option<String>,
    remaining_item_count: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VersionAnswer {
    major: String,
    minor: String,
    git_version: String,
}

impl KubeCluster {
    /// Reads the configuration, obtains credentials, and builds a client. Nothing is sent to the server yet.
    ///
    /// # Errors
    /// `Configuration` if kubeconfig, context, credentials or proxy cannot be used; `Unauthorized` if a credential
    /// plugin failed.
    pub async fn connect(
        options: &ConnectOptions,
        notices: Option<Notices>,
        announce: &Announce<'_>,
    ) -> Result<Self, ClusterError> {
        let mut target = kubeconfig::resolve(options)?;
        // The timeout of an attempt also covers connecting; the client's own would hide that the server was silent.
        target.config.connect_timeout = None;
        let endpoint = Endpoint::of(&target.config);
        let uri = &target.config.cluster_url;
        // Without user information, which an address can contain.
        let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let server =
            format!("{}://{}{port}{}", uri.scheme_str().unwrap_or("https"), uri.host().unwrap_or(""), uri.path());
        let server = server.trim_end_matches('/').to_owned();
        let description = format!("{} ({server})", target.context);
        let default_namespace = target.config.default_namespace.clone();
        let authenticator = Authenticator::open(target.config, target.plugin, options.now, announce).await?;
        let transport = Transport::new(
            authenticator,
            Server { address: server.clone(), origin: target.origin, endpoint },
            target.secrets,
            options,
            notices,
        );
        let lenient = (!options.strict).then(Lenient::default);
        Ok(Self { server, lenient, ..Self::new(description, default_namespace, transport) })
    }

    fn new(description: String, default_namespace: String, transport: Transport) -> Self {
        Self {
            description,
            server: String::new(),
            default_namespace,
            transport,
            version: OnceCell::new(),
            kinds: Mutex::new(None),
            plain: PlainWrites::default(),
            lenient: None,
        }
    }

    /// The namespace of the context, `default` if it names none.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Requests sent so far, by verb and resource (`apply deployments.apps`), including retries.
    #[must_use]
    pub fn requests(&self) -> BTreeMap<String, u64> {
        self.transport.counts()
    }

    /// The result of a plain write after a patch was forbidden. Where that is forbidden too, the first answer says more.
    fn instead(
        &self,
        address: &Address,
        forbidden: ClusterError,
        plain: Result<Written, ClusterError>,
    ) -> Result<Written, ClusterError> {
        match plain {
            Ok(mut written) => {
                written.warnings.extend(self.plain.remember(address));
                Ok(written)
            }
            Err(error) if error.kind == ErrorKind::Forbidden => Err(forbidden),
            Err(error) => Err(error),
        }
    }

    async fn apply_as_given(
        &self,
        address: &Address,
        body: &Value,
        options: ApplyOptions,
    ) -> Result<Written, ClusterError> {
        if self.plain.serve(address) {
            return self.apply_plainly(address, body, options).await;
        }
        let call = Call::apply(address, body, options)?;
        match self.transport.send(&call).await {
            Ok(answer) => {
                let created = answer.status == 201 || (answer.lost_before && was_created_meanwhile(&answer));
                Ok(Written { object: answer.body.kept(), created, warnings: answer.warnings })
            }
            Err(error) if plain::may_serve(&error) => {
                self.instead(address, error, self.apply_plainly(address, body, options).await)
            }
            Err(error) => Err(error),
        }
    }

    /// Applies an object although it has fields that its kind lacks, or list items with the same key.
    async fn apply_leniently(
        &self,
        lenient: &Lenient,
        address: &Address,
        body: &Value,
        options: ApplyOptions,
    ) -> Result<Written, ClusterError> {
        let mut exception = lenient.of(address);
        let mut body = body.clone();
        exception.leave_out(&mut body);
        loop {
            let answer = match exception.is_written_whole() {
                true => self.apply_plainly(address, &body, ApplyOptions { strict: false, ..options }).await,
                false => self.apply_as_given(address, &body, options).await,
            };
            match answer {
                Ok(mut written) => {
                    exception.tell(&mut written.warnings);
                    lenient.remember(address, exception);
                    return Ok(written);
                }
                Err(error) if exception.learn(&error, &mut body) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what an apply does with create and update.
    async fn apply_plainly(
        &self,
        address: &Address,
        body: &Value,
        options: ApplyOptions,
    ) -> Result<Written, ClusterError> {
        let mut body = body.clone();
        let (uid, version) =
            (plain::take_metadata(&mut body, "uid"), plain::take_metadata(&mut body, "resourceVersion"));
        let live = match self.get(address).await {
            // Who may only create may not look.
            Err(error) if error.kind == ErrorKind::Forbidden => None,
            live => live?,
        };
        let Some(live) = live else {
            if !uid.is_empty() {
                return Err(ClusterError::new(ErrorKind::Conflict, format!("{address} no longer exists")));
            }
            return self.create(address, &body, options.dry_run).await;
        };
        let has_moved = |expected: &str, is: &str| !expected.is_empty() && expected != is;
        if has_moved(&uid, live.uid()) || has_moved(&version, live.resource_version()) {
            return Err(ClusterError::new(ErrorKind::Conflict, format!("{address} has changed meanwhile")));
        }
        match self.replace(address, &written(&live, &body, Going::All), options).await {
            Err(error) if error.kind == ErrorKind::Invalid => {
                self.replace(address, &written(&live, &body, Going::Items), options).await
            }
            other => other,
        }
    }

    /// Does what a patch does with an update.
    async fn patch_plainly(&self, address: &Address, patch: &Patch, dry_run: bool) -> Result<Written, ClusterError> {
        let Some(live) = self.get(address).await? else {
            return Err(ClusterError::new(ErrorKind::NotFound, format!("{address} does not exist")));
        };
        let mut wanted = Value::clone(&live);
        match patch {
            Patch::Json(operations) => json_patch::apply(&mut wanted, operations)
                .map_err(|error| ClusterError { kind: ErrorKind::Conflict, ..error })?,
            Patch::Merge(merged) => json_patch::merge(&mut wanted, merged),
        }
        if wanted.resource_version() != live.resource_version() {
            return Err(ClusterError::new(ErrorKind::Conflict, format!("{address} has changed meanwhile")));
        }
        self.replace(address, &wanted, ApplyOptions { dry_run, ..ApplyOptions::WRITE }).await
    }

    /// Writes a whole object, which has the resourceVersion of what it replaces.
    async fn replace(&self, address: &Address, wanted: &Value, options: ApplyOptions) -> Result<Written, ClusterError> {
        let answer = self.transport.send(&Call::replace(address, wanted, options)?).await?;
        Ok(Written { object: answer.body.kept(), created: false, warnings: answer.warnings })
    }

    /// A page of a list; with fewer objects if that many are too large to read at once.
    async fn page(&self, query: &ListQuery) -> Result<(List, usize), ClusterError> {
        let mut query = query.clone();
        loop {
            match self.transport.json_measured(&Call::list(&query)?).await {
                Err(error) if error.kind == ErrorKind::TooLarge && error.status == 0 && query.limit > 1 => {
                    query.limit = query.limit.div_ceil(10);
                }
                other => return other,
            }
        }
    }
}

#[async_trait]
impl Cluster for KubeCluster {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn server(&self) -> Option<String> {
        Some(self.server.clone())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { server: true, writable: true }
    }

    fn turn_away(&self) {
        self.transport.turn_away();
    }

    fn request_count(&self) -> u64 {
        self.requests().values().sum()
    }

    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        let version = self.version.get_or_try_init(async || {
            let answer: VersionAnswer = self.transport.json(&Call::read_path("/version", "application/json")).await?;
            Ok::<_, ClusterError>(ServerVersion {
                major: leading_number(&answer.major),
                minor: leading_number(&answer.minor),
                text: answer.git_version,
            })
        });
        Ok(Some(version.await?.clone()))
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        // Held during the request, so that concurrent calls fetch only once.
        let mut kinds = self.kinds.lock().await;
        if let Some(known) = &*kinds {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(discovery::all(&self.transport).await?);
        *kinds = Some(Arc::clone(&read));
        Ok(read)
    }

    async fn rediscover(&self, group: &str) -> Result<Arc<Kinds>, ClusterError> {
        let mut kinds = self.kinds.lock().await;
        let Some(known) = &*kinds else {
            drop(kinds);
            return self.kinds().await;
        };
        let mut changed = Kinds::clone(known);
        changed.remove_group(group);
        discovery::group(&self.transport, &mut changed, group).await?;
        let changed = Arc::new(changed);
        *kinds = Some(Arc::clone(&changed));
        Ok(changed)
    }

    async fn storage_version_hash(&self, kind: &Kind) -> Result<Option<String>, ClusterError> {
        discovery::storage_version_hash(&self.transport, kind).await
    }

    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        match self.transport.json(&Call::get(address)?).await {
            Ok(object) => Ok(Some(Compact::kept(object))),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        let (list, bytes) = self.page(query).await?;
        let token = list.metadata.r#continue.as_deref().unwrap_or_default();
        if !token.is_empty() && token == query.continue_token {
            let message = "the list does not go on: the server hands out the same continue token again";
            return Err(ClusterError::new(ErrorKind::Protocol, message));
        }
        Ok(Page {
            items: list.items.unwrap_or_default().into_iter().map(|item| stamp(&query.kind, item)).collect(),
            continue_token: list.metadata.r#continue.unwrap_or_default(),
            resource_version: list.metadata.resource_version.unwrap_or_default(),
            remaining: list.metadata.remaining_item_count,
            bytes: bytes as u64,
        })
    }

    async fn create(&self, address: &Address, body: &Value, dry_run: bool) -> Result<Written, ClusterError> {
        let call = Call::create(address, body, dry_run)?;
        let answer = self.transport.send(&call).await?;
        Ok(Written { object: answer.body.kept(), created: answer.status == 201, warnings: answer.warnings })
    }

    async fn apply(&self, address: &Address, body: &Value, options: ApplyOptions) -> Result<Written, ClusterError> {
        match &self.lenient {
            Some(lenient) => self.apply_leniently(lenient, address, body, options).await,
            None => self.apply_as_given(address, body, options).await,
        }
    }

    async fn patch(&self, address: &Address, patch: &Patch, dry_run: bool) -> Result<Written, ClusterError> {
        if self.plain.serve(address) {
            return self.patch_plainly(address, patch, dry_run).await;
        }
        let call = Call::patch(address, patch, dry_run)?;
        match self.transport.send(&call).await {
            Ok(answer) => Ok(Written { object: answer.body.kept(), created: false, warnings: answer.warnings }),
            Err(error) if plain::may_serve(&error) => {
                self.instead(address, error, self.patch_plainly(address, patch, dry_run).await)
            }
            Err(error) => Err(failed_test(patch, error)),
        }
    }

    async fn delete(&self, address: &Address, options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        let call = Call::delete(address, options)?;
        match self.transport.send(&call).await {
            Ok(answer) => {
                let object = Arc::new(last_state(address, answer.body.0));
                Ok(Some(Deleted { object, warnings: answer.warnings }))
            }
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn watch(
        &self,
        query: &ListQuery,
        resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        let call = Call::watch(query, resource_version)?;
        let answer = self.transport.stream(&call).await?;
        self.transport.tell(&call, &answer.warnings);
        Ok(watch::events(answer.body))
    }

    async fn logs(
        &self,
        pod: &Address,
        query: &LogQuery,
    ) -> Result<BoxStream<'static, Result<String, ClusterError>>, ClusterError> {
        let answer = self.transport.stream(&Call::logs(pod, query)?).await?;
        Ok(logs::lines(answer.body))
    }
}

/// Parses `36` of `36+`, which some providers return.
fn leading_number(text: &str) -> u32 {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_default()
}

/// The server does not say that a `test` of a JSON patch failed, only that the patch could not be applied.
fn failed_test(patch: &Patch, error: ClusterError) -> ClusterError {
    let tests = matches!(patch, Patch::Json(Value::Array(operations))
        if operations.iter().any(|operation| operation.text("/op") == "test"));
    if tests && error.status == 422 && error.message.starts_with("the server rejected our request due to an error") {
        let message = "the object is not in the state that the patch is for".to_owned();
        return ClusterError { kind: ErrorKind::Conflict, message, ..error };
    }
    error
}

/// Items of a list lack `apiVersion` and `kind`.
fn stamp(kind: &Kind, CompactMap(item): CompactMap) -> Arc<Value> {
    let mut object = Map::with_capacity(item.len() + 2);
    object.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
    object.insert("kind".to_owned(), Value::String(kind.kind.clone()));
    object.extend(item);
    Arc::new(Value::Object(object))
}

/// The server answers an immediate delete with a `Status` that names the object; this becomes a bare object.
fn last_state(address: &Address, answer: Value) -> Value {
    if answer.text("/kind") != "Status" || address.kind.kind == "Status" {
        return answer;
    }
    json!({
        "apiVersion": address.kind.api_version(),
        "kind": address.kind.kind,
        "metadata": {
            "namespace": address.namespace,
            "name": address.name,
            "uid": answer.text("/details/uid"),
        },
    })
}

/// Whether an object that seems to have existed was created by an attempt whose answer was lost: it appeared during the
/// retries, by the server's own clock, and its first fields are ours.
fn was_created_meanwhile(answer: &Answer<Compact>) -> bool {
    let Compact(object) = &answer.body;
    let Some(now) = answer.date else { return false };
    let Ok(made) = object.text("/metadata/creationTimestamp").parse::<Timestamp>() else { return false };
    let ours = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .is_some_and(|entries| entries.iter().any(|entry| entry.text("/manager") == FIELD_MANAGER));
    // Both times are in whole seconds.
    let slack = Duration::from_secs(1);
    let age = Duration::try_from(now.duration_since(made)).unwrap_or_default();
    ours && age <= answer.elapsed + slack
}
