//! Converts stored objects by a plan, one by one, while a definition is in place that takes objects of both shapes. What
//! an object says of itself tells whether it is converted, so that a killed run goes on where it was.

mod owners;

use std::path::PathBuf;
use std::sync::Arc;

use futures::{FutureExt, StreamExt, stream};
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kind, ListQuery, Pages, Patch, Turn};
use pushback_conversion::{Converter, Lost, NoPrograms, Operation, Why};
use pushback_crd::definition::{CONVERTING, StoredState, Upgrade};
use pushback_crd::path::{display_path, pointer_key};
use pushback_crd::schema::pipeline::{self, Server};
use pushback_crd::stack;
use pushback_objects::ObjectExt;
use pushback_objects::object::{join_api_version, split_api_version};
use pushback_system::atomic_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::definitions::object_kind;

/// Objects a page: whole ones are read.
const PAGE: u32 = 100;

/// Objects that are converted at the same time.
const WORKERS: usize = 8;

/// Most attempts for an object that others write too.
const ATTEMPTS: u32 = 5;

/// The annotation of a converted object, until it is moved: a [`Mark`].
const CONVERTED: &str = "pushback.dev/converted";

/// Most bytes of field owners that an annotation takes along; the API server accepts 256 KiB of them all.
const MAX_OWNERS: usize = 128 << 10;

/// What a converted object says of itself, until it is moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    /// The digest of its status, if that is converted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Its field owners: the write that converts fields takes them from whom they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) managed_fields: Option<Value>,
}

impl Mark {
    /// The path of the annotation in a JSON patch.
    pub(super) fn path() -> String {
        format!("/metadata/annotations/{}", pointer_key(CONVERTED))
    }

    /// The mark of an object; `None` if it is not marked.
    pub(super) fn of(object: &Value) -> Option<Self> {
        object.annotation(CONVERTED).map(|text| serde_json::from_str(text).unwrap_or_default())
    }
}

/// How the objects of a definition get from the version that they are stored in to one with other fields.
#[derive(Clone, Debug)]
pub struct Conversion {
    converter: Arc<Converter>,
    from: String,
    to: String,
    wanted: Arc<Value>,
    /// Folder for the objects as they were.
    backup: Option<PathBuf>,
}

/// What is left to be done for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Everything,
    Status,
    Nothing,
}

/// Objects that cannot be converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unconvertible {
    /// Number of objects that were read.
    pub objects: u64,
    /// Number of those that cannot be converted.
    pub failed: u64,
    /// One of them, and why.
    pub example: String,
}

impl Unconvertible {
    /// `2 of 20 stored objects cannot be converted, such as shop/a: …`.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let Self { objects, failed, example } = self;
        (*failed > 0).then(|| format!("{failed} of {objects} stored objects cannot be converted, such as {example}"))
    }
}

impl Conversion {
    /// The conversion from the storage version of the live definition, or from the one that a stopped run came from, to
    /// that of the wanted definition. `None` if one of them has none.
    #[must_use]
    pub fn new(converter: Converter, live: &Value, wanted: &Arc<Value>, backup: Option<PathBuf>) -> Option<Self> {
        let from = live.annotation(CONVERTING).map(str::to_owned).or(StoredState::of(live).storage)?;
        let to = StoredState::of(wanted).storage?;
        Some(Self { converter: Arc::new(converter), from, to, wanted: Arc::clone(wanted), backup })
    }

    /// What happens to the fields.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        self.converter.operations()
    }

    /// The version that objects come from.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Which of the live objects cannot be converted: nothing is written.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn check(&self, cluster: &dyn Cluster, live: &Value) -> Result<Unconvertible, ClusterError> {
        let state = StoredState::of(live);
        let has_begun = live.annotation(CONVERTING).is_some();
        let version = if has_begun { &self.to } else { &self.from };
        let query = ListQuery { limit: PAGE, ..ListQuery::new(object_kind(&state, version, false), None, "") };
        let (mut pages, mut found) = (Pages::of(cluster, query), Unconvertible::default());
        while let Some(turn) = pages.next().await? {
            let Turn::Page(page) = turn else {
                found = Unconvertible::default();
                continue;
            };
            stack::with_room(|| {
                for object in &page.items {
                    found.objects += 1;
                    if has_begun && self.pending(object) != Pending::Everything {
                        continue;
                    }
                    if let Err(why) = self.converted(object) {
                        found.failed += 1;
                        if found.example.is_empty() {
                            found.example = format!("{}: {why}", object.full_name());
                        }
                    }
                }
            });
        }
        Ok(found)
    }

    /// Converts all objects, under a definition that takes both shapes. Returns how many were converted.
    ///
    /// # Errors
    /// The first object that could not be converted, or the cluster's error.
    pub async fn run(&self, cluster: &dyn Cluster, live: &Value) -> Result<u64, ClusterError> {
        let has_status =
            pushback_crd::definition::Crd::of(live).version(&self.to).is_some_and(|version| version.status);
        let kind = object_kind(&StoredState::of(live), &self.to, has_status);
        let query = ListQuery { limit: PAGE, ..ListQuery::new(Arc::clone(&kind), None, "") };
        // Objects that are added meanwhile come in the new version.
        let (mut pages, mut count) = (Pages::of(cluster, query).going_on(), 0);
        while let Some(turn) = pages.next().await? {
            let Turn::Page(page) = turn else { continue };
            // Boxed one by one: the compiler cannot see that a stream of closures is `Send`.
            let work: Vec<_> =
                page.items.into_iter().map(|object| self.convert_one(cluster, &kind, object).boxed()).collect();
            let mut work = stream::iter(work).buffer_unordered(WORKERS);
            while let Some(done) = work.next().await {
                count += u64::from(done?);
            }
        }
        Ok(count)
    }

    async fn convert_one(
        &self,
        cluster: &dyn Cluster,
        kind: &Arc<Kind>,
        mut seen: Arc<Value>,
    ) -> Result<bool, ClusterError> {
        let address = Address::new(Arc::clone(kind), seen.namespace(), seen.name());
        let has_status = !kind.subresources.is_empty();
        let mut has_written = false;
        for _ in 0..ATTEMPTS {
            let (address, patch) = match self.pending(&seen) {
                Pending::Nothing => return Ok(has_written),
                Pending::Everything => {
                    self.keep(&seen)?;
                    (address.clone(), self.patch(&seen, has_status)?)
                }
                Pending::Status => {
                    (Address { subresource: "status".to_owned(), ..address.clone() }, self.status_patch(&seen)?)
                }
            };
            match cluster.patch(&address, &patch, false).await {
                Ok(written) => (seen, has_written) = (written.object, true),
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(has_written),
                Err(error) if error.kind == ErrorKind::Conflict => {
                    let main = Address { subresource: String::new(), ..address };
                    let Some(now) = cluster.get(&main).await? else { return Ok(has_written) };
                    seen = now;
                }
                Err(error) => return Err(ClusterError { message: failed(&seen, &error.message), ..error }),
            }
        }
        match self.pending(&seen) {
            Pending::Nothing => Ok(has_written),
            Pending::Everything | Pending::Status => {
                Err(ClusterError::new(ErrorKind::Conflict, failed(&seen, "others write it all the time")))
            }
        }
    }

    /// What an object of the new version still needs. Before it is converted, its field owners have written it in another
    /// version, or it has none.
    fn pending(&self, object: &Value) -> Pending {
        if let Some(mark) = Mark::of(object) {
            let is_left = mark.status.is_some_and(|digest| digest == status_digest(object));
            return if is_left { Pending::Status } else { Pending::Nothing };
        }
        let api_version = join_api_version(self.converter.group(), &self.to);
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let is_ours = |entry: &&Value| split_api_version(entry.text("/apiVersion")).0 == self.converter.group();
        let mut entries = entries.into_iter().flatten().filter(is_ours).peekable();
        let is_converted = entries.peek().is_some() && entries.all(|entry| entry.text("/apiVersion") == api_version);
        if is_converted { Pending::Nothing } else { Pending::Everything }
    }

    /// The object in the new version, valid there.
    fn converted(&self, object: &Value) -> Result<Value, String> {
        let mut old = object.clone();
        old["apiVersion"] = join_api_version(self.converter.group(), &self.from).into();
        let converted = self.converter.convert(old, &self.to, &NoPrograms).map_err(|error| error.to_string())?;
        // What the plan drops has been judged.
        let is_judged = |lost: &&Lost| !matches!(lost.why, Why::Dropped | Why::NotKept);
        if let Some(Lost { path, why }) = converted.lost.iter().find(is_judged) {
            return Err(format!("{path} would be lost: {}", why.as_str()));
        }
        let upgrade = Upgrade::of(&self.wanted, &self.wanted, Server::default());
        let resource = upgrade.new_resource(&self.to).ok_or_else(|| format!("there is no version {}", self.to))?;
        let admitted = pipeline::create(&resource, Server::default(), &converted.object);
        if let Some(error) = admitted.errors.first() {
            return Err(format!("{} does not accept {}: {}", self.to, display_path(&error.path), error.message));
        }
        match admitted.pruned.first() {
            Some(path) => Err(format!("{} would be lost: {} has no such field", display_path(path), self.to)),
            None => Ok(converted.object),
        }
    }

    /// Everything but the status, in one write. The annotation that says so goes along.
    fn patch(&self, seen: &Value, has_status: bool) -> Result<Patch, ClusterError> {
        let denied = |why: String| ClusterError::new(ErrorKind::Denied, failed(seen, &why));
        let (converted, owners) = stack::with_room(|| -> Result<_, String> {
            let converted = self.converted(seen)?;
            let owners = owners::converted(self, seen, &converted);
            Ok((converted, owners))
        })
        .map_err(denied)?;
        let mut annotations = converted.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({}));
        let is_status_left = has_status && seen.get("status") != converted.get("status");
        let mark = Mark {
            status: is_status_left.then(|| status_digest(seen)),
            managed_fields: owners.clone().filter(|owners| owners.to_string().len() <= MAX_OWNERS),
        };
        annotations[CONVERTED] = json!(mark).to_string().into();
        let mut operations = vec![
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": seen.resource_version()}),
            json!({"op": "add", "path": "/metadata/annotations", "value": annotations}),
        ];
        // At the new version from the start: an entry at the old one cannot be read.
        operations
            .extend(owners.map(|owners| json!({"op": "add", "path": "/metadata/managedFields", "value": owners})));
        let empty = Map::new();
        let (old, new) = (seen.as_object().unwrap_or(&empty), converted.as_object().unwrap_or(&empty));
        let is_fixed = |key: &str| ["apiVersion", "kind", "metadata"].contains(&key) || (has_status && key == "status");
        let is_content = |key: &&String| !is_fixed(key);
        for key in old.keys().filter(is_content).filter(|key| !new.contains_key(*key)) {
            operations.push(json!({"op": "remove", "path": format!("/{}", pointer_key(key))}));
        }
        for (key, value) in new.iter().filter(|(key, _)| is_content(key)) {
            operations.push(json!({"op": "add", "path": format!("/{}", pointer_key(key)), "value": value}));
        }
        Ok(Patch::Json(operations.into()))
    }

    fn status_patch(&self, seen: &Value) -> Result<Patch, ClusterError> {
        let mut old = json!({"apiVersion": null, "kind": seen.get("kind"), "metadata": seen.get("metadata")});
        old["apiVersion"] = join_api_version(self.converter.group(), &self.from).into();
        old["status"] = seen.get("status").cloned().unwrap_or_default();
        let converted = stack::with_room(|| self.converter.convert(old, &self.to, &NoPrograms));
        let converted =
            converted.map_err(|error| ClusterError::new(ErrorKind::Denied, failed(seen, &error.to_string())))?;
        let mut operations =
            vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": seen.resource_version()})];
        operations.push(match converted.object.get("status") {
            Some(status) => json!({"op": "add", "path": "/status", "value": status}),
            None => json!({"op": "remove", "path": "/status"}),
        });
        Ok(Patch::Json(operations.into()))
    }

    /// Writes the object as it was into the folder for backups.
    fn keep(&self, object: &Value) -> Result<(), ClusterError> {
        let Some(folder) = &self.backup else { return Ok(()) };
        let folder = folder.join(self.converter.name()).join(object.namespace());
        let mut old = object.clone();
        old["apiVersion"] = join_api_version(self.converter.group(), &self.from).into();
        let file = folder.join(format!("{}.json", object.name()));
        let text = format!("{old:#}\n");
        // An earlier attempt has kept it before it was converted.
        let written = match file.exists() {
            true => Ok(()),
            false => std::fs::create_dir_all(&folder).and_then(|()| atomic_file::replace(&file, text.as_bytes())),
        };
        written.map_err(|error| {
            let message = format!("no backup in {}: {error}", folder.display());
            ClusterError::new(ErrorKind::Denied, failed(object, &message))
        })
    }
}

fn failed(object: &Value, why: &str) -> String {
    format!("{} is not converted: {why}", object.full_name())
}

fn status_digest(object: &Value) -> String {
    let status = object.get("status").map(Value::to_string).unwrap_or_default();
    pushback_objects::hex::encode(&Sha256::digest(status.as_bytes())[..16])
}
