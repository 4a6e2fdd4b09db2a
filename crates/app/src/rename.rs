//! Gives an app another name or namespace, or its record the other of the two names that kapp accepts. No server moves
//! an object in one step: a mark in the old record and the new one keeps every other run from writing to the app
//! meanwhile, and lets the next rename finish what a killed one has begun. At no time is there no record.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, Cluster, DeleteOptions, ErrorKind, LocalLock};
use pushback_objects::ObjectExt as _;
use pushback_system::environment::Environment;
use serde_json::{Map, Value, json};

use super::history;
use super::identity::RECORD_LABEL;
use super::inventory::Inventory;
use super::lease::DEFAULT_LEASE;
use super::lock::LockEntry;
use super::lock_wait;
use super::moving::{Move, Place};
use super::record::{
    AppError, LOCK_KEY, MOVE_KEY, OWN_KEY, OwnPart, QUALIFIED_SUFFIX, Record, RecordWrite, config_map_kind,
    delete_shards, find_shards, json_text, patch, read_inventory, reread, write_shards,
};

/// Who moves a record, and how long it waits for others.
#[derive(Clone, Copy, Debug)]
pub struct Mover<'a> {
    /// Source of the lock's holder.
    pub environment: &'a Environment,
    /// Id of the run.
    pub run: &'a str,
    /// How long to wait for the app's lock.
    pub patience: Duration,
    /// Whether this run holds the new name's lock on this machine already.
    pub holds: bool,
}

/// Moves a record with its inventory and its history. A move between these places that was interrupted is finished.
///
/// # Errors
/// There is no old record, the new one exists already, another move is under way, or another run holds the lock or has
/// written meanwhile; the cluster's error.
pub async fn rename(cluster: &dyn Cluster, mover: Mover<'_>, from: &Place, to: &Place) -> Result<(), AppError> {
    let moving = Move { from: from.clone(), to: to.clone() };
    let is_ours = |record: &Record| record.moving.as_ref() == Some(&moving);
    let server = cluster.capabilities().server;
    // In a directory two files are the lock, for as long as this takes.
    let _old = lock_locally(cluster, from, mover.holds && from.app() == to.app()).await?;
    let _new = lock_locally(cluster, to, mover.holds || from.app() == to.app()).await?;
    let (old, new) = futures::try_join!(free(cluster, mover, from), free(cluster, mover, to))?;
    // It is not renewed: every write requires the state that was read.
    let lock = server.then(|| LockEntry::new(mover.environment, mover.run, DEFAULT_LEASE));
    let (label, new) = match (old, new) {
        // In a directory the label is the name.
        (None, Some(new)) if is_ours(&new) && !server => (from.app().name, new),
        (None, Some(new)) if is_ours(&new) => (new.label_value().to_owned(), new),
        (None, _) => return Err(AppError::Missing { app: from.app().name, namespace: from.namespace.clone() }),
        (Some(_), Some(new)) if !is_ours(&new) => {
            return Err(AppError::Exists { app: to.app().name, namespace: to.namespace.clone() });
        }
        (Some(old), new) => {
            old.require_unmoved(Some(&moving))?;
            if new.is_none() && old.moving.is_none() && server {
                require_creatable(cluster, to).await?;
            }
            let label = old.label_value().to_owned();
            let mark = json!({LOCK_KEY: lock.as_ref().map(json_text), MOVE_KEY: json_text(&moving)});
            let old = patch(cluster, &from.app(), &old, &mark).await?;
            let new = match new {
                Some(new) => new,
                None => create(cluster, mover, &old, &moving, lock.as_ref()).await?,
            };
            copy_history(cluster, &moving, &label, new.label_value()).await?;
            delete_old(cluster, &old).await?;
            (label, new)
        }
    };
    if from.app() != to.app() {
        let left = history::entries(cluster, &from.app(), &label).await.unwrap_or_default();
        history::delete(cluster, &from.namespace, &left).await;
        let shards = find_shards(cluster, &from.app()).await;
        delete_shards(cluster, &from.app(), &shards).await;
    }
    // From here on the uids in the inventory are bound to this record.
    let own = new.own.as_ref().map(|own| json_text(&OwnPart { record_uid: new.uid.clone(), ..own.clone() }));
    let mut done = Map::from_iter([(LOCK_KEY.to_owned(), Value::Null), (MOVE_KEY.to_owned(), Value::Null)]);
    done.extend(own.filter(|_| server).map(|own| (OWN_KEY.to_owned(), json!(own))));
    patch(cluster, &to.app(), &new, &Value::Object(done)).await?;
    Ok(())
}

async fn lock_locally(cluster: &dyn Cluster, place: &Place, held: bool) -> Result<Option<LocalLock>, AppError> {
    if held {
        return Ok(None);
    }
    cluster.local_lock(&place.namespace, &place.app().name).await.map_err(AppError::cluster("lock the app"))
}

fn address(place: &Place) -> Address {
    Address::new(config_map_kind(), &place.namespace, &place.record).urgent()
}

/// The place of a record that was read.
#[must_use]
pub fn place(record: &Record) -> Place {
    Place { namespace: record.address.namespace.clone(), record: record.address.name.clone() }
}

/// The record at a place once no other run holds its lock.
async fn free(cluster: &dyn Cluster, mover: Mover<'_>, place: &Place) -> Result<Option<Record>, AppError> {
    let Some(record) = reread(cluster, &address(place)).await? else { return Ok(None) };
    record.require_known_layout()?;
    let Mover { environment, run, patience, .. } = mover;
    lock_wait::until_free(cluster, &place.app(), record, environment, run, patience, |_| {}).await
}

/// Checks that a record can be there, before the old one is marked: with the mark only this move could go on.
async fn require_creatable(cluster: &dyn Cluster, to: &Place) -> Result<(), AppError> {
    let address = address(to);
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": to.record, "namespace": to.namespace, "labels": {RECORD_LABEL: ""}},
    });
    match cluster.create(&address, &body, true).await {
        Ok(_) => Ok(()),
        // A webhook that cannot be asked in a dry-run, or another run that was quicker: the write tells.
        Err(error) if matches!(error.kind, ErrorKind::Unsupported | ErrorKind::AlreadyExists) => Ok(()),
        Err(error) => Err(AppError::NoNewRecord(error)),
    }
}

/// Writes the new record: the old one with its labels and annotations, under the new name.
async fn create(
    cluster: &dyn Cluster,
    mover: Mover<'_>,
    old: &Record,
    moving: &Move,
    lock: Option<&LockEntry>,
) -> Result<Record, AppError> {
    let (from, to) = (moving.from.app(), moving.to.app());
    let found = cluster.get(&old.address).await.map_err(AppError::cluster("read the app's record"))?;
    let found = found.ok_or_else(|| AppError::Changed { app: from.name.clone() })?;
    let mut spec = old.spec.clone();
    let mut own = old.own.clone().map(|own| OwnPart { record_uid: String::new(), ..own });
    let mut inline_inventory = old.inline_inventory().map(str::to_owned);
    if from != to {
        let last = history::moved_name(old.last_change_name(), &to);
        if !old.last_change_name().is_empty() {
            spec.insert("lastChangeName".to_owned(), json!(last));
        }
        if let Some(own) = &mut own {
            if own.last_change_name == old.last_change_name() {
                own.note_last_change(&spec);
            }
            let (inventory, _) = read_inventory(cluster, old).await?;
            let shards = inventory.to_shards();
            own.shards.clear();
            inline_inventory = Some(shards.concat());
            if !Inventory::fits_record(&shards) {
                own.shards = write_shards(cluster, &to, mover.run, &shards).await?;
                inline_inventory = None;
            }
        }
        // In a directory the label is the name.
        if !cluster.capabilities().server {
            spec.insert("labelValue".to_owned(), json!(to.name));
        }
    }
    let mut data = match own {
        Some(own) => RecordWrite { spec, own, lock: lock.cloned(), inline_inventory, labels: Vec::new() }.data(),
        None => json!({"spec": json_text(&spec), LOCK_KEY: lock.map(json_text)}),
    };
    data[MOVE_KEY] = json!(json_text(moving));
    if let Some(data) = data.as_object_mut() {
        data.retain(|_, value| !value.is_null());
    }
    let of = |key: &str| found.pointer(&format!("/metadata/{key}")).cloned().unwrap_or_else(|| json!({}));
    let mut annotations = of("annotations");
    if from == to && moving.to.record.ends_with(QUALIFIED_SUFFIX) {
        annotations["kapp.k14s.io/is-configmap-migrated"] = json!("");
    }
    let mut labels = of("labels");
    labels[RECORD_LABEL] = json!("");
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": moving.to.record, "namespace": to.namespace, "labels": labels, "annotations": annotations,
        },
        "data": data,
    });
    let address = address(&moving.to);
    match cluster.create(&address, &body, false).await {
        Ok(written) => Record::parse(address, &written.object),
        Err(error) if error.kind == ErrorKind::AlreadyExists || error.ambiguous => {
            Err(AppError::Changed { app: to.name })
        }
        Err(error) => Err(AppError::NoNewRecord(error)),
    }
}

/// Copies the entries of the history. Their names are derived from the old ones, so that a repetition copies nothing twice.
async fn copy_history(cluster: &dyn Cluster, moving: &Move, label: &str, new_label: &str) -> Result<(), AppError> {
    let (from, to) = (moving.from.app(), moving.to.app());
    if from == to {
        return Ok(());
    }
    let failed = || AppError::cluster("copy the app's history");
    let entries = history::entries(cluster, &from, label).await.map_err(failed())?;
    let copy = async |entry: &Arc<Value>| {
        let body = history::moved(entry, &to, new_label);
        let address = Address::new(config_map_kind(), &to.namespace, body.name());
        match cluster.create(&address, &body, false).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed()(error)),
        }
    };
    futures::future::try_join_all(entries.iter().map(copy)).await?;
    Ok(())
}

/// Deletes the old record in the state that was read: whoever has written to it since has not seen the move.
async fn delete_old(cluster: &dyn Cluster, old: &Record) -> Result<(), AppError> {
    let options = DeleteOptions {
        uid: old.uid.clone(),
        resource_version: old.resource_version.clone(),
        ..DeleteOptions::default()
    };
    match cluster.delete(&old.address, &options).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind == ErrorKind::Conflict => Err(AppError::Changed { app: place(old).app().name }),
        Err(error) => Err(AppError::Cluster { action: "delete the app's old record".to_owned(), error }),
    }
}
