//! Waits until the API servers store objects in the storage version of a definition. Before, a write that changes nothing
//! seems to prove what it does not.
//!
//! A server hears of a changed definition by a watch of its own. Its discovery tells what it has heard: the hash of the
//! storage version (`StorageVersionHash` in k8s.io/apiserver `pkg/endpoints/discovery/storageversionhash.go`, filled in
//! by k8s.io/apiextensions-apiserver `pkg/apiserver/customresource_discovery_controller.go`).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kind, ListQuery};
use pushback_events::Events;
use pushback_objects::ObjectExt;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::note;

/// Time that a server may take to hear of a definition.
const HEARING: Duration = Duration::from_secs(60);

/// Interval between looks.
const POLL: Duration = Duration::from_millis(250);

/// Time for the one API server whose discovery knows the definition: its handlers follow at once.
const ONE: Duration = Duration::from_secs(1);

/// Time for API servers whose discovery was not read.
const SEVERAL: Duration = Duration::from_secs(10);

/// The wait for the API servers of one cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettleTime {
    given: Option<Duration>,
    is_one: bool,
}

impl SettleTime {
    /// Counts the API servers. One that starts later reads the definition as it is then.
    pub(super) async fn in_cluster(cluster: &dyn Cluster, given: Option<Duration>) -> Self {
        Self { given, is_one: given.is_none() && servers(cluster).await == Some(1) }
    }

    /// Waits until the objects of a kind are stored in its version.
    ///
    /// # Errors
    /// The server still stores them in another one.
    pub(super) async fn await_storage(
        self,
        cluster: &dyn Cluster,
        kind: &Kind,
        events: &Events,
    ) -> Result<(), ClusterError> {
        let deadline = Instant::now() + HEARING;
        let has_heard = loop {
            match heard(kind, cluster.storage_version_hash(kind).await)? {
                Heard::Yes => break true,
                Heard::Unknown => break false,
                Heard::NotYet if Instant::now() < deadline => tokio::time::sleep(POLL).await,
                Heard::NotYet => return Err(unheard(kind)),
            }
        };
        self.pause(has_heard, events).await;
        Ok(())
    }

    /// Waits for the API servers that did not answer.
    pub(super) async fn await_others(self, events: &Events) {
        if !self.is_one {
            self.pause(false, events).await;
        }
    }

    async fn pause(self, has_heard: bool, events: &Events) {
        let default = if self.is_one && has_heard { ONE } else { SEVERAL };
        let pause = self.given.unwrap_or(default);
        if pause > ONE {
            note(events, format!("waiting {} s until every API server knows the definition", pause.as_secs()));
        }
        tokio::time::sleep(pause).await;
    }
}

/// What an answer of discovery says about the API server that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It stores objects in the version that is wanted.
    Yes,
    /// It stores them in another one, or does not serve this one yet.
    NotYet,
    /// It does not say.
    Unknown,
}

/// Reads an answer of discovery.
fn heard(kind: &Kind, answer: Result<Option<String>, ClusterError>) -> Result<Heard, ClusterError> {
    match answer {
        Ok(Some(hash)) if hash == storage_version_hash(kind) => Ok(Heard::Yes),
        Ok(Some(_)) => Ok(Heard::NotYet),
        Ok(None) => Ok(Heard::Unknown),
        Err(error) => match error.kind {
            ErrorKind::UnknownKind | ErrorKind::NotFound => Ok(Heard::NotYet),
            ErrorKind::Forbidden => Ok(Heard::Unknown),
            _ => Err(error),
        },
    }
}

/// The hash that a server gives while it stores objects of a kind in this version.
fn storage_version_hash(kind: &Kind) -> String {
    let Kind { group, version, kind, .. } = kind;
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    BASE64.encode(digest.iter().copied().take(8).collect::<Vec<u8>>())
}

fn unheard(kind: &Kind) -> ClusterError {
    let message = format!(
        "the API server still stores {}.{} in another version than {}: it has not heard of the changed CRD for {} s; \
         run this again when it has",
        kind.plural,
        kind.group,
        kind.version,
        HEARING.as_secs()
    );
    ClusterError::new(ErrorKind::Timeout, message)
}

/// The number of API servers, by the leases that they hold; `None` if it cannot be read.
async fn servers(cluster: &dyn Cluster) -> Option<usize> {
    let kinds = cluster.kinds().await.ok()?;
    let leases = kinds.preferred("coordination.k8s.io", "Lease")?;
    let selector = "apiserver.kubernetes.io/identity=kube-apiserver";
    let query = ListQuery::new(Arc::clone(leases), Some("kube-system"), selector);
    let page = cluster.list(&query).await.ok()?;
    page.items.iter().all(|lease| !lease.name().is_empty()).then_some(page.items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Kind {
        let text = str::to_owned;
        Kind { group: text("ex.com"), version: text("v2"), kind: text("Cog"), plural: text("cogs"), ..Kind::default() }
    }

    fn hash_of(version: &str) -> Result<Option<String>, ErrorKind> {
        Ok(Some(storage_version_hash(&Kind { version: version.to_owned(), ..kind() })))
    }

    #[test]
    fn only_the_hash_of_the_storage_version_shows_that_a_server_has_heard_of_it() {
        let answered = |answer: Result<Option<String>, ErrorKind>| {
            let answer = answer.map_err(|kind| ClusterError::new(kind, "no answer"));
            heard(&kind(), answer).map_err(|error| error.kind)
        };
        assert_eq!(answered(hash_of("v2")), Ok(Heard::Yes));
        assert_eq!(answered(hash_of("v1")), Ok(Heard::NotYet));
        assert_eq!(answered(Err(ErrorKind::NotFound)), Ok(Heard::NotYet));
        assert_eq!(answered(Err(ErrorKind::UnknownKind)), Ok(Heard::NotYet));
        assert_eq!(answered(Ok(None)), Ok(Heard::Unknown));
        assert_eq!(answered(Err(ErrorKind::Forbidden)), Ok(Heard::Unknown));
        assert_eq!(answered(Err(ErrorKind::Unreachable)), Err(ErrorKind::Unreachable));
    }
}
