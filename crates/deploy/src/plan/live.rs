//! The app's live objects: lists by label, limited to the app's kinds and namespaces.
//! A list that fails never proves an object absent.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures::StreamExt;
use pushback_app::claims::{self, Claims};
use pushback_app::identity::has_own_identity;
use pushback_app::inventory::Entry;
use pushback_app::record::{Observed, Phase, Record};
use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kind, Kinds, ListQuery, core_kinds, list_all};
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::Value;

use super::desired::Desired;

/// Up to this many namespaces are listed one by one, which needs no cluster-wide permission.
const NAMESPACES_ONE_BY_ONE: usize = 4;

/// Objects that a page of a list may have at least and at most: so many small ones take a megabyte, and are read at once.
const PAGE: RangeInclusive<usize> = 500..=1_200;

/// The app's live objects.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Objects by identity, in the API version of the input or else the preferred one.
    pub objects: BTreeMap<ObjectKey, Arc<Value>>,
    /// (group, kind) that could not be listed, and why: their objects are not pruned.
    pub unreadable: BTreeMap<(String, String), String>,
    /// Those of `objects` that have lost the app's label and are known by the uid in the inventory.
    pub unlabelled: BTreeSet<ObjectKey>,
    /// Objects with the app's label that it did not create: Pods of its workloads.
    pub derived: Vec<Arc<Value>>,
    /// Objects of other apps, if only their records tell.
    pub claims: Claims,
    /// Inventory objects that certainly no longer exist or belong to another app.
    pub gone: Vec<ObjectKey>,
}

impl Live {
    /// Removes from the inventory what no longer exists and is not desired: a later object of the same name is not the
    /// app's. Returns whether there was any.
    pub(super) fn forget_gone<'a>(
        &self,
        observed: &mut Observed,
        desired: impl Iterator<Item = &'a Desired>,
        is_server: bool,
    ) -> bool {
        if self.gone.is_empty() {
            return false;
        }
        let wanted: BTreeSet<ObjectKey> = desired.map(|wanted| wanted.object.key()).collect();
        let own = observed.record.as_ref().and_then(|record| record.own.as_ref());
        let is_finished = own.is_some_and(|own| own.phase == Phase::Done);
        // A create from an interrupted run may still arrive; the next run checks again.
        let may_come = |entry: &Entry| is_server && !is_finished && entry.uid.is_empty();
        let inventory = &mut observed.inventory;
        let mut forgets = false;
        for key in self.gone.iter().filter(|key| !wanted.contains(*key)) {
            if inventory.get(key).is_some_and(|entry| !may_come(entry)) {
                inventory.remove(key);
                forgets = true;
            }
        }
        forgets
    }
}

/// Where the app's objects are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In the whole cluster, or where that is not allowed, in the app's namespaces.
    #[default]
    Cluster,
    /// In the app's namespaces only.
    KnownNamespaces,
}

/// Lists the app's live objects.
///
/// # Errors
/// The cluster cannot be reached.
pub async fn read(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    observed: &Observed,
    desired: &[Desired],
    scope: Scope,
) -> Result<Live, ClusterError> {
    if !cluster.capabilities().server {
        return read_by_inventory(cluster, kinds, observed).await;
    }
    let Some(record) = &observed.record else {
        // No object has the label of a new app yet.
        return Ok(Live::default());
    };
    let mut live = Live::default();
    let used = record.used_kinds();
    let mut group_kinds: BTreeSet<(String, String)> = used
        .clone()
        .unwrap_or_else(|| kinds.iter().map(|kind| (kind.group.clone(), kind.kind.clone())).collect())
        .into_iter()
        .collect();
    group_kinds.extend(observed.inventory.iter().map(|(key, _)| (key.group.clone(), key.kind.clone())));
    group_kinds.extend(desired.iter().map(|wanted| (wanted.object.group.clone(), wanted.object.kind.clone())));

    let mut namespaces = known_namespaces(observed);
    namespaces.extend(desired.iter().map(|wanted| wanted.object.namespace.clone()));
    namespaces.remove("");

    let complete = observed.inventory_void.is_none() && used.is_some();
    let is_narrow = scope == Scope::KnownNamespaces;
    let one_by_one = is_narrow || (complete && namespaces.len() <= NAMESPACES_ONE_BY_ONE);
    let selector = format!("{}={}", observed.app.label_key(), record.label_value());
    let mut wanted_versions: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for wanted in desired.iter().filter(|wanted| !wanted.kind_from_set) {
        let object = &wanted.object;
        wanted_versions.entry((&object.group, &object.kind)).or_default().insert(&object.version);
    }
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (key, _) in observed.inventory.iter() {
        *known.entry((&key.group, &key.kind)).or_default() += 1;
    }
    let mut queries = Vec::new();
    for (group, kind) in group_kinds {
        let versions = wanted_versions.get(&(group.as_str(), kind.as_str())).into_iter().flatten();
        let mut served: Vec<Arc<Kind>> =
            versions.filter_map(|version| kinds.find(&group, version, &kind)).cloned().collect();
        if served.is_empty() {
            served.extend(kinds.preferred(&group, &kind).cloned());
        }
        if served.is_empty() {
            // A kind that is no longer served has no objects; one of a broken group may have some.
            if let Some(reason) = kinds.broken_group(&group) {
                live.unreadable.insert((group, kind), reason.to_owned());
            }
            continue;
        }
        let limit = page_size(known.get(&(group.as_str(), kind.as_str())).copied().unwrap_or_default());
        for served in served.into_iter().filter(|served| served.offers("list")) {
            queries.push(ListQuery { limit, ..ListQuery::new(served, None, &selector) });
        }
    }
    let namespaces: Vec<String> = namespaces.into_iter().collect();
    let namespaces = namespaces.as_slice();
    let mut lists = futures::stream::iter(queries)
        .map(|query| async move {
            let result = list_kind(cluster, &query, namespaces, one_by_one).await;
            (query.kind, result)
        })
        .buffer_unordered(32);
    let mut listed = BTreeSet::new();
    while let Some((kind, result)) = lists.next().await {
        match result {
            Ok(items) => {
                add(&mut live, items, observed);
                listed.insert((kind.group.clone(), kind.kind.clone()));
            }
            Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => return Err(error),
            Err(error) if matches!(error.kind, ErrorKind::UnknownKind | ErrorKind::NotFound) => {}
            Err(error) => {
                live.unreadable.insert((kind.group.clone(), kind.kind.clone()), error.message);
            }
        }
    }
    drop(lists);
    collapse(&mut live.objects, desired);
    // A killed run may have pruned them without recording it. A kind that is not served proves nothing: its objects may
    // reappear with it.
    listed.retain(|kind| !live.unreadable.contains_key(kind));
    let gone = observed
        .inventory
        .iter()
        .map(|(key, _)| key)
        .filter(|key| !live.objects.contains_key(*key) && listed.contains(&(key.group.clone(), key.kind.clone())));
    live.gone = gone.cloned().collect();
    Ok(live)
}

/// Namespaces in which the app has objects, as far as its record and inventory say.
fn known_namespaces(observed: &Observed) -> BTreeSet<String> {
    let recorded = observed.record.iter().flat_map(Record::namespaces);
    let listed = observed.inventory.iter().map(|(key, _)| key.namespace.clone());
    let mut namespaces: BTreeSet<String> = recorded.chain(listed).collect();
    namespaces.insert(observed.app.namespace.clone());
    namespaces.retain(|namespace| !namespace.is_empty());
    namespaces
}

async fn list_kind(
    cluster: &dyn Cluster,
    query: &ListQuery,
    namespaces: &[String],
    one_by_one: bool,
) -> Result<Vec<Arc<Value>>, ClusterError> {
    let is_namespaced = query.kind.namespaced;
    if !is_namespaced || !one_by_one {
        match list_all(cluster, query).await {
            Ok(page) => return Ok(page.items),
            Err(error) if error.kind == ErrorKind::Forbidden && is_namespaced => {}
            Err(error) => return Err(error),
        }
    }
    let lists = namespaces.iter().map(|namespace| async move {
        let query = ListQuery { namespace: Some(namespace.clone()), ..query.clone() };
        list_all(cluster, &query).await
    });
    let mut items = Vec::new();
    for page in futures::future::join_all(lists).await {
        items.extend(page?.items);
    }
    Ok(items)
}

/// Objects per page, where the app is known to have so many: one more than these, which shows that no page follows. A page
/// costs a round trip.
fn page_size(known: usize) -> u32 {
    u32::try_from((known + 1).clamp(*PAGE.start(), *PAGE.end())).unwrap_or(u32::MAX)
}

fn add(live: &mut Live, items: Vec<Arc<Value>>, observed: &Observed) {
    let mut ours = Vec::with_capacity(items.len());
    for item in items {
        // Bookkeeping has no app label; only the record itself could have been given it.
        if observed.record.as_ref().is_some_and(|record| record.uid == item.uid()) {
            continue;
        }
        let key = ObjectRef::of(&item).key();
        if is_ours(&key, &item, observed) {
            ours.push((key, item));
        } else {
            live.derived.push(item);
        }
    }
    // The server lists by name: built at once, the map compares each key only with its neighbour.
    live.objects.append(&mut ours.into_iter().collect());
}

/// Leaves one of the identities of an object that is served in several groups: that of the input, or else the one by which it
/// was created.
fn collapse(objects: &mut BTreeMap<ObjectKey, Arc<Value>>, desired: &[Desired]) {
    let mut uids = HashSet::with_capacity(objects.len());
    if objects.values().map(|object| object.uid()).filter(|uid| !uid.is_empty()).all(|uid| uids.insert(uid)) {
        return;
    }
    let mut by_uid: BTreeMap<&str, Vec<&ObjectKey>> = BTreeMap::new();
    for (key, object) in objects.iter().filter(|(_, object)| !object.uid().is_empty()) {
        by_uid.entry(object.uid()).or_default().push(key);
    }
    let wanted: HashSet<ObjectKey> = desired.iter().map(|wanted| wanted.object.key()).collect();
    let mut doubles: HashSet<ObjectKey> = HashSet::new();
    for keys in by_uid.into_values().filter(|keys| keys.len() > 1) {
        let is_wanted = |key: &&&ObjectKey| wanted.contains(**key);
        let is_original = |key: &&&ObjectKey| objects.get(**key).is_some_and(|object| has_own_identity(object));
        let kept = keys.iter().find(is_wanted).or_else(|| keys.iter().find(is_original)).copied().unwrap_or(keys[0]);
        doubles.extend(keys.into_iter().filter(|key| *key != kept).cloned());
    }
    objects.retain(|key, _| !doubles.contains(key));
}

fn is_ours(key: &ObjectKey, item: &Value, observed: &Observed) -> bool {
    has_own_identity(item) || (observed.inventory_void.is_none() && observed.inventory.owns(key, item.uid()))
}

/// Adds what controllers have made and is deleted with the app: annotation `owned-for-deletion`, which claims have from the
/// templates of their StatefulSet. As long as the app is there, they are the controllers'.
///
/// # Errors
/// The cluster cannot be reached.
pub async fn add_owned_for_deletion(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    observed: &Observed,
    live: &mut Live,
) -> Result<(), ClusterError> {
    let is_marked = |object: &Value| super::annotations::read_live(object).owned_for_deletion;
    let templates = |object: &Value| {
        let templates = object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
        templates.is_some_and(|templates| templates.iter().any(is_marked))
    };
    let sets = live.objects.iter().filter(|(key, object)| key.kind == "StatefulSet" && templates(object));
    let namespaces: Vec<String> = BTreeSet::from_iter(sets.map(|(key, _)| key.namespace.clone())).into_iter().collect();
    let mut marked: Vec<Arc<Value>> = live.derived.iter().filter(|object| is_marked(object)).cloned().collect();
    if let (false, Some(record), Some(kind)) =
        (namespaces.is_empty(), &observed.record, kinds.preferred("", "PersistentVolumeClaim"))
    {
        let selector = format!("{}={}", observed.app.label_key(), record.label_value());
        let query = ListQuery::new(Arc::clone(kind), None, &selector);
        match list_kind(cluster, &query, &namespaces, true).await {
            Ok(claims) => marked.extend(claims.into_iter().filter(|claim| is_marked(claim))),
            Err(error) if matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Unauthorized) => return Err(error),
            Err(error) => {
                live.unreadable.insert((kind.group.clone(), kind.kind.clone()), error.message);
            }
        }
    }
    live.derived.retain(|object| !is_marked(object));
    live.objects.extend(marked.into_iter().map(|object| (ObjectRef::of(&object).key(), object)));
    Ok(())
}

/// Reads a directory, where objects have no labels: only the record says what belongs to the app.
async fn read_by_inventory(cluster: &dyn Cluster, kinds: &Kinds, observed: &Observed) -> Result<Live, ClusterError> {
    let mut live = Live { claims: claims::of_others(cluster, &observed.app).await?, ..Live::default() };
    for (key, entry) in observed.inventory.iter() {
        // An object that two records list is never deleted.
        if live.claims.owners.contains_key(key) {
            live.gone.push(key.clone());
            continue;
        }
        let served =
            kinds.find(&key.group, &entry.version, &key.kind).or_else(|| kinds.preferred(&key.group, &key.kind));
        let object = match served {
            Some(kind) => cluster.get(&Address::new(Arc::clone(kind), &key.namespace, &key.name)).await?,
            None => None,
        };
        match object {
            Some(object) => {
                live.objects.insert(key.clone(), object);
            }
            None => live.gone.push(key.clone()),
        }
    }
    Ok(live)
}

/// Objects that controllers created below the app's objects: ReplicaSets, Pods, Endpoints and EndpointSlices carry the app's
/// label.
/// Kinds that may not be listed are left out.
pub async fn children(cluster: &dyn Cluster, observed: &Observed, live: &Live) -> Vec<Arc<Value>> {
    let Some(record) = observed.record.as_ref().filter(|_| cluster.capabilities().server) else { return Vec::new() };
    let selector = format!("{}={}", observed.app.label_key(), record.label_value());
    let namespaces: BTreeSet<&str> =
        live.objects.keys().map(|key| key.namespace.as_str()).filter(|namespace| !namespace.is_empty()).collect();
    let known: BTreeSet<&str> = live.derived.iter().map(|object| object.uid()).collect();
    let mut found = Vec::new();
    let has_service = live.objects.keys().any(|key| key.group.is_empty() && key.kind == "Service");
    let of_services = [core_kinds::endpoints(), core_kinds::endpoint_slice()];
    let made = [core_kinds::replica_set(), core_kinds::pod()].into_iter();
    for kind in made.chain(of_services.into_iter().filter(|_| has_service)) {
        let lists = namespaces.iter().map(|namespace| {
            let query = ListQuery::new(Arc::clone(&kind), Some(namespace), &selector);
            async move { list_all(cluster, &query).await }
        });
        for page in futures::future::join_all(lists).await.into_iter().flatten() {
            found.extend(page.items.into_iter().filter(|item| !known.contains(item.uid())));
        }
    }
    found.retain(|item| !live.objects.contains_key(&ObjectRef::of(item).key()));
    found
}

/// Every object with the app's label, of whatever kind, that is not among the app's `own`: what controllers have copied the
/// label to. Costs a list for each kind of the cluster; kinds that may not be listed are left out.
pub async fn labelled<'o>(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    observed: &Observed,
    own: impl Iterator<Item = &'o Value>,
    scope: Scope,
) -> Vec<Arc<Value>> {
    let Some(record) = observed.record.as_ref().filter(|_| cluster.capabilities().server) else { return Vec::new() };
    let selector = format!("{}={}", observed.app.label_key(), record.label_value());
    let is_passing = |kind: &Kind| matches!(kind.kind.as_str(), "Event" | "ComponentStatus");
    let namespaces = known_namespaces(observed);
    let places = |kind: &Kind| match scope {
        Scope::KnownNamespaces if kind.namespaced => namespaces.iter().map(|name| Some(name.as_str())).collect(),
        _ => vec![None],
    };
    let queries: Vec<ListQuery> = kinds
        .iter()
        .filter(|kind| kind.offers("list") && !is_passing(kind))
        .flat_map(|kind| places(kind).into_iter().map(|place| ListQuery::new(Arc::clone(kind), place, &selector)))
        .collect();
    let mut lists = futures::stream::iter(&queries).map(|query| list_all(cluster, query)).buffer_unordered(32);
    let mut known: BTreeSet<String> = own.map(|object| object.uid().to_owned()).collect();
    known.insert(record.uid.clone());
    let mut found = Vec::new();
    while let Some(page) = lists.next().await {
        let items = page.map(|page| page.items).unwrap_or_default();
        found.extend(items.into_iter().filter(|item| known.insert(item.uid().to_owned())));
    }
    found.sort_by_cached_key(|object| ObjectRef::of(object).key());
    found
}
