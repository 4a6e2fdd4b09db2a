//! The app's record: kapp's ConfigMap, read and written so that kapp still understands it, with our own part in data
//! keys next to kapp's. A deploy by kapp removes them: it writes only its own key.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ErrorKind, Kind};
use pushback_objects::{ObjectExt, bookkeeping};
use pushback_preflight::waiver::Accepted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use super::error::AppError;
use super::identity::{APP_LABEL, INVENTORY_LABEL, RECORD_LABEL, SCHEMA, inventory_label};
pub use super::identity::{AppName, QUALIFIED_SUFFIX};
use super::inventory::Inventory;
use super::lock::LockEntry;
use super::moving::Move;

/// kapp's data key.
const SPEC_KEY: &str = "spec";
/// Our data key.
pub(super) const OWN_KEY: &str = "pushback";
/// A separate key for the lock, so that renewing it stays a small write.
pub(super) const LOCK_KEY: &str = "pushback-lock";
/// Data key of a move under way.
pub(super) const MOVE_KEY: &str = "pushback-move";
/// Data key of an inventory that fits the record.
const INVENTORY_KEY: &str = "pushback-inventory";

/// How far a run got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Objects are being written; the inventory is the union of before and after.
    Applying,
    /// The app is being deleted; the inventory still lists what is left.
    Deleting,
    /// Everything was done.
    #[default]
    Done,
    /// The run ended early; the inventory is the union of before and after.
    Interrupted,
}

/// Our part of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnPart {
    /// Layout in which it was written.
    pub schema: u32,
    /// Oldest layout that a reader must know in order to write it.
    pub minimum_reader: u32,
    /// How far the last run got.
    pub phase: Phase,
    /// Id of the last run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// uid of the record itself: a record restored from a backup has a different one, and the uids in it are void.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub record_uid: String,
    /// `lastChangeName` as we left it; a different one means that kapp has deployed since.
    #[serde(default)]
    pub last_change_name: String,
    /// Start of that change. Without history, changes have no names, and only this distinguishes them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_change_started: String,
    /// Names of the inventory shards; empty if the inventory is in the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<String>,
    /// Number of objects affected by each finding that the last run waived, by fingerprint; empty once the run is done.
    #[serde(default, skip_serializing_if = "Accepted::is_empty")]
    pub accepted: Accepted,
}

/// The fields that every layout of our part has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    schema: u32,
    minimum_reader: u32,
}

/// A record as it was read.
#[derive(Clone, Debug)]
pub struct Record {
    /// Address of the ConfigMap.
    pub address: Address,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion; the write that takes the lock requires it.
    pub resource_version: String,
    /// kapp's part, including unknown keys.
    pub spec: Map<String, Value>,
    /// Our part, if there is one.
    pub own: Option<OwnPart>,
    /// The lock, if it is held.
    pub lock: Option<LockEntry>,
    /// Where the record moves, if it does.
    pub moving: Option<Move>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The layout of our part, if a newer version wrote one that this version must not write.
    newer: Option<u32>,
    inline_inventory: Option<String>,
}

/// Everything that the cluster knows about an app.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Identifies the app.
    pub app: AppName,
    /// Its record; `None` for a new app.
    pub record: Option<Record>,
    /// The objects that it owns; empty if unknown.
    pub inventory: Inventory,
    /// Why the uids and digests of the inventory must not be used, if so.
    pub inventory_void: Option<String>,
}

/// The kind of records, shards and history.
#[must_use]
pub fn config_map_kind() -> Arc<Kind> {
    Arc::new(Kind {
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        ..Kind::default()
    })
}

impl Observed {
    /// An app without a record.
    #[must_use]
    pub fn unrecorded(app: AppName) -> Self {
        Self { app, record: None, inventory: Inventory::default(), inventory_void: None }
    }

    /// Refuses to overwrite what a newer version wrote. Reading it is harmless.
    ///
    /// # Errors
    /// [`AppError::Newer`] if the layout is unknown.
    pub fn require_known_layout(&self) -> Result<(), AppError> {
        self.record.as_ref().map_or(Ok(()), Record::require_known_layout)
    }

    /// Refuses to write to an app that is on its way to another name.
    ///
    /// # Errors
    /// [`AppError::Moving`] if its record was not moved whole.
    pub fn require_unmoved(&self) -> Result<(), AppError> {
        self.record.as_ref().map_or(Ok(()), |record| record.require_unmoved(None))
    }
}

/// Reads an app's record and inventory.
///
/// # Errors
/// The record cannot be read, or is not one.
pub async fn observe(cluster: &dyn Cluster, app: &AppName) -> Result<Observed, AppError> {
    if let Some((key, value)) = app.defining_label() {
        if !cluster.capabilities().server {
            return Err(AppError::NoLabels { app: app.name.clone() });
        }
        let record = Record::of_label(app, key, value)?;
        let void = Some("an app that is defined by a label has no inventory".to_owned());
        let inventory = Inventory::default();
        return Ok(Observed { app: app.clone(), record: Some(record), inventory, inventory_void: void });
    }
    let plain = app.name.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(&app.name);
    let app = AppName { name: plain.to_owned(), namespace: app.namespace.clone() };
    // Urgent: a lock that is renewed after a thousand queued writes is renewed too late.
    let address = |name: &str| Address::new(config_map_kind(), &app.namespace, name).urgent();
    let qualified = address(&format!("{plain}{QUALIFIED_SUFFIX}"));
    let unqualified = address(plain);
    let (first, second) = futures::join!(cluster.get(&qualified), cluster.get(&unqualified));
    let read = AppError::cluster("read the app's record");
    let is_record = |found: &Value| found.label(RECORD_LABEL).is_some();
    let (address, found) = match (first, second) {
        // A move between the two names was interrupted: the old one counts until the new one is whole.
        (Ok(Some(first)), Ok(Some(second)))
            if is_record(&first) && is_record(&second) && moves(&second, &qualified) =>
        {
            (unqualified, Some(second))
        }
        // Either could shadow the other: one is forged, or left by a kapp that was killed while renaming the record.
        (Ok(Some(first)), Ok(Some(second))) if is_record(&first) && is_record(&second) => {
            return Err(AppError::TwoRecords { namespace: app.namespace, app: app.name });
        }
        (Ok(Some(first)), Ok(Some(second))) if !is_record(&first) && is_record(&second) => (unqualified, Some(second)),
        (Ok(Some(found)), _) => (qualified, Some(found)),
        // If RBAC allows reading only one of the names, that one is used; another failure must not create a second record.
        (Err(error), _) if error.kind != ErrorKind::Forbidden => return Err(read(error)),
        (_, Ok(found)) => (unqualified, found),
        (_, Err(error)) => return Err(read(error)),
    };
    let Some(found) = found else {
        return Ok(Observed::unrecorded(app));
    };
    let record = Record::parse(address, &found)?;
    let (inventory, inventory_void) = read_inventory(cluster, &record).await?;
    Ok(Observed { app, record: Some(record), inventory, inventory_void })
}

/// Whether the record moves to this address.
fn moves(record: &Value, to: &Address) -> bool {
    let moving = serde_json::from_str::<Move>(record.text(&format!("/data/{MOVE_KEY}")));
    moving.is_ok_and(|moving| moving.to.namespace == to.namespace && moving.to.record == to.name)
}

/// Reads only the record, to see who holds the lock.
///
/// # Errors
/// The record cannot be read.
pub async fn reread(cluster: &dyn Cluster, address: &Address) -> Result<Option<Record>, AppError> {
    let found = cluster.get(address).await.map_err(AppError::cluster("read the app's record"))?;
    found.map(|found| Record::parse(address.clone(), &found)).transpose()
}

pub(super) async fn read_inventory(
    cluster: &dyn Cluster,
    record: &Record,
) -> Result<(Inventory, Option<String>), AppError> {
    let mut inventory = Inventory::default();
    if record.newer.is_some() {
        return Ok((inventory, Some("a newer pushback has written it".to_owned())));
    }
    let Some(own) = &record.own else {
        return Ok((inventory, Some("the app was deployed by kapp".to_owned())));
    };
    let mut texts = Vec::new();
    if own.shards.is_empty() {
        texts.push(record.inline_inventory.clone().unwrap_or_else(|| "[]".to_owned()));
    } else {
        let addresses: Vec<_> =
            own.shards.iter().map(|name| Address::new(config_map_kind(), &record.address.namespace, name)).collect();
        let shards = futures::future::join_all(addresses.iter().map(|address| cluster.get(address))).await;
        for shard in shards {
            match shard.map_err(AppError::cluster("read the app's inventory"))? {
                Some(shard) if !is_shard(&shard, &shard_stem(&record.address.name)) => {
                    return Ok((
                        Inventory::default(),
                        Some("what the record names is no part of its inventory".to_owned()),
                    ));
                }
                Some(shard) => texts.push(shard.text("/data/entries").to_owned()),
                None => return Ok((Inventory::default(), Some("a part of the inventory is missing".to_owned()))),
            }
        }
    }
    for text in texts {
        if inventory.add_shard(&text).is_err() {
            return Ok((Inventory::default(), Some("the inventory is damaged".to_owned())));
        }
    }
    let void = if own.last_change_name != record.last_change_name()
        || own.last_change_started != record.last_change().text("/startedAt")
    {
        Some("kapp has deployed the app since".to_owned())
    } else if !own.record_uid.is_empty() && own.record_uid != record.uid {
        Some("the record was copied or restored".to_owned())
    } else {
        None
    };
    Ok((inventory, void))
}

impl Record {
    pub(super) fn parse(address: Address, found: &Value) -> Result<Self, AppError> {
        let (namespace, name) = (address.namespace.clone(), address.name.clone());
        if found.label(RECORD_LABEL).is_none() {
            return Err(AppError::NotARecord { namespace, name });
        }
        let damaged = |reason: String| AppError::Damaged { namespace: namespace.clone(), name: name.clone(), reason };
        let data = |key: &str| found.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
        let spec = match serde_json::from_str(data(SPEC_KEY).unwrap_or_default()) {
            Ok(Value::Object(spec)) => spec,
            Ok(_) => return Err(damaged("data.spec is no JSON object".to_owned())),
            Err(error) => return Err(damaged(format!("data.spec is no JSON: {error}"))),
        };
        // Of an unknown layout, only the number can be read.
        let layout = data(OWN_KEY).and_then(|text| serde_json::from_str::<Layout>(text).ok());
        let newer = layout.filter(|layout| layout.minimum_reader > SCHEMA).map(|layout| layout.schema);
        let own = data(OWN_KEY)
            .filter(|_| newer.is_none())
            .map(serde_json::from_str::<OwnPart>)
            .transpose()
            .map_err(|error| damaged(format!("data.{OWN_KEY}: {error}")))?;
        // An unreadable lock has no holder: otherwise it would block the app forever.
        let lock = data(LOCK_KEY).and_then(|text| serde_json::from_str(text).ok());
        Ok(Self {
            uid: found.uid().to_owned(),
            resource_version: found.resource_version().to_owned(),
            spec,
            own,
            lock,
            // What cannot be read is no move of ours.
            moving: data(MOVE_KEY).and_then(|text| serde_json::from_str(text).ok()),
            newer,
            labels: labels_of(found),
            inline_inventory: data(INVENTORY_KEY).map(str::to_owned),
            address,
        })
    }

    /// What stands for the record of an app that has none, and is never stored. It tells of no kind, which means any.
    fn of_label(app: &AppName, key: &str, value: &str) -> Result<Self, AppError> {
        let address = Address::new(config_map_kind(), &app.namespace, &app.name);
        let spec = json!({"labelKey": key, "labelValue": value});
        Self::parse(address, &json!({"metadata": {"labels": {RECORD_LABEL: ""}}, "data": {SPEC_KEY: json_text(&spec)}}))
    }

    pub(super) fn require_known_layout(&self) -> Result<(), AppError> {
        self.newer.map_or(Ok(()), |found| Err(AppError::Newer { found }))
    }

    /// Refuses a record that moves, unless it is this move.
    pub(super) fn require_unmoved(&self, but: Option<&Move>) -> Result<(), AppError> {
        match &self.moving {
            Some(moving) if Some(moving) != but => Err(AppError::Moving(Box::new(moving.clone()))),
            _ => Ok(()),
        }
    }

    /// The inventory, where the record holds it.
    pub(super) fn inline_inventory(&self) -> Option<&str> {
        self.inline_inventory.as_deref()
    }

    /// The app's label value.
    #[must_use]
    pub fn label_value(&self) -> &str {
        self.spec.get("labelValue").and_then(Value::as_str).unwrap_or_default()
    }

    /// kapp's `lastChangeName`; empty if there is none.
    #[must_use]
    pub fn last_change_name(&self) -> &str {
        self.spec.get("lastChangeName").and_then(Value::as_str).unwrap_or_default()
    }

    /// kapp's `lastChange`; null if there is none.
    #[must_use]
    pub fn last_change(&self) -> &Value {
        self.spec.get("lastChange").unwrap_or(&Value::Null)
    }

    /// kapp's `usedGKs`: `None` for records of very old versions, which means any kind.
    #[must_use]
    pub fn used_kinds(&self) -> Option<Vec<(String, String)>> {
        let kinds = self.spec.get("usedGKs")?.as_array()?;
        Some(kinds.iter().map(|kind| (kind.text("/Group").to_owned(), kind.text("/Kind").to_owned())).collect())
    }

    /// Namespaces of the last change, `(cluster)` left out.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let namespaces = self.last_change().get("namespaces").and_then(Value::as_array);
        namespaces
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|namespace| !namespace.starts_with('('))
            .map(str::to_owned)
            .collect()
    }
}

fn labels_of(found: &Value) -> BTreeMap<String, String> {
    let labels = found.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// kapp's part for an app, based on the previous one.
#[must_use]
pub fn spec_for(
    before: Option<&Map<String, Value>>,
    label_value: &str,
    kinds: &[(String, String, String)],
) -> Map<String, Value> {
    let mut spec = before.cloned().unwrap_or_default();
    spec.insert("labelKey".to_owned(), json!(APP_LABEL));
    spec.insert("labelValue".to_owned(), json!(label_value));
    let unique = |pairs: Vec<Value>| {
        let mut seen = std::collections::BTreeSet::new();
        pairs.into_iter().filter(|pair| seen.insert(pair.to_string())).collect::<Vec<_>>()
    };
    let mut versions: Vec<Value> = Vec::new();
    for (group, version, _) in kinds {
        match version.as_str() {
            // For kinds that could not be read, the previous versions are all that is known.
            "" => versions.extend(
                before
                    .and_then(|before| before.get("usedGVs")?.as_array())
                    .into_iter()
                    .flatten()
                    .filter(|used| used.text("/Group") == group)
                    .cloned(),
            ),
            version => versions.push(json!({"Group": group, "Version": version})),
        }
    }
    let group_kinds = kinds.iter().map(|(group, _, kind)| json!({"Group": group, "Kind": kind})).collect();
    spec.insert("usedGVs".to_owned(), Value::Array(unique(versions)));
    spec.insert("usedGKs".to_owned(), Value::Array(unique(group_kinds)));
    spec
}

/// The content that a write stores in the record.
#[derive(Clone, Debug)]
pub(super) struct RecordWrite {
    pub(super) spec: Map<String, Value>,
    pub(super) own: OwnPart,
    /// `None` releases the lock.
    pub(super) lock: Option<LockEntry>,
    /// `None`: the inventory is in shards.
    pub(super) inline_inventory: Option<String>,
    /// Labels that the record gets besides its own.
    pub(super) labels: Vec<(String, String)>,
}

impl RecordWrite {
    pub(super) fn data(&self) -> Value {
        json!({
            SPEC_KEY: json_text(&self.spec),
            OWN_KEY: json_text(&self.own),
            LOCK_KEY: self.lock.as_ref().map(json_text),
            INVENTORY_KEY: self.inline_inventory,
        })
    }

    /// Creates the record; `Changed` if one appeared meanwhile.
    pub(super) async fn create(
        &self,
        cluster: &dyn Cluster,
        app: &AppName,
        address: &Address,
    ) -> Result<Record, AppError> {
        let mut data = self.data();
        if let Some(data) = data.as_object_mut() {
            data.retain(|_, value| !value.is_null());
        }
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": address.name, "namespace": address.namespace,
                "labels": self.all_labels(),
                "annotations": {"kapp.k14s.io/app-changes-use-app-label": ""},
            },
            "data": data,
        });
        match cluster.create(address, &body, false).await {
            Ok(written) => Record::parse(address.clone(), &written.object),
            // Another run was first, or our own request succeeded and its answer was lost. Reading again settles it.
            // A folder answers with a conflict if the file has appeared since the folder was read.
            Err(error) if matches!(error.kind, ErrorKind::AlreadyExists | ErrorKind::Conflict) || error.ambiguous => {
                Err(AppError::Changed { app: app.name.clone() })
            }
            Err(error) => Err(AppError::Cluster { action: "create the app's record".to_owned(), error }),
        }
    }

    /// Overwrites the record in the state that was read; `Changed` if it has changed since.
    pub(super) async fn update(
        &self,
        cluster: &dyn Cluster,
        app: &AppName,
        before: &Record,
    ) -> Result<Record, AppError> {
        let labels = if self.labels.is_empty() { Value::Null } else { self.all_labels() };
        patch_with(cluster, app, before, &self.data(), &labels).await
    }

    fn all_labels(&self) -> Value {
        let labels = self.labels.iter().map(|(key, value)| (key.clone(), json!(value)));
        Value::Object(std::iter::once((RECORD_LABEL.to_owned(), json!(""))).chain(labels).collect())
    }
}

/// Renews or releases only the lock.
pub(super) async fn write_lock(
    cluster: &dyn Cluster,
    app: &AppName,
    before: &Record,
    lock: Option<&LockEntry>,
) -> Result<Record, AppError> {
    patch(cluster, app, before, &json!({LOCK_KEY: lock.map(json_text)})).await
}

pub(super) fn json_text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(super) async fn patch(
    cluster: &dyn Cluster,
    app: &AppName,
    before: &Record,
    data: &Value,
) -> Result<Record, AppError> {
    patch_with(cluster, app, before, data, &Value::Null).await
}

async fn patch_with(
    cluster: &dyn Cluster,
    app: &AppName,
    before: &Record,
    data: &Value,
    labels: &Value,
) -> Result<Record, AppError> {
    let mut patch = json!({
        "metadata": {"resourceVersion": before.resource_version, "uid": before.uid},
        "data": data,
    });
    if !labels.is_null() {
        patch["metadata"]["labels"] = labels.clone();
    }
    match cluster.patch(&before.address, &pushback_cluster::Patch::Merge(patch), false).await {
        Ok(written) => Record::parse(before.address.clone(), &written.object),
        Err(error) if matches!(error.kind, ErrorKind::Conflict | ErrorKind::NotFound) => {
            Err(AppError::Changed { app: app.name.clone() })
        }
        Err(error) => Err(AppError::Cluster { action: "write the app's record".to_owned(), error }),
    }
}

/// Writes the shards of an inventory under new names. Returns none if it fits the record.
pub(super) async fn write_shards(
    cluster: &dyn Cluster,
    app: &AppName,
    run: &str,
    shards: &[String],
) -> Result<Vec<String>, AppError> {
    let write = |(number, entries): (usize, &String)| {
        let name = format!("{}-inventory-{run}-{number}", shard_stem(&app.name));
        let address = Address::new(config_map_kind(), &app.namespace, &name);
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": app.namespace, "labels": {INVENTORY_LABEL: inventory_label(&app.name)}},
            "data": {"entries": entries},
        });
        let options = pushback_cluster::ApplyOptions { force: true, ..Default::default() };
        async move {
            let written = cluster.apply(&address, &body, options).await;
            written.map(|_| name).map_err(AppError::cluster("write the app's inventory"))
        }
    };
    futures::future::try_join_all(shards.iter().enumerate().map(write)).await
}

/// Names of all shards of an app, including those of killed runs. Best effort: those missed are found later.
pub(super) async fn find_shards(cluster: &dyn Cluster, app: &AppName) -> Vec<String> {
    let selector = format!("{INVENTORY_LABEL}={}", inventory_label(&app.name));
    let query = pushback_cluster::ListQuery::new(config_map_kind(), Some(&app.namespace), &selector);
    let Ok(page) = pushback_cluster::list_all(cluster, &query).await else { return Vec::new() };
    let stem = shard_stem(&app.name);
    page.items.iter().filter(|shard| is_shard(shard, &stem)).map(|shard| shard.name().to_owned()).collect()
}

/// Prefix of the names of an app's shards, with room for the rest: an app's name may be as long as an object's.
fn shard_stem(app: &str) -> String {
    app.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(app).chars().take(200).collect()
}

/// Whether an object is an inventory shard; a name in a record alone proves nothing.
fn is_shard(object: &Value, stem: &str) -> bool {
    object.label(INVENTORY_LABEL).is_some() && bookkeeping::entry_of(object) == Some(stem)
}

/// Deletes shards that are no longer referenced, and nothing else. Best effort: the next run finds leftovers.
pub(super) async fn delete_shards(cluster: &dyn Cluster, app: &AppName, names: &[String]) {
    let stem = shard_stem(&app.name);
    let delete = async |name: &String| {
        let address = Address::new(config_map_kind(), &app.namespace, name);
        let found = cluster.get(&address).await.ok().flatten().filter(|found| is_shard(found, &stem))?;
        let options = pushback_cluster::DeleteOptions { uid: found.uid().to_owned(), ..Default::default() };
        cluster.delete(&address, &options).await.ok()
    };
    futures::future::join_all(names.iter().map(delete)).await;
}

impl OwnPart {
    /// Records which change of kapp's part was the last one at this write.
    pub(super) fn note_last_change(&mut self, spec: &Map<String, Value>) {
        self.last_change_name = spec.get("lastChangeName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let change = spec.get("lastChange").unwrap_or(&Value::Null);
        change.text("/startedAt").clone_into(&mut self.last_change_started);
    }

    pub(super) fn new(phase: Phase, run: &str) -> Self {
        Self { schema: SCHEMA, minimum_reader: SCHEMA, phase, run: run.to_owned(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
