//! Finds what the garbage collector deletes together with objects: lists all objects that have owners, metadata only,
//! and follows CRDs and namespaces that are deleted on the way.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use pushback_cluster::{Address, Cluster, ErrorKind, Kind, Kinds, ListQuery, Pages, Turn};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Answer;
use pushback_preflight::cascade::{
    Cascade, CascadeCause, DeletedOwner, Dependent, EPHEMERAL_KINDS, Node, OwnerReference, UnlistedKind,
};
use serde_json::Value;

/// Most lists sent concurrently.
const CONCURRENCY: usize = 32;
/// Up to this many namespaces are listed one by one, which needs no cluster-wide permission.
const NAMESPACES_ONE_BY_ONE: usize = 4;
/// Most rounds in which CRDs and namespaces that are deleted on the way are listed.
const DEPTH: usize = 8;

/// Everything that is deleted with these objects.
pub(super) async fn dependents(cluster: &dyn Cluster, kinds: &Kinds, owners: &BTreeSet<DeletedOwner>) -> Answer {
    if !cluster.capabilities().server || owners.is_empty() {
        return Answer::Dependents { objects: Vec::new(), unlisted: Vec::new() };
    }
    let mut search = Search { cluster, kinds, unlisted: BTreeSet::new(), cascade: Cascade::new(owners) };
    search.list_owned(owners).await;
    for owner in owners.iter().filter(|owner| owner.object.is_definition()) {
        for node in search.objects_of(&owner.object).await {
            search.cascade.delete_with_root(&owner.uid, &node);
        }
    }
    search.follow().await;
    Answer::Dependents { objects: search.cascade.into_dependents(), unlisted: search.unlisted.into_iter().collect() }
}

/// A search in progress.
struct Search<'a> {
    cluster: &'a dyn Cluster,
    kinds: &'a Kinds,
    unlisted: BTreeSet<UnlistedKind>,
    cascade: Cascade,
}

impl Search<'_> {
    /// Adds all objects that have owners, wherever the owners can have dependents.
    async fn list_owned(&mut self, owners: &BTreeSet<DeletedOwner>) {
        let everywhere = owners.iter().any(|owner| owner.object.namespace.is_empty());
        let namespaces: BTreeSet<&str> = owners.iter().map(|owner| owner.object.namespace.as_str()).collect();
        let broken: Vec<UnlistedKind> = self.kinds.broken().map(|(group, reason)| broken(group, reason)).collect();
        self.unlisted.extend(broken);
        let is_listed = |kind: &&Arc<Kind>| {
            let key = (kind.group.as_str(), kind.kind.as_str());
            kind.offers("list") && (everywhere || kind.namespaced) && !EPHEMERAL_KINDS.contains(&key)
        };
        let mut queries = Vec::new();
        for kind in self.kinds.iter().filter(is_listed) {
            if everywhere || namespaces.len() > NAMESPACES_ONE_BY_ONE {
                queries.push(metadata_of(kind, None));
            } else {
                queries.extend(namespaces.iter().map(|namespace| metadata_of(kind, Some(namespace))));
            }
        }
        for node in self.list(queries, true).await {
            self.cascade.add(node);
        }
    }

    /// Follows owner references, and lists the objects of CRDs and namespaces that are deleted with their owners.
    async fn follow(&mut self) {
        let mut followed = 0;
        for _ in 0..DEPTH {
            loop {
                let open = self.cascade.grow();
                if open.is_empty() {
                    break;
                }
                for owner in open {
                    let exists = self.exists(&owner).await;
                    self.cascade.set_existing(&owner.uid, exists);
                }
            }
            let found: Vec<Dependent> = self.cascade.dependents_from(followed).to_vec();
            if found.is_empty() {
                return;
            }
            followed += found.len();
            for parent in found {
                let (cause, nodes) = if parent.object.is_definition() {
                    (CascadeCause::Crd, self.objects_of(&parent.object).await)
                } else if (parent.object.group.as_str(), parent.object.kind.as_str()) == ("", "Namespace") {
                    (CascadeCause::Namespace, self.contents_of(&parent.object.name).await)
                } else {
                    continue;
                };
                for node in nodes {
                    self.cascade.delete_with(&parent, cause, node);
                }
            }
        }
    }

    /// Whether an owner outside of the cascade exists, so that its dependents stay. An owner that may not be read counts as
    /// absent: a dependent that might be lost is reported.
    async fn exists(&self, owner: &OwnerReference) -> bool {
        let ObjectRef { group, version, kind, namespace, name } = &owner.object;
        let served = self.kinds.find(group, version, kind).or_else(|| self.kinds.preferred(group, kind));
        let Some(served) = served else { return false };
        let namespace = if served.namespaced { namespace.as_str() } else { "" };
        let found = self.cluster.get(&Address::new(Arc::clone(served), namespace, name)).await;
        found.ok().flatten().is_some_and(|object| object.uid() == owner.uid && !is_in_foreground_deletion(&object))
    }

    /// The objects of a live CRD.
    async fn objects_of(&mut self, crd: &ObjectRef) -> Vec<Node> {
        // `widgets.example.com` is the name of the CRD, by its plural and group.
        let Some((plural, group)) = crd.name.split_once('.') else { return Vec::new() };
        let kind = self.kinds.iter().find(|kind| kind.group == group && kind.plural == plural);
        let Some(kind) = kind else {
            if let Some(reason) = self.kinds.broken_group(group) {
                self.unlisted.insert(broken(group, reason));
            }
            return Vec::new();
        };
        self.list(vec![metadata_of(kind, None)], false).await
    }

    /// The contents of a namespace, but for what every namespace has.
    async fn contents_of(&mut self, namespace: &str) -> Vec<Node> {
        let is_listed = |kind: &&Arc<Kind>| {
            let key = (kind.group.as_str(), kind.kind.as_str());
            kind.namespaced && kind.offers("list") && !EPHEMERAL_KINDS.contains(&key)
        };
        let queries = self.kinds.iter().filter(is_listed).map(|kind| metadata_of(kind, Some(namespace))).collect();
        self.list(queries, false).await.into_iter().filter(|node| !node.is_in_every_namespace()).collect()
    }

    /// Lists all these kinds concurrently; those that cannot be listed are recorded.
    async fn list(&mut self, queries: Vec<ListQuery>, only_owned: bool) -> Vec<Node> {
        let cluster = self.cluster;
        let lists: Vec<BoxFuture<'_, Result<Vec<Node>, UnlistedKind>>> =
            queries.into_iter().map(|query| list_one(cluster, query, only_owned).boxed()).collect();
        let mut lists = futures::stream::iter(lists).buffer_unordered(CONCURRENCY);
        let mut nodes = Vec::new();
        while let Some(listed) = lists.next().await {
            match listed {
                Ok(found) => nodes.extend(found),
                Err(unlisted) => _ = self.unlisted.insert(unlisted),
            }
        }
        nodes
    }
}

/// An owner that waits for its dependents to be deleted does not keep them.
fn is_in_foreground_deletion(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    object.is_terminating() && finalizers.is_some_and(|all| all.iter().any(|it| it == "foregroundDeletion"))
}

/// A group that does not answer.
pub(super) fn broken(group: &str, reason: &str) -> UnlistedKind {
    UnlistedKind { resource: format!("*.{group}"), namespace: String::new(), reason: reason.to_owned() }
}

/// A list of metadata; of claims the whole, which names the volume.
fn metadata_of(kind: &Arc<Kind>, namespace: Option<&str>) -> ListQuery {
    let is_claim = kind.group.is_empty() && kind.kind == "PersistentVolumeClaim";
    ListQuery { metadata_only: !is_claim, ..ListQuery::new(Arc::clone(kind), namespace, "") }
}

async fn list_one(cluster: &dyn Cluster, query: ListQuery, only_owned: bool) -> Result<Vec<Node>, UnlistedKind> {
    let kind = Arc::clone(&query.kind);
    let namespace = query.namespace.clone().unwrap_or_default();
    let mut nodes: HashMap<String, Node> = HashMap::new();
    let mut order = Vec::new();
    let mut pages = Pages::of(cluster, query);
    loop {
        match pages.next().await {
            Ok(Some(Turn::Page(page))) => {
                for item in page.items.iter().filter(|item| !item.is_terminating()) {
                    let node = Node::of_kind(&kind.group, &kind.version, &kind.kind, item);
                    if (node.has_owner() || !only_owned) && nodes.insert(item.uid().to_owned(), node).is_none() {
                        order.push(item.uid().to_owned());
                    }
                }
            }
            Ok(Some(Turn::Restart)) => {
                nodes.clear();
                order.clear();
            }
            Ok(None) => break,
            Err(error) if matches!(error.kind, ErrorKind::UnknownKind | ErrorKind::NotFound) => break,
            Err(error) => return Err(unlisted(&kind, &namespace, error.kind, &error.message)),
        }
    }
    Ok(order.iter().filter_map(|uid| nodes.remove(uid)).collect())
}

/// A kind that could not be listed, with the reason; a missing right is named as such.
pub(super) fn unlisted(kind: &Kind, namespace: &str, error: ErrorKind, message: &str) -> UnlistedKind {
    let resource = kind.resource();
    let reason = match (error, namespace) {
        (ErrorKind::Forbidden, "") => format!("no right to list {resource} in all namespaces"),
        (ErrorKind::Forbidden, namespace) => format!("no right to list {resource} in namespace {namespace}"),
        _ => format!("failed to list {resource}: {message}"),
    };
    UnlistedKind { resource, namespace: namespace.to_owned(), reason }
}
