//! Namespaces that the set creates and that do not exist yet: objects in them cannot be dry-run there. The server is
//! asked in another namespace instead, for what does not depend on it: whether the fields are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future;
use pushback_cluster::{Address, ApplyOptions, Cause, Cluster, ClusterError, ErrorKind, Kind};
use pushback_objects::ObjectKey;
use pushback_preflight::Verification;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::body::Body;
use super::desired::Desired;
use super::guard::{free_name, is_of_a_free_name, only_new};
use super::live::Live;
use super::refusal::Refusal;
use super::{Action, Planned};

/// The missing namespaces of a set.
#[derive(Debug, Default)]
pub(super) struct Absent {
    namespaces: BTreeMap<String, Missing>,
    /// The record's namespace, which must exist anyway; empty if it is itself missing.
    elsewhere: String,
    /// Whether this user may send requests there, by kind: determined by one request each.
    may_ask: BTreeMap<Arc<Kind>, OnceCell<bool>>,
}

/// A missing namespace.
#[derive(Debug)]
struct Missing {
    key: ObjectKey,
    /// Whether the set only waits for somebody else to create it.
    is_awaited: bool,
}

impl Absent {
    /// Finds the namespaces that the set creates and uses and that do not exist.
    ///
    /// # Errors
    /// The cluster cannot be reached. A namespace that may not be read counts as existing.
    pub(super) async fn find(
        cluster: &dyn Cluster,
        home: &str,
        live: &Live,
        desired: &[Desired],
    ) -> Result<Self, ClusterError> {
        if !cluster.capabilities().server {
            return Ok(Self::default());
        }
        let filled: BTreeSet<&str> = desired.iter().map(|wanted| wanted.object.namespace.as_str()).collect();
        let brought = desired.iter().filter(|wanted| {
            let object = &wanted.object;
            let is_namespace = object.group.is_empty() && object.kind == "Namespace";
            is_namespace && filled.contains(object.name.as_str()) && !live.objects.contains_key(&object.key())
        });
        let looks = brought.map(|wanted| async move {
            let object = &wanted.object;
            let there = cluster.get(&Address::new(Arc::clone(&wanted.kind), "", &object.name)).await;
            match there {
                Ok(None) => {
                    let is_awaited = wanted.strategies.exists;
                    Ok(Some((object.name.clone(), Missing { key: object.key(), is_awaited })))
                }
                Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => Err(error),
                Ok(Some(_)) | Err(_) => Ok(None),
            }
        });
        let namespaces: BTreeMap<String, Missing> = future::try_join_all(looks).await?.into_iter().flatten().collect();
        let elsewhere = if namespaces.contains_key(home) { String::new() } else { home.to_owned() };
        let inside = desired.iter().filter(|wanted| namespaces.contains_key(&wanted.object.namespace));
        let may_ask = inside.map(|wanted| (Arc::clone(&wanted.kind), OnceCell::new())).collect();
        Ok(Self { namespaces, elsewhere, may_ask })
    }

    /// Whether an object belongs to a missing namespace.
    pub(super) fn lacks_namespace_of(&self, desired: &Desired) -> bool {
        desired.kind.namespaced && self.namespaces.contains_key(&desired.object.namespace)
    }

    /// The comparison of such an object: it is new, and before its namespace exists the server only validates its fields.
    pub(super) async fn compare(
        &self,
        cluster: &dyn Cluster,
        desired: &Desired,
        body: Body,
    ) -> Result<Planned, ClusterError> {
        let namespace = &desired.object.namespace;
        let missing = self.namespaces.get(namespace);
        let reason = match missing.is_some_and(|missing| missing.is_awaited) {
            true => format!("Namespace {namespace} does not exist yet"),
            false => format!("Namespace {namespace} is created by this run"),
        };
        let mut place = Address::new(Arc::clone(&desired.kind), &self.elsewhere, &desired.object.name);
        place.name = free_name(&desired.object.name, &body.value);
        let error = self.refusal(cluster, desired, &place, &body.value).await?;
        Ok(Planned {
            action: Action::Create,
            desired: Some(body.value),
            verification: Verification::NotVerified(reason),
            refused: error.map(|error| Box::new(Refusal { elsewhere: Some(place), ..*Refusal::new(error) })),
            after: missing.map(|missing| missing.key.clone()).into_iter().collect(),
            notes: body.notes,
            ..Planned::new(desired)
        })
    }

    /// The server's refusal that applies in any namespace.
    async fn refusal(
        &self,
        cluster: &dyn Cluster,
        desired: &Desired,
        place: &Address,
        body: &Value,
    ) -> Result<Option<ClusterError>, ClusterError> {
        let Some(may_ask) = self.may_ask.get(&place.kind).filter(|_| !self.elsewhere.is_empty()) else {
            return Ok(None);
        };
        let options = ApplyOptions::DRY_RUN;
        let moved = moved(body, place);
        let mut answer = None;
        let first = async {
            let answered = cluster.apply(place, &moved, options).await;
            let may_ask = !matches!(&answered, Err(error) if error.kind == ErrorKind::Forbidden);
            answer = Some(answered);
            may_ask
        };
        if !*may_ask.get_or_init(|| first).await {
            return Ok(None);
        }
        let answer = match answer {
            Some(answer) => answer,
            None => cluster.apply(place, &moved, options).await,
        };
        match answer {
            Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => Err(error),
            Err(error) => Ok(about_fields(error).map(|error| in_its_own_words(error, desired, place))),
            Ok(_) => Ok(None),
        }
    }
}

/// The body with another address, where no object of that name exists.
pub(super) fn moved(body: &Value, place: &Address) -> Value {
    let mut moved = only_new(body);
    if let Some(metadata) = moved.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), place.name.as_str().into());
        metadata.insert("namespace".to_owned(), place.namespace.as_str().into());
    }
    moved
}

/// The part of a refusal that applies in any namespace and under any name.
fn about_fields(mut error: ClusterError) -> Option<ClusterError> {
    if error.kind != ErrorKind::Invalid {
        return None;
    }
    let of_the_place = |cause: &Cause| is_of_a_free_name(cause) || cause.field == "metadata.namespace";
    let before = error.causes.len();
    error.causes.retain(|cause| !of_the_place(cause));
    (before == 0 || !error.causes.is_empty()).then_some(error)
}

/// The refusal as worded for the object's own address.
fn in_its_own_words(mut error: ClusterError, desired: &Desired, place: &Address) -> ClusterError {
    let object = &desired.object;
    let [asked, meant] = [(&place.namespace, &place.name), (&object.namespace, &object.name)]
        .map(|(namespace, name)| format!("{namespace}/{name}"));
    error.rewrite(|text| text.replace(&asked, &meant).replace(&place.name, &object.name));
    error
}
