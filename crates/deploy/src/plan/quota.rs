//! Quota headroom: dry-run does not count against quotas, so creates are added up here
//! and compared with `status.hard − used`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use pushback_cluster::{Cluster, Kinds, ListQuery, list_all};
use pushback_objects::{Finding, ObjectExt, ObjectRef, Verdict};
use pushback_preflight::Operation;
use serde_json::Value;

use super::Planned;
use super::absent::Absent;
use super::desired::Desired;
use super::live::Live;
use super::refusal::RULE;

/// The namespaces in which objects are probably created. One that does not exist has no quotas.
#[must_use]
pub(super) fn namespaces_of_new(live: &Live, absent: &Absent, desired: &[Desired]) -> BTreeSet<String> {
    let stays = live.objects.iter().filter(|(_, object)| !object.is_terminating());
    let there: HashSet<[&str; 4]> =
        stays.map(|(key, _)| [&key.group, &key.kind, &key.namespace, &key.name].map(String::as_str)).collect();
    let is_new = |wanted: &&Desired| {
        let object = &wanted.object;
        !there.contains(&[&object.group, &object.kind, &object.namespace, &object.name].map(String::as_str))
    };
    let created = desired.iter().filter(|wanted| !wanted.object.namespace.is_empty() && !wanted.strategies.exists);
    let created = created.filter(is_new).filter(|wanted| !absent.lacks_namespace_of(wanted));
    created.map(|wanted| wanted.object.namespace.clone()).collect()
}

/// The live quotas of namespaces. One that cannot be read is none.
pub async fn read(cluster: &dyn Cluster, kinds: &Kinds, namespaces: &BTreeSet<String>) -> Vec<Arc<Value>> {
    let Some(kind) = kinds.find("", "v1", "ResourceQuota") else { return Vec::new() };
    let lists = namespaces.iter().map(|namespace| {
        let query = ListQuery::new(Arc::clone(kind), Some(namespace), "");
        async move { list_all(cluster, &query).await.map(|page| page.items).unwrap_or_default() }
    });
    futures::future::join_all(lists).await.concat()
}

/// Findings for creates that a quota would refuse.
#[must_use]
pub fn check(quotas: &[Arc<Value>], objects: &[Planned]) -> Vec<Finding> {
    let mut creates: BTreeMap<&str, Vec<&Planned>> = BTreeMap::new();
    for planned in objects {
        let object = &planned.object;
        if planned.operation() == Operation::Create && !object.namespace.is_empty() {
            creates.entry(&object.namespace).or_default().push(planned);
        }
    }
    // A namespace that is still being deleted comes without its quotas.
    for planned in objects.iter().filter(|planned| planned.operation() == Operation::Create) {
        if planned.object.kind == "Namespace" {
            creates.remove(planned.object.name.as_str());
        }
    }
    let mut findings = Vec::new();
    for quota in quotas {
        let Some(created) = creates.get(quota.namespace()) else { continue };
        match of_set(objects, quota) {
            None => findings.extend(one(quota, quota.pointer("/status/hard"), created)),
            Some(planned) => {
                let hard = planned.after_run().and_then(|after| after.pointer("/spec/hard"));
                findings.extend(one(quota, hard, created));
            }
        }
    }
    findings
}

/// The change of a quota by this set, whose new limit then applies.
fn of_set<'a>(objects: &'a [Planned], quota: &Value) -> Option<&'a Planned> {
    let key = ObjectRef::of(quota).key();
    objects.iter().find(|planned| planned.operation().writes() && planned.object.key() == key)
}

fn one(quota: &Value, hard: Option<&Value>, created: &[&Planned]) -> Vec<Finding> {
    // A scoped quota counts only some objects; which ones, only the server knows.
    if quota.pointer("/spec/scopes").is_some() || quota.pointer("/spec/scopeSelector").is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (resource, limit) in hard.and_then(Value::as_object).into_iter().flatten() {
        let used = quota.pointer("/status/used").and_then(|used| used.get(resource));
        let (Some(limit), Some(used)) = (whole(limit), used.map_or(Some(0), whole)) else { continue };
        let counted: Vec<&&Planned> = created.iter().filter(|planned| counts(planned, resource)).collect();
        let free = limit.saturating_sub(used);
        // The first object that does not fit is the one that the server would refuse.
        if let Some(first) = counted.get(usize::try_from(free).unwrap_or(usize::MAX)) {
            let message = format!(
                "quota {} allows {limit} {resource}, {used} are used, and this run creates {}",
                quota.name(),
                counted.len()
            );
            findings.push(
                Finding::new(RULE, "quota", Verdict::Breaking, first.object.clone(), message)
                    .at(first.locate(&[]))
                    .remedy("raise the quota, or free what it counts"),
            );
        }
    }
    findings
}

/// Object counts only: `pods`, `count/deployments.apps`. Sums of cpu and memory are left to the server.
fn counts(planned: &Planned, resource: &str) -> bool {
    match resource.strip_prefix("count/") {
        Some(counted) => counted == planned.kind.resource(),
        None => planned.kind.group.is_empty() && resource == planned.kind.plural,
    }
}

/// Counts are whole numbers; `1k` is legal and rare.
fn whole(quantity: &Value) -> Option<u64> {
    let text = quantity.as_str()?;
    match text.strip_suffix('k') {
        Some(thousands) => thousands.parse::<u64>().ok()?.checked_mul(1000),
        None => text.parse().ok(),
    }
}
