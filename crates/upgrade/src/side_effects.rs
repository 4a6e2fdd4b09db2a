//! Unintended effects of an upgrade: lost data and configuration, restarted containers, orphaned objects. Recorded
//! before it and judged after it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use pushback_app::record::{AppError, AppName, observe};
use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kind, ListQuery, list_all};
use pushback_objects::object::is_custom_group;
use pushback_objects::{ObjectExt, ObjectKey};
use serde_json::Value;

use super::change::{Step, Target};
use super::loss;
use super::mark::MARK;
use super::steady::CheckResult;

/// ConfigMaps that the cluster puts into every namespace; they are created and deleted with it.
const IN_EVERY_NAMESPACE: [&str; 3] = ["kube-root-ca.crt", "istio-ca-root-cert", "openshift-service-ca.crt"];

/// State recorded before an upgrade.
#[derive(Default)]
pub struct Before {
    app: Option<AppName>,
    namespaces: Vec<String>,
    owned: BTreeSet<ObjectKey>,
    /// Custom resources.
    data: Vec<Arc<Value>>,
    /// Persistent volume claims.
    claims: Vec<Target>,
    /// ConfigMaps and Secrets that are not the app's.
    configuration: Vec<Arc<Value>>,
    /// Restart count by Pod uid and container name.
    restarts: BTreeMap<(String, String), i64>,
}

// It contains Secrets.
impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Before").field("app", &self.app).field("owned", &self.owned.len()).finish_non_exhaustive()
    }
}

/// Why the state could not be recorded or judged.
#[derive(Debug, thiserror::Error)]
pub enum SideEffectsError {
    /// The app's record cannot be read.
    #[error(transparent)]
    App(#[from] AppError),
    /// The cluster's error.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Records the state that an upgrade must not change.
///
/// # Errors
/// The state cannot be read.
pub async fn look(
    cluster: &dyn Cluster,
    app: &AppName,
    namespaces: &BTreeSet<String>,
) -> Result<Before, SideEffectsError> {
    let owned: BTreeSet<ObjectKey> =
        observe(cluster, app).await?.inventory.iter().map(|(key, _)| key.clone()).collect();
    let kinds = cluster.kinds().await?;
    let namespaces: Vec<String> = namespaces.iter().cloned().collect();
    let mut before = Before { app: Some(app.clone()), owned, namespaces: namespaces.clone(), ..Before::default() };
    for namespace in &namespaces {
        for kind in kinds.iter().filter(|kind| kind.namespaced && kind.offers("list") && is_custom_group(&kind.group)) {
            before.data.extend(all(cluster, kind, namespace).await?);
        }
        for kind in ["ConfigMap", "Secret"] {
            let Some(kind) = kinds.find("", "v1", kind) else { continue };
            let objects = all(cluster, kind, namespace).await?.into_iter();
            let is_ours = |object: &Value| object.label(MARK).is_some() || before.is_apps(object);
            let others = objects.filter(|object| !is_ours(object) && !IN_EVERY_NAMESPACE.contains(&object.name()));
            let others: Vec<Arc<Value>> = others.collect();
            before.configuration.extend(others);
        }
        if let Some(kind) = kinds.find("", "v1", "PersistentVolumeClaim") {
            let claims = all(cluster, kind, namespace).await?;
            before.claims.extend(claims.iter().map(|claim| Target::of(claim)));
        }
        before.restarts.extend(restarts(cluster, namespace).await?);
    }
    Ok(before)
}

impl Before {
    /// Whether an object belongs to the app, which the upgrade may change.
    fn is_apps(&self, object: &Value) -> bool {
        let records = ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", pushback_app::identity::INVENTORY_LABEL];
        records.iter().any(|label| object.label(label).is_some())
            || self.owned.contains(&Target::of(object).reference().key())
    }

    /// Judges the current state. `injected` are changes that were in place during the upgrade.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn check(&self, cluster: &dyn Cluster, injected: &[Step]) -> Result<Vec<CheckResult>, SideEffectsError> {
        let mut checks = Vec::new();
        for object in &self.data {
            checks.push(self.data_kept(cluster, object, injected).await?);
        }
        for claim in &self.claims {
            let live = current(cluster, claim).await?;
            let kept = live.is_some_and(|live| live.uid() == claim.uid && !live.is_terminating());
            checks.push(looked(format!("{claim} is kept"), (!kept).then(|| "it is gone".to_owned())));
        }
        let mut changed = Vec::new();
        for object in &self.configuration {
            let target = Target::of(object);
            let same =
                |live: &Arc<Value>| ["data", "binaryData"].iter().all(|field| live.get(field) == object.get(field));
            if !current(cluster, &target).await?.as_ref().is_some_and(same) {
                changed.push(target.to_string());
            }
        }
        checks.push(looked("other configuration is kept".to_owned(), listed("changed", &changed)));
        let mut started = Vec::new();
        for namespace in &self.namespaces {
            for ((uid, container), count) in restarts(cluster, namespace).await? {
                let before = self.restarts.get(&(uid.clone(), container.clone())).copied().unwrap_or_default();
                if count > before {
                    started.push(format!("{container} in {namespace}, {} times", count - before));
                }
            }
        }
        checks.push(looked("no container has restarted".to_owned(), listed("started again", &started)));
        checks.push(looked("nothing is orphaned".to_owned(), listed("still there", &self.orphans(cluster).await?)));
        Ok(checks)
    }

    /// Checks that a custom resource is still the same object. One outside the app keeps every field; one of the app
    /// keeps the fields that an experiment set.
    async fn data_kept(
        &self,
        cluster: &dyn Cluster,
        before: &Value,
        injected: &[Step],
    ) -> Result<CheckResult, ClusterError> {
        let target = Target::of(before);
        let check = format!("data of {target} is kept");
        let Some(live) = current(cluster, &target).await?.filter(|live| live.uid() == target.uid) else {
            return Ok(looked(check, Some("it is gone".to_owned())));
        };
        let mut lost = Vec::new();
        if self.is_apps(before) {
            for step in injected.iter().filter(|step| step.target.uid == target.uid) {
                lost.extend(loss::lost(step, &live).iter().map(ToString::to_string));
            }
        } else {
            missing(before.get("spec"), live.get("spec"), "spec", &mut lost);
        }
        Ok(looked(check, listed("lost", &lost)))
    }

    /// Objects that the app owned before and does not own now.
    ///
    /// # Errors
    /// The record cannot be read.
    pub async fn disowned(&self, cluster: &dyn Cluster) -> Result<BTreeSet<ObjectKey>, SideEffectsError> {
        let Some(app) = &self.app else { return Ok(BTreeSet::new()) };
        let now = observe(cluster, app).await?.inventory;
        Ok(self.owned.iter().filter(|key| now.get(key).is_none()).cloned().collect())
    }

    /// Existing objects that the app owned before and does not own now.
    async fn orphans(&self, cluster: &dyn Cluster) -> Result<Vec<String>, SideEffectsError> {
        let kinds = cluster.kinds().await?;
        let mut orphans = Vec::new();
        for key in &self.disowned(cluster).await? {
            // An object without its kind is gone, too.
            let Some(kind) = kinds.preferred(&key.group, &key.kind) else { continue };
            let address = pushback_cluster::Address::new(Arc::clone(kind), &key.namespace, &key.name);
            if cluster.get(&address).await?.is_some_and(|live| !live.is_terminating()) {
                orphans.push(address.to_string());
            }
        }
        Ok(orphans)
    }
}

/// Adds paths of values that are missing afterwards; lists count as a whole.
fn missing(before: Option<&Value>, after: Option<&Value>, path: &str, lost: &mut Vec<String>) {
    match (before, after) {
        (Some(_), None) => lost.push(path.to_owned()),
        (Some(Value::Object(before)), Some(after)) => {
            for (key, value) in before {
                missing(Some(value), after.get(key), &format!("{path}.{key}"), lost);
            }
        }
        _ => {}
    }
}

fn looked(check: String, failure: Option<String>) -> CheckResult {
    CheckResult { check, passed: failure.is_none(), detail: failure.unwrap_or_default() }
}

fn listed(what: &str, names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
}

async fn current(cluster: &dyn Cluster, target: &Target) -> Result<Option<Arc<Value>>, ClusterError> {
    let kinds = cluster.kinds().await?;
    // Its definition is gone, and the object with it.
    let Ok(address) = target.address(&kinds) else { return Ok(None) };
    match cluster.get(&address).await {
        Err(error) if is_of_no_kind(&error) => Ok(None),
        found => found,
    }
}

async fn all(cluster: &dyn Cluster, kind: &Arc<Kind>, namespace: &str) -> Result<Vec<Arc<Value>>, ClusterError> {
    match list_all(cluster, &ListQuery::new(Arc::clone(kind), Some(namespace), "")).await {
        Err(error) if is_of_no_kind(&error) => Ok(Vec::new()),
        listed => Ok(listed?.items),
    }
}

/// Whether the kind's definition was deleted since kinds were discovered: somebody may do so at any time.
fn is_of_no_kind(error: &ClusterError) -> bool {
    matches!(error.kind, ErrorKind::UnknownKind | ErrorKind::NotFound)
}

async fn restarts(cluster: &dyn Cluster, namespace: &str) -> Result<BTreeMap<(String, String), i64>, ClusterError> {
    let kinds = cluster.kinds().await?;
    let Some(kind) = kinds.find("", "v1", "Pod") else { return Ok(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    for pod in all(cluster, kind, namespace).await? {
        let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten();
        for status in statuses {
            let count = status.get("restartCount").and_then(Value::as_i64).unwrap_or_default();
            found.insert((pod.uid().to_owned(), status.text("/name").to_owned()), count);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_gone_is_lost() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]});
        let after = json!({"a": 2, "b": {"c": 1}, "f": 1});
        let mut lost = Vec::new();
        missing(Some(&before), Some(&after), "spec", &mut lost);
        assert_eq!(lost, ["spec.b.d", "spec.e"]);
    }
}
