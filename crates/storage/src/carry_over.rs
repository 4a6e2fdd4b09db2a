//! Carries the objects of a definition through its update: by a definition that has the old and the new versions, and by
//! moving them to the storage version. Every step looks at what is live, so that a killed run goes on where it was.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pushback_app::lease::Lease;
use pushback_cluster::{Address, ApplyOptions, Cluster, ClusterError, ErrorKind, Kind, ListQuery, Written, guarded};
use pushback_conversion::ConversionPlans;
use pushback_crd::definition::{Blocker, CONVERTING, CarryOver, StoragePolicy, StoredState};
use pushback_crd::schema::pipeline::Server;
use pushback_events::Events;
use pushback_objects::ObjectExt;
use pushback_objects::text::counted;
use serde_json::Value;
use tokio::time::Instant;

use super::converting::Conversion;
use super::definitions;
use super::losses;
use super::migrate::{Migrate, MigrateError, MigrateOptions};
use super::note;
use super::pass::Pace;
use super::settling::SettleTime;

/// How long the API server may take to serve the versions of a changed definition.
const SERVING: Duration = Duration::from_secs(60);

/// Interval between looks.
const POLL: Duration = Duration::from_millis(250);

/// What may be done about stored objects, and how.
#[derive(Clone, Debug, Default)]
pub struct StorageOptions {
    /// What may be done.
    pub policy: StoragePolicy,
    /// How objects are converted whose fields differ between versions.
    pub plans: Arc<ConversionPlans>,
    /// Folder for objects as they were before they are converted.
    pub backup: Option<PathBuf>,
}

/// Carries the objects of one definition over.
#[derive(Debug)]
pub struct CarryingOver<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The kind of definitions.
    pub definitions: Arc<Kind>,
    /// Name of the definition.
    pub name: &'a str,
    /// Namespace of the record of progress.
    pub namespace: String,
    /// How objects are converted, if their fields differ.
    pub conversion: Option<&'a Conversion>,
    /// The lock that must hold for a definition to be written; without one, only that nobody else has written it since.
    pub lock: Option<&'a Lease>,
}

impl CarryingOver<'_> {
    /// What is to be done before the definition is written.
    ///
    /// # Errors
    /// The objects could not be carried over; they are all readable in their old version then.
    pub async fn before(&self, carry_over: &CarryOver, events: &Events) -> Result<(), ClusterError> {
        match carry_over {
            CarryOver::After | CarryOver::Done | CarryOver::WebhookFirst(_) => Ok(()),
            CarryOver::Before => self.migrate(events).await,
            CarryOver::Bridge(bridge) => {
                let live = definitions::one(self.cluster, &self.definitions, self.name).await?;
                match self.conversion {
                    Some(conversion) => self.convert(bridge, live, conversion, events).await?,
                    None if StoredState::of(&live).storage != StoredState::of(bridge).storage => {
                        self.loses_nothing(&live, bridge).await?;
                        self.write(bridge, &live).await?;
                    }
                    None => {}
                }
                self.migrate(events).await
            }
        }
    }

    /// What is to be done after the definition was written.
    ///
    /// # Errors
    /// As [`Self::before`].
    pub async fn after(&self, carry_over: &CarryOver, events: &Events) -> Result<(), ClusterError> {
        if *carry_over == CarryOver::After { self.migrate(events).await } else { Ok(()) }
    }

    /// Writes the definition that takes objects of both shapes, unless an earlier run did, and converts them.
    async fn convert(
        &self,
        bridge: &Value,
        mut live: Arc<Value>,
        conversion: &Conversion,
        events: &Events,
    ) -> Result<(), ClusterError> {
        if live.annotation(CONVERTING).is_none() {
            // Of an object that is stored in another version, nobody would know which one.
            if !StoredState::of(&live).is_settled() {
                self.migrate(events).await?;
                live = definitions::one(self.cluster, &self.definitions, self.name).await?;
            }
            if let Some(message) = conversion.check(self.cluster, &live).await?.sentence() {
                return Err(ClusterError::new(ErrorKind::Denied, message));
            }
            self.write(bridge, &live).await?;
            live = definitions::one(self.cluster, &self.definitions, self.name).await?;
        }
        self.await_served().await?;
        self.await_unserved(conversion.from(), &live).await?;
        let state = StoredState::of(&live);
        let kind = definitions::object_kind(&state, state.storage.as_deref().unwrap_or_default(), false);
        let settling = SettleTime::in_cluster(self.cluster, None).await;
        settling.await_storage(self.cluster, &kind, events).await?;
        let count = conversion.run(self.cluster, &live).await?;
        note(events, format!("{}: {} converted from {}", self.name, counted(count, "object"), conversion.from()));
        Ok(())
    }

    /// Writes a form of the definition, if nobody has changed it since it was read.
    ///
    /// # Errors
    /// The cluster's error, or that the lock was lost.
    pub async fn write(&self, form: &Value, live: &Value) -> Result<Written, ClusterError> {
        if self.lock.is_some_and(|lock| !lock.holds()) {
            return Err(ClusterError::new(ErrorKind::TurnedAway, "the lock was lost"));
        }
        self.cluster.apply(&self.address(), &guarded(form, live), ApplyOptions::WRITE).await
    }

    /// Refuses if an object would lose a field: without a conversion only `apiVersion` changes.
    async fn loses_nothing(&self, live: &Value, bridge: &Value) -> Result<(), ClusterError> {
        match losses::find(self.cluster, live, bridge, Server::default()).await? {
            losses if losses.affected == 0 => Ok(()),
            losses => Err(ClusterError::new(ErrorKind::Denied, losses.sentence())),
        }
    }

    async fn migrate(&self, events: &Events) -> Result<(), ClusterError> {
        self.await_served().await?;
        let options = MigrateOptions {
            pace: Pace::default(),
            settle: None,
            keep_owners: true,
            shard: None,
            dry_run: false,
            verify_only: false,
            are_converted: self.conversion.is_some(),
            namespace: self.namespace.clone(),
        };
        let migrate = Migrate {
            cluster: self.cluster,
            definitions: self.definitions.clone(),
            name: self.name,
            options: &options,
        };
        let done = match migrate.run(events).await {
            Ok(done) => done,
            Err(MigrateError::Cluster { error, .. }) => return Err(error),
            Err(error) => return Err(ClusterError::new(ErrorKind::Denied, error.to_string())),
        };
        let rewritten: u64 = done.passes.iter().map(|pass| pass.rewritten).sum();
        if let Some(failure) = done.passes.iter().flat_map(|pass| &pass.failures).next() {
            let failed: u64 = done.passes.iter().map(|pass| pass.failed).sum();
            let objects = counted(failed, "object");
            let message = format!("{objects} cannot be moved, such as {}: {}", failure.object, failure.message);
            return Err(ClusterError::new(ErrorKind::Denied, message));
        }
        if !done.proved {
            let message = "others keep writing objects in another version, so that nothing could be proved";
            return Err(ClusterError::new(ErrorKind::Conflict, message));
        }
        note(events, format!("{}: {rewritten} objects moved to {}, and proved", self.name, done.storage));
        Ok(())
    }

    /// Waits until the API server serves the storage version of the definition as it is now.
    async fn await_served(&self) -> Result<(), ClusterError> {
        let deadline = Instant::now() + SERVING;
        loop {
            let state = StoredState::of(&*definitions::one(self.cluster, &self.definitions, self.name).await?);
            let storage = state.storage.clone().unwrap_or_default();
            let kind = definitions::object_kind(&state, &storage, false);
            let query = ListQuery { limit: 1, metadata_only: true, ..ListQuery::new(kind, None, "") };
            let answer = match state.is_served(&storage) {
                Some(true) if is_ready(&state) => self.cluster.list(&query).await.map(drop),
                // The migration says what is in the way.
                _ if Instant::now() >= deadline => return Ok(()),
                _ => Err(ClusterError::new(ErrorKind::UnknownKind, "not served yet")),
            };
            match answer {
                Err(error)
                    if matches!(error.kind, ErrorKind::UnknownKind | ErrorKind::NotFound)
                        && Instant::now() < deadline =>
                {
                    tokio::time::sleep(POLL).await;
                }
                answer => return answer,
            }
        }
    }

    /// Waits until the API server no longer serves the old version: then it no longer prunes by the old definition.
    async fn await_unserved(&self, version: &str, live: &Value) -> Result<(), ClusterError> {
        let deadline = Instant::now() + SERVING;
        let kind = definitions::object_kind(&StoredState::of(live), version, false);
        let query = ListQuery { limit: 1, metadata_only: true, ..ListQuery::new(kind, None, "") };
        loop {
            match self.cluster.list(&query).await {
                Err(error) if matches!(error.kind, ErrorKind::UnknownKind | ErrorKind::NotFound) => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) if Instant::now() >= deadline => {
                    let message = format!("the API server still serves {version} of {}", self.name);
                    return Err(ClusterError::new(ErrorKind::Conflict, message));
                }
                Ok(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    fn address(&self) -> Address {
        definitions::address(&self.definitions, self.name)
    }
}

fn is_ready(state: &StoredState) -> bool {
    state.blockers().iter().all(|blocker| matches!(blocker, Blocker::Converting(_)))
}
