//! One pass over all objects of a definition: each is rewritten at the storage version. A pass that changes nothing
//! proves that every object was stored in it already.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, stream};
use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kind, ListQuery, Pages, Turn, server_message};
use pushback_objects::ObjectExt;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::rewrite::{Effects, Rewrite, RewriteOptions, rewrite};

/// Most failures that are kept with their messages.
const KEPT_FAILURES: usize = 20;

/// Which objects a process rewrites, if several share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of this shard, from 0.
    pub index: u32,
    /// Number of all shards.
    pub count: u32,
}

impl Shard {
    /// Whether an object belongs to this shard. The same in every process and version.
    #[must_use]
    pub fn holds(self, namespace: &str, name: &str) -> bool {
        // FNV-1a.
        let bytes = namespace.bytes().chain([b'/']).chain(name.bytes());
        let hash = bytes
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        // The low bits of the hash alone are not spread well.
        (hash ^ (hash >> 32)) % u64::from(self.count.max(1)) == u64::from(self.index)
    }
}

/// How fast a pass works.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Objects that are rewritten at the same time.
    pub workers: usize,
    /// Most writes a second; `None` for as many as the server takes.
    pub per_second: Option<u32>,
    /// Objects a page.
    pub page: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { workers: 8, per_second: None, page: 500 }
    }
}

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassCount {
    /// Objects that the pass came to.
    pub objects: u64,
    /// Objects whose stored bytes changed.
    pub rewritten: u64,
    /// Of these, objects of which a second write changed nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub confirmed: u64,
    /// Objects that were stored in the storage version already.
    pub unchanged: u64,
    /// Objects that were deleted on the way.
    pub gone: u64,
    /// Objects whose generation grew: a default was added or a field pruned.
    pub generation_grew: u64,
    /// Objects whose field owners were moved to the storage version.
    pub owners_moved: u64,
    /// Objects whose field owners could not be moved.
    pub owners_at_risk: u64,
    /// Objects that could not be rewritten.
    pub failed: u64,
    /// The first of them, with the server's words.
    pub failures: Vec<RewriteFailure>,
}

/// An object that could not be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RewriteFailure {
    /// `namespace/name`, or the name.
    pub object: String,
    /// The server's words.
    pub message: String,
    /// The version that it can be read in, if the conversion webhook cannot convert it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable_in: Option<String>,
}

impl PassCount {
    /// Whether the last write of every object changed no stored byte, so that each is stored in the storage version.
    #[must_use]
    pub fn proves(&self) -> bool {
        self.rewritten == self.confirmed && self.failed == 0
    }

    fn add(&mut self, object: &Value, outcome: Result<Rewrite, ClusterError>) -> Result<(), ClusterError> {
        self.objects += 1;
        match outcome {
            Ok(Rewrite::Gone) => self.gone += 1,
            Ok(Rewrite::Unchanged) => self.unchanged += 1,
            Ok(outcome @ (Rewrite::Rewritten(effects) | Rewrite::Confirmed(effects))) => {
                let Effects { generation_grew, owners_moved, owners_at_risk } = effects;
                self.rewritten += 1;
                self.confirmed += u64::from(matches!(outcome, Rewrite::Confirmed(_)));
                self.generation_grew += u64::from(generation_grew);
                self.owners_moved += u64::from(owners_moved);
                self.owners_at_risk += u64::from(owners_at_risk);
            }
            Err(error) if concerns_all(&error) => return Err(error),
            Err(error) => {
                self.failed += 1;
                self.add_failure(object, error.message, None);
            }
        }
        Ok(())
    }

    fn add_unconverted(&mut self, object: &Value, error: ClusterError, readable_in: &str) {
        self.objects += 1;
        self.failed += 1;
        self.add_failure(object, error.message, Some(readable_in.to_owned()));
    }

    fn add_failure(&mut self, object: &Value, message: String, readable_in: Option<String>) {
        if self.failures.len() < KEPT_FAILURES {
            self.failures.push(RewriteFailure { object: object.full_name(), message, readable_in });
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Whether an error would meet every object: no access, no server, no conversion webhook.
fn concerns_all(error: &ClusterError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Unauthorized
            | ErrorKind::Forbidden
            | ErrorKind::Unreachable
            | ErrorKind::WebhookUnavailable
            | ErrorKind::UnknownKind
            | ErrorKind::TurnedAway
            | ErrorKind::Configuration
    )
}

/// A pass over the objects of one kind, which is the kind in the storage version.
#[derive(Debug)]
pub struct Pass<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The kind, in the storage version.
    pub kind: Arc<Kind>,
    /// The kind in the other served versions.
    pub others: Vec<Arc<Kind>>,
    /// How fast.
    pub pace: Pace,
    /// Only these objects.
    pub shard: Option<Shard>,
    /// How each object is rewritten.
    pub rewrite: RewriteOptions,
}

impl Pass<'_> {
    /// Walks all objects from a continue token, or from the first, and counts what it does. `after_page` is told after
    /// each page what was done so far and where the next page starts.
    ///
    /// # Errors
    /// An error that concerns all objects; what failed for one object is counted.
    pub async fn run(
        &self,
        from: &str,
        count: &mut PassCount,
        after_page: &mut dyn AfterPage,
    ) -> Result<(), ClusterError> {
        let query = ListQuery {
            limit: self.pace.page,
            continue_token: from.to_owned(),
            metadata_only: true,
            ..ListQuery::new(Arc::clone(&self.kind), None, "")
        };
        let clock = self.pace.per_second.map(paced);
        // What is added while the list goes on is new, and stored as the definition says.
        let mut pages = Pages::of(self.cluster, query).going_on();
        loop {
            let page = match pages.next().await {
                Ok(Some(Turn::Page(page))) => page,
                Ok(Some(Turn::Restart)) => continue,
                Ok(None) => break,
                Err(error) if error.kind == ErrorKind::WebhookUnavailable => {
                    return self.run_apart(error, count, clock.as_ref()).await;
                }
                Err(error) => return Err(error),
            };
            self.rewrite_page(&page.items, None, count, clock.as_ref()).await?;
            after_page.page(count, &page.continue_token).await;
        }
        count.failures.sort_by(|one, other| one.object.cmp(&other.object));
        Ok(())
    }

    /// Rewrites the objects that another version lists. A webhook that cannot convert one object fails the list of all,
    /// except at the version in which the object is stored.
    ///
    /// # Errors
    /// The given error of the first list, if no version can be listed; an error that concerns all objects.
    async fn run_apart(
        &self,
        error: ClusterError,
        count: &mut PassCount,
        clock: Option<&Mutex<Interval>>,
    ) -> Result<(), ClusterError> {
        for kind in &self.others {
            *count = PassCount::default();
            let query =
                ListQuery { limit: self.pace.page, metadata_only: true, ..ListQuery::new(Arc::clone(kind), None, "") };
            let mut pages = Pages::of(self.cluster, query).going_on();
            loop {
                match pages.next().await {
                    Ok(Some(Turn::Page(page))) => {
                        self.rewrite_page(&page.items, Some(&kind.version), count, clock).await?;
                    }
                    Ok(Some(Turn::Restart)) => {}
                    Ok(None) => {
                        count.failures.sort_by(|one, other| one.object.cmp(&other.object));
                        return Ok(());
                    }
                    Err(error) if error.kind == ErrorKind::WebhookUnavailable => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(error)
    }

    /// Rewrites the objects of a page. Those that the webhook cannot convert are counted if another version lists them.
    async fn rewrite_page(
        &self,
        items: &[Arc<Value>],
        readable_in: Option<&str>,
        count: &mut PassCount,
        clock: Option<&Mutex<Interval>>,
    ) -> Result<(), ClusterError> {
        let mine = items.iter().filter(|object| self.holds(object));
        // Boxed one by one: the compiler cannot see that a stream of closures is `Send`.
        let mine: Vec<_> = mine.map(|object| self.rewrite_one(object, clock).boxed()).collect();
        let mut writes = stream::iter(mine).buffer_unordered(self.pace.workers.max(1));
        while let Some((object, outcome)) = writes.next().await {
            match (outcome, readable_in) {
                (Err(error), Some(version)) if server_message::refuses_conversion(&error.message) => {
                    count.add_unconverted(object, error, version);
                }
                (outcome, _) => count.add(object, outcome)?,
            }
        }
        Ok(())
    }

    fn holds(&self, object: &Value) -> bool {
        self.shard.is_none_or(|shard| shard.holds(object.namespace(), object.name()))
    }

    async fn rewrite_one<'o>(
        &self,
        object: &'o Value,
        clock: Option<&Mutex<Interval>>,
    ) -> (&'o Value, Result<Rewrite, ClusterError>) {
        if let Some(clock) = clock {
            clock.lock().await.tick().await;
        }
        (object, rewrite(self.cluster, &self.kind, object, self.rewrite).await)
    }
}

/// Is told of each page.
#[async_trait]
pub trait AfterPage: Send {
    /// A page is done; the next one starts at this token, which is empty after the last.
    async fn page(&mut self, count: &PassCount, next: &str);
}

fn paced(per_second: u32) -> Mutex<Interval> {
    let mut clock = interval(Duration::from_secs(1) / per_second.max(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Mutex::new(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_belongs_to_exactly_one_shard_and_shards_are_of_similar_size() {
        let names: Vec<String> = (0..4000).map(|number| format!("object-{number}")).collect();
        let mut sizes = [0_u32; 4];
        for name in &names {
            let holders: Vec<u32> =
                (0..4).filter(|index| Shard { index: *index, count: 4 }.holds("shop", name)).collect();
            assert_eq!(holders.len(), 1, "{name}");
            sizes[holders[0] as usize] += 1;
        }
        assert!(sizes.iter().all(|size| (800..1200).contains(size)), "{sizes:?}");
    }
}
