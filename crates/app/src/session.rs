//! A run's hold on an app: takes the lock together with the inventory of everything that may be created,
//! renews it in the background, and ends by writing the inventory of what exists.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pushback_cluster::{Address, Cluster, DeleteOptions, ErrorKind, LocalLock};
use pushback_preflight::waiver::Accepted;
use pushback_system::environment::{Environment, boot_clock};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::history;
use super::inventory::Inventory;
use super::lease::{Lease, LockLost, Renew, Renewed};
use super::lock::LockEntry;
use super::memory::Memory;
use super::record::{
    AppError, AppName, Observed, OwnPart, Phase, Record, RecordWrite, config_map_kind, delete_shards, find_shards,
    observe, reread, spec_for, write_lock, write_shards,
};

/// The arguments for opening a session.
#[derive(Clone, Debug)]
pub struct Opening<'a> {
    /// The observed state; its resourceVersion guards the write that takes the lock.
    pub observed: &'a Observed,
    /// The app's label value.
    pub label_value: &'a str,
    /// The objects that exist now and those that may exist afterwards.
    pub inventory: &'a Inventory,
    /// Group, version and kind of all objects, before and after.
    pub kinds: &'a [(String, String, String)],
    /// Run id.
    pub run: &'a str,
    /// Labels that the record gets.
    pub labels: &'a [(String, String)],
    /// Name of a new record.
    pub record_name: &'a str,
    /// `Applying` or `Deleting`.
    pub phase: Phase,
    /// Length of the lease.
    pub lease: Duration,
    /// Number of objects affected by each waived finding, for the run that resumes this one.
    pub accepted: Accepted,
}

/// A held lock on an app.
#[derive(Debug)]
pub struct Session {
    cluster: Arc<dyn Cluster>,
    app: AppName,
    label_value: String,
    run: String,
    shared: Arc<Shared>,
    renewal: Option<tokio::task::JoinHandle<()>>,
    /// The shards that the record references while the run is in progress.
    shards: Vec<String>,
    local_lock: Option<LocalLock>,
    accepted: Accepted,
}

#[derive(Debug)]
struct Shared {
    record: Mutex<Record>,
    lease: Lease,
}

impl Session {
    /// Takes the lock and writes the inventory, shards first.
    ///
    /// # Errors
    /// [`AppError::Changed`] if the record has changed since it was observed: observe and plan again.
    pub async fn open(
        cluster: Arc<dyn Cluster>,
        environment: &Environment,
        opening: Opening<'_>,
        local_lock: Option<LocalLock>,
    ) -> Result<Self, AppError> {
        opening.observed.require_known_layout()?;
        opening.observed.require_unmoved()?;
        let app = opening.observed.app.clone();
        let before = opening.observed.record.as_ref();
        // Without a record nothing is stored, and no other run is kept out.
        let cluster = if app.defining_label().is_some() { Memory::of_run() } else { cluster };
        // A directory is locked by a file; a lock in the record would show up as a difference in the tree.
        let lock = local_lock.is_none().then(|| LockEntry::new(environment, opening.run, opening.lease));
        let run = if local_lock.is_none() { opening.run } else { "" };
        let shards = opening.inventory.to_shards();
        let inline = Inventory::fits_record(&shards);
        let mut own = OwnPart { accepted: opening.accepted.clone(), ..OwnPart::new(opening.phase, run) };
        if !inline {
            own.shards = write_shards(&*cluster, &app, &format!("{}u", opening.run), &shards).await?;
        }
        if let Some(before) = before {
            own.note_last_change(&before.spec);
        }
        own.record_uid = before.map(|record| record.uid.clone()).unwrap_or_default();
        let new_shards = own.shards.clone();
        let lease = lock.as_ref().map(LockEntry::lease);
        let taken_at = boot_clock();
        let write = RecordWrite {
            spec: spec_for(before.map(|record| &record.spec), opening.label_value, opening.kinds),
            own,
            lock,
            inline_inventory: inline.then(|| shards.concat()),
            labels: opening.labels.to_vec(),
        };
        let take = async {
            match before {
                Some(before) => write.update(&*cluster, &app, before).await,
                None => {
                    let address = Address::new(config_map_kind(), &app.namespace, opening.record_name).urgent();
                    write.create(&*cluster, &app, &address).await
                }
            }
        };
        // Only cleanup: it must not use up the lease.
        let find = tokio::time::timeout(opening.lease / 3, find_shards(&*cluster, &app));
        let (taken, found) = futures::join!(take, find);
        let mut old_shards = found.unwrap_or_default();
        let held = lease.map_or_else(Lease::unlimited, |lease| Lease::taken(taken_at, lease));
        // After that time another run may have taken over, and the shards may be its own.
        if !held.holds() {
            old_shards.clear();
        }
        let record = match taken {
            Ok(record) => record,
            Err(error) => {
                // If the answer was lost, the record may have been written and reference them.
                if let Ok(seen) = observe(&*cluster, &app).await
                    && seen.record.and_then(|record| record.own).is_none_or(|own| own.shards != new_shards)
                {
                    delete_shards(&*cluster, &app, &new_shards).await;
                }
                return Err(error);
            }
        };
        // The shards of the previous record, of killed runs, and those whose reference kapp has removed.
        old_shards.extend(before.and_then(|record| record.own.as_ref()).into_iter().flat_map(|own| own.shards.clone()));
        old_shards.sort();
        old_shards.dedup();
        old_shards.retain(|name| !new_shards.contains(name));
        delete_shards(&*cluster, &app, &old_shards).await;
        let shared = Arc::new(Shared { record: Mutex::new(record), lease: held });
        let mut renewal = None;
        if let Some(lease) = lease {
            let mut keep = Renewal {
                cluster: Arc::clone(&cluster),
                app: app.clone(),
                run: opening.run.to_owned(),
                shared: Arc::clone(&shared),
            };
            // A slow server has used up part of the lease.
            if boot_clock().saturating_sub(taken_at) > lease / 3 {
                shared.lease.renew(&mut keep).await;
            }
            let kept = Arc::clone(&shared);
            renewal = Some(tokio::spawn(async move { kept.lease.keep(&mut keep).await }));
        }
        Ok(Self {
            cluster,
            app,
            label_value: opening.label_value.to_owned(),
            run: opening.run.to_owned(),
            shared,
            renewal,
            shards: new_shards,
            local_lock,
            accepted: opening.accepted,
        })
    }

    /// Namespace of the app's record.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.app.namespace
    }

    /// The lease of the lock; check it before every write.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.shared.lease
    }

    /// Writes the final inventory and releases the lock.
    ///
    /// # Errors
    /// The lock was lost ([`AppError::Changed`]) or the cluster refused.
    pub async fn close(
        mut self,
        phase: Phase,
        inventory: &Inventory,
        kinds: &[(String, String, String)],
        last_change: Option<(&str, &Value)>,
    ) -> Result<(), AppError> {
        self.stop_renewal();
        let shards = inventory.to_shards();
        let inline = Inventory::fits_record(&shards);
        let run = if self.local_lock.is_some() { "" } else { self.run.as_str() };
        // A completed change is not waived again: if it comes back, it is a new one.
        let accepted = if phase == Phase::Done { Accepted::new() } else { std::mem::take(&mut self.accepted) };
        let mut own = OwnPart { accepted, ..OwnPart::new(phase, run) };
        if !inline {
            own.shards = write_shards(&*self.cluster, &self.app, &self.run, &shards).await?;
        }
        let record = self.shared.record.lock().await.clone();
        let write = |record: &Record| {
            let mut spec: Map<String, Value> = spec_for(Some(&record.spec), &self.label_value, kinds);
            if let Some((name, change)) = last_change {
                spec.insert("lastChangeName".to_owned(), name.into());
                spec.insert("lastChange".to_owned(), change.clone());
            }
            let mut own = own.clone();
            own.note_last_change(&spec);
            own.record_uid.clone_from(&record.uid);
            RecordWrite { spec, own, lock: None, inline_inventory: inline.then(|| shards.concat()), labels: Vec::new() }
        };
        self.rewrite(record, write).await?;
        delete_shards(&*self.cluster, &self.app, &self.shards).await;
        Ok(())
    }

    /// Deletes the record and everything that belongs to it, because the app no longer exists: this history of it, too.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn close_deleted(mut self, history: &[Arc<Value>]) -> Result<(), AppError> {
        // Must not delete what another run has started since.
        self.lease().confirmed().await.map_err(|LockLost| self.changed())?;
        self.stop_renewal();
        history::delete(&*self.cluster, &self.app.namespace, history).await;
        let mut record = self.shared.record.lock().await.clone();
        if !self.shards.is_empty() {
            record = self.delete_all_shards(record).await?;
        }
        for attempt in 0.. {
            let options = DeleteOptions {
                uid: record.uid.clone(),
                resource_version: record.resource_version.clone(),
                ..DeleteOptions::default()
            };
            match self.cluster.delete(&record.address, &options).await {
                Ok(_) => break,
                Err(error) if error.kind == ErrorKind::NotFound => break,
                // Another client edited it, or a renewal was still in progress.
                Err(error) if error.kind == ErrorKind::Conflict && attempt < 5 => {
                    match reread(&*self.cluster, &record.address).await? {
                        Some(seen) if self.holds(&seen) => record = seen,
                        Some(_) => return Err(self.changed()),
                        None => break,
                    }
                }
                Err(error) => return Err(AppError::Cluster { action: "delete the app's record".to_owned(), error }),
            }
        }
        Ok(())
    }

    /// Deletes the shards of an app without objects, before its record: afterwards only another run of this app would
    /// find them. At no point does a record reference deleted shards, even if this is interrupted.
    async fn delete_all_shards(&self, record: Record) -> Result<Record, AppError> {
        let run = if self.local_lock.is_some() { "" } else { self.run.as_str() };
        let write = |record: &Record| {
            let mut own = OwnPart { record_uid: record.uid.clone(), ..OwnPart::new(Phase::Deleting, run) };
            own.note_last_change(&record.spec);
            let inline_inventory = Some(Inventory::default().to_shards().concat());
            RecordWrite {
                spec: record.spec.clone(),
                own,
                lock: record.lock.clone(),
                inline_inventory,
                labels: Vec::new(),
            }
        };
        let record = self.rewrite(record, write).await?;
        delete_shards(&*self.cluster, &self.app, &self.shards).await;
        Ok(record)
    }

    /// Writes the record even if another client has edited it since: while we hold the lock, our write wins.
    async fn rewrite(&self, mut record: Record, write: impl Fn(&Record) -> RecordWrite) -> Result<Record, AppError> {
        let mut attempts = 0;
        loop {
            let wanted = write(&record);
            match wanted.update(&*self.cluster, &self.app, &record).await {
                Err(AppError::Changed { .. }) if attempts < 5 => attempts += 1,
                written => return written,
            }
            let seen = reread(&*self.cluster, &record.address).await?.ok_or_else(|| self.changed())?;
            if seen.lock == wanted.lock && seen.own.as_ref() == Some(&wanted.own) {
                // Our own write succeeded, and its answer was lost.
                return Ok(seen);
            }
            if !self.holds(&seen) {
                return Err(self.changed());
            }
            record = seen;
        }
    }

    fn changed(&self) -> AppError {
        AppError::Changed { app: self.app.name.clone() }
    }

    fn holds(&self, record: &Record) -> bool {
        match &record.lock {
            Some(lock) => lock.run == self.run,
            None => self.local_lock.is_some(),
        }
    }

    fn stop_renewal(&mut self) {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop_renewal();
    }
}

/// Renews the lock in the background.
#[derive(Debug)]
struct Renewal {
    cluster: Arc<dyn Cluster>,
    app: AppName,
    run: String,
    shared: Arc<Shared>,
}

#[async_trait]
impl Renew for Renewal {
    async fn attempt(&mut self) -> Renewed {
        // Held during the request: `close` must see the resourceVersion that this write returns.
        let mut record = self.shared.record.lock().await;
        loop {
            let Some(lock) = &record.lock else { return Renewed::Unheard };
            let lock = LockEntry { renewals: lock.renewals + 1, ..lock.clone() };
            let started = boot_clock();
            match write_lock(&*self.cluster, &self.app, &record, Some(&lock)).await {
                Ok(renewed) => {
                    *record = renewed;
                    return Renewed::Since(started);
                }
                // Another client edited the record, or the answer to our own write was lost.
                Err(AppError::Changed { .. }) => match reread(&*self.cluster, &record.address).await {
                    Ok(Some(seen)) if seen.lock.as_ref().is_some_and(|lock| lock.run == self.run) => *record = seen,
                    Ok(_) => return Renewed::Lost,
                    Err(_) => return Renewed::Unheard,
                },
                Err(_) => return Renewed::Unheard,
            }
        }
    }
}
