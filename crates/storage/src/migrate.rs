//! Moves the objects of one definition to its storage version: passes until one changes nothing, which proves it, then
//! takes the other versions off `status.storedVersions`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kind, Patch};
use pushback_crd::definition::{Blocker, StoredState};
use pushback_events::Events;
use serde::Serialize;
use serde_json::{Value, json};

use super::pass::{AfterPage, Pace, Pass, PassCount, Shard};
use super::record::{Progress, ProgressRecord};
use super::rewrite::RewriteOptions;
use super::rights;
use super::settling::SettleTime;
use super::{definitions, note};

/// Objects between two messages about progress.
const BETWEEN_MESSAGES: u64 = 5_000;

/// Most passes: the first writes, the second proves it; others that write at the same time can make a third do work.
const PASSES: u32 = 4;

/// Most attempts to prune the list of stored versions while others write the definition.
const PRUNE_ATTEMPTS: u32 = 5;

/// Options of a migration.
#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// How fast.
    pub pace: Pace,
    /// How long to wait for API servers after the one that answers knows the storage version; by default as long as
    /// their number needs.
    pub settle: Option<Duration>,
    /// Whether field owners are moved to the storage version.
    pub keep_owners: bool,
    /// Only these objects.
    pub shard: Option<Shard>,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether only the proof is asked for: the list of stored versions stays.
    pub verify_only: bool,
    /// Whether objects that are converted by a plan have been converted.
    pub are_converted: bool,
    /// Namespace of the record of progress.
    pub namespace: String,
}

/// What was done for one definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// Name of the definition.
    pub definition: String,
    /// The storage version.
    pub storage: String,
    /// `status.storedVersions` before.
    pub stored_before: Vec<String>,
    /// `status.storedVersions` now.
    pub stored: Vec<String>,
    /// What each pass did.
    pub passes: Vec<PassCount>,
    /// Whether the last pass proved that no object is left in another version.
    pub proved: bool,
    /// Shards whose objects are not written yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards_left: Vec<u32>,
}

/// Why a migration ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MigrateError {
    /// The objects cannot be written.
    #[error("{definition} cannot be migrated: {}", .blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Blocked {
        /// Name of the definition.
        definition: String,
        /// What is in the way.
        blockers: Vec<Blocker>,
    },
    /// The definition changed meanwhile.
    #[error("{definition} was changed during the migration; nothing was taken off its stored versions")]
    Changed {
        /// Name of the definition.
        definition: String,
    },
    /// The definition was deleted meanwhile.
    #[error("{definition} was deleted during the migration, and its objects with it")]
    Deleted {
        /// Name of the definition.
        definition: String,
    },
    /// The cluster's error, which concerns all objects.
    #[error("{definition}: {error}")]
    Cluster {
        /// Name of the definition.
        definition: String,
        /// The error.
        error: ClusterError,
        /// What was done before it.
        done: Box<Option<Migration>>,
    },
}

/// A migration of one definition.
#[derive(Debug)]
pub struct Migrate<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The kind of definitions.
    pub definitions: Arc<Kind>,
    /// Name of the definition.
    pub name: &'a str,
    /// Options.
    pub options: &'a MigrateOptions,
}

impl Migrate<'_> {
    /// Migrates.
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub async fn run(&self, events: &Events) -> Result<Migration, MigrateError> {
        let (state, has_status) = self.state().await?;
        let mut blockers = state.blockers();
        blockers.retain(|blocker| !(self.options.are_converted && matches!(blocker, Blocker::Converting(_))));
        let Some(storage) = state.storage.clone().filter(|_| blockers.is_empty()) else {
            return Err(MigrateError::Blocked { definition: self.name.to_owned(), blockers });
        };
        if !self.options.dry_run {
            rights::require(self.cluster, &state).await.map_err(|error| self.failed(error, None))?;
        }
        let mut done = Migration {
            definition: self.name.to_owned(),
            stored_before: state.stored.clone(),
            stored: state.stored.clone(),
            passes: Vec::new(),
            proved: false,
            shards_left: Vec::new(),
            storage: storage.clone(),
        };
        let kind = definitions::object_kind(&state, &storage, has_status);
        // A proof needs it as much as a write.
        let settling = match self.options.dry_run {
            true => None,
            false => Some(SettleTime::in_cluster(self.cluster, self.options.settle).await),
        };
        match self.passes(&state, kind, &mut done, settling, events).await {
            Ok(()) if done.proved && !self.options.verify_only => {}
            Ok(()) => return Ok(done),
            Err(error) => return Err(self.ended(error, done).await),
        }
        if let Some(settling) = settling {
            settling.await_others(events).await;
        }
        let stored = match self.prune(&state).await {
            Ok(stored) => stored.ok_or_else(|| MigrateError::Changed { definition: self.name.to_owned() })?,
            Err(error) => return Err(self.ended(error, done).await),
        };
        Ok(Migration { stored, ..done })
    }

    fn failed(&self, error: ClusterError, done: Option<Migration>) -> MigrateError {
        MigrateError::Cluster { definition: self.name.to_owned(), error, done: Box::new(done) }
    }

    /// An error on the way, which may be that there is nothing to migrate any more.
    async fn ended(&self, error: ClusterError, done: Migration) -> MigrateError {
        if matches!(error.kind, ErrorKind::UnknownKind | ErrorKind::NotFound) {
            let definition = definitions::one(self.cluster, &self.definitions, self.name).await;
            if definition.is_err_and(|error| error.kind == ErrorKind::NotFound) {
                for record in self.records() {
                    // Without the permission it stays; a definition of this name has another uid, and starts anew.
                    let _ = record.remove(self.cluster).await;
                }
                return MigrateError::Deleted { definition: self.name.to_owned() };
            }
        }
        self.failed(error, Some(done))
    }

    async fn state(&self) -> Result<(StoredState, bool), MigrateError> {
        let definition = definitions::one(self.cluster, &self.definitions, self.name).await;
        let definition = definition.map_err(|error| self.failed(error, None))?;
        let state = StoredState::of(&definition);
        let has_status = offers_status(&definition, state.storage.as_deref().unwrap_or_default());
        Ok((state, has_status))
    }

    async fn passes(
        &self,
        state: &StoredState,
        kind: Arc<Kind>,
        done: &mut Migration,
        settling: Option<SettleTime>,
        events: &Events,
    ) -> Result<(), ClusterError> {
        let options = self.options;
        let rewrite = RewriteOptions {
            keep_owners: options.keep_owners,
            dry_run: options.dry_run,
            // The first pass of a migration writes everything: the second confirms it at half the price.
            confirm: options.verify_only,
        };
        let others = state.versions.iter().filter(|(version, served)| *served && *version != kind.version);
        let others = others.map(|(version, _)| definitions::object_kind(state, version, false)).collect();
        let mut pass = Pass {
            cluster: self.cluster,
            kind: Arc::clone(&kind),
            others,
            pace: options.pace,
            shard: options.shard,
            rewrite,
        };
        let record = ProgressRecord::of(&options.namespace, self.name, options.shard);
        let writes = self.writes();
        let (mut may_exist, known) = if writes { record.read(self.cluster, state).await? } else { (true, None) };
        let mut progress = known.unwrap_or_else(|| Progress::fresh(state));
        if !progress.next.is_empty() {
            note(events, format!("{}: goes on where an earlier run stopped, as {} says", self.name, record.name()));
        }
        if let Some(settling) = settling {
            settling.await_storage(self.cluster, &kind, events).await?;
        }
        let mut number = 0;
        if !progress.written {
            number = 1;
            let from = progress.next.clone();
            let keep = writes.then_some((&record, &mut progress));
            let mut page = Paged {
                migrate: self,
                events,
                pass: number,
                keep,
                is_recorded: true,
                has_recorded: false,
                reported: 0,
            };
            let count = pass_of(done);
            pass.run(&from, count, &mut page).await?;
            may_exist |= page.has_recorded;
            let is_proof = count.proves() && from.is_empty() && !options.dry_run;
            let has_failed = count.failed > 0;
            if options.dry_run || has_failed {
                return Ok(());
            }
            progress.written = true;
            progress.next.clear();
            // Records of one run are only of use to other shards.
            if writes && options.shard.is_some() {
                self.record(&record, &progress, events).await;
            }
            done.proved = is_proof && options.shard.is_none();
        }
        if let Some(Shard { count, .. }) = options.shard {
            done.shards_left = self.shards_left(state, count).await?;
            if !done.shards_left.is_empty() {
                return Ok(());
            }
            // One proof for all shards.
            pass.shard = None;
        }
        pass.rewrite.confirm = true;
        while !done.proved && number < PASSES {
            number += 1;
            let mut page = Paged {
                migrate: self,
                events,
                pass: number,
                keep: None,
                is_recorded: true,
                has_recorded: false,
                reported: 0,
            };
            let count = pass_of(done);
            pass.run("", count, &mut page).await?;
            let (proves, has_failed) = (count.proves(), count.failed > 0);
            done.proved = proves;
            if has_failed {
                return Ok(());
            }
        }
        if may_exist || options.shard.is_some() {
            for record in self.records() {
                record.remove(self.cluster).await?;
            }
        }
        Ok(())
    }

    /// The records of all shards, or the one of the whole.
    fn records(&self) -> Vec<ProgressRecord> {
        let of = |shard| ProgressRecord::of(&self.options.namespace, self.name, shard);
        match self.options.shard {
            None => vec![of(None)],
            Some(Shard { count, .. }) => (0..count).map(|index| of(Some(Shard { index, count }))).collect(),
        }
    }

    async fn shards_left(&self, state: &StoredState, count: u32) -> Result<Vec<u32>, ClusterError> {
        let mut left = Vec::new();
        for index in 0..count {
            let record = ProgressRecord::of(&self.options.namespace, self.name, Some(Shard { index, count }));
            if !record.read(self.cluster, state).await?.1.is_some_and(|progress| progress.written) {
                left.push(index);
            }
        }
        Ok(left)
    }

    /// Records progress. Without the permission the migration goes on: it can then not be resumed.
    async fn record(&self, record: &ProgressRecord, progress: &Progress, events: &Events) -> bool {
        match record.write(self.cluster, progress).await {
            Ok(()) => true,
            Err(error) => {
                note(events, format!("progress is not recorded in {}: {error}", record.name()));
                false
            }
        }
    }

    fn writes(&self) -> bool {
        !(self.options.dry_run || self.options.verify_only)
    }

    /// Lists the storage version alone as stored; `None` if the definition is not the one that the proof is about.
    async fn prune(&self, proved: &StoredState) -> Result<Option<Vec<String>>, ClusterError> {
        let storage = proved.storage.clone().unwrap_or_default();
        let address = definitions::address(&self.definitions, self.name);
        for _ in 0..PRUNE_ATTEMPTS {
            let now = StoredState::of(&*definitions::one(self.cluster, &self.definitions, self.name).await?);
            if !proved.is_unchanged_in(&now) {
                return Ok(None);
            }
            if now.is_settled() {
                return Ok(Some(now.stored));
            }
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": now.resource_version}, "status": {"storedVersions": [storage]},
            }));
            let status = Address { subresource: "status".to_owned(), ..address.clone() };
            match self.cluster.patch(&status, &patch, false).await {
                Err(error) if error.kind == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
                Ok(written) => return Ok(Some(StoredState::of(&written.object).stored)),
            }
        }
        Ok(None)
    }
}

/// The count of the pass that begins.
fn pass_of(done: &mut Migration) -> &mut PassCount {
    let number = done.passes.len();
    done.passes.push(PassCount::default());
    &mut done.passes[number]
}

/// Whether a version has the status subresource.
fn offers_status(definition: &Value, version: &str) -> bool {
    pushback_crd::definition::Crd::of(definition).version(version).is_some_and(|version| version.status)
}

/// Tells of each page, and records it.
struct Paged<'a> {
    migrate: &'a Migrate<'a>,
    events: &'a Events,
    pass: u32,
    keep: Option<(&'a ProgressRecord, &'a mut Progress)>,
    /// Whether it is worth another try.
    is_recorded: bool,
    /// Whether it was tried.
    has_recorded: bool,
    /// Objects at the last message.
    reported: u64,
}

#[async_trait]
impl AfterPage for Paged<'_> {
    async fn page(&mut self, count: &PassCount, next: &str) {
        if count.objects >= self.reported + BETWEEN_MESSAGES {
            self.reported = count.objects;
            let (definition, pass, PassCount { objects, rewritten, .. }) = (self.migrate.name, self.pass, count);
            note(self.events, format!("{definition}: pass {pass}: {objects} objects, {rewritten} rewritten"));
        }
        let Some((record, progress)) = &mut self.keep else { return };
        // After a failure the record stays: the next run comes to that object again.
        if next.is_empty() || !self.is_recorded || count.failed > 0 {
            return;
        }
        next.clone_into(&mut progress.next);
        self.has_recorded = true;
        self.is_recorded = self.migrate.record(record, progress, self.events).await;
    }
}
