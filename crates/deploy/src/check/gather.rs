//! Answers needs from the cluster: objects, access reviews, streams folded page by page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use pushback_cluster::{
    Address, Cluster, ClusterError, ErrorKind, Kind, Kinds, ListQuery, Pages, Turn, list_all, pages, reviews,
};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::cascade::UnlistedKind;
use pushback_preflight::facts::AccessRule;
use pushback_preflight::parts::parts;
use pushback_preflight::session::Session;
use pushback_preflight::{Answer, Need, Needs};
use serde_json::Value;

use super::images::Registries;
use super::{cascade, pod_admission, programs};

/// Most needs answered concurrently; the cluster limits its requests itself.
const CONCURRENCY: usize = 32;
/// Most kinds of a namespace listed concurrently.
const KINDS_AT_ONCE: usize = 4;
/// Most objects of a kind and namespace that are read whole, with what can be named in them.
const READ_ONE_BY_ONE: usize = 3;
/// Objects per page of a stream: custom resources can be large, and one page is held at a time.
const PAGE: u32 = 250;

/// Answers every need; `Unable` with the reason for those that cannot be answered.
pub(super) async fn gather(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    session: &Session,
    needs: Needs,
) -> Vec<(Need, Answer)> {
    let registries = Registries::new();
    let registries = &registries;
    let ask = |need: Need| {
        let answered = async move {
            let answer = match one(cluster, kinds, session, registries, &need).await {
                Ok(answer) => answer,
                Err(reason) => Answer::Unable { reason },
            };
            (need, answer)
        };
        answered.boxed()
    };
    let questions: Vec<BoxFuture<'_, (Need, Answer)>> = needs.into_iter().map(ask).collect();
    futures::stream::iter(questions).buffer_unordered(CONCURRENCY).collect().await
}

async fn one(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    session: &Session,
    registries: &Registries,
    need: &Need,
) -> Result<Answer, String> {
    match need {
        Need::Object { object } => live(cluster, kinds, object).await,
        Need::AccessRules { .. } | Need::Access { .. } => review(cluster, need).await,
        Need::Objects { group, version, kind, resource, limit } => {
            let Some(kind) = objects_kind(cluster, kinds, (group, version, kind, resource))? else {
                return Ok(Answer::Folded { state: Value::Null, examined: 0, cut: false });
            };
            stream(cluster, kinds, session, need, kind, *limit).await
        }
        Need::ObjectCount { group, version, kind, .. } => count(cluster, kinds, (group, version, kind)).await,
        Need::Models { path } => Err(format!("{path} is read with the input, and was not")),
        Need::Program { rule, number } => programs::ask(session.program(rule, *number)).await,
        Need::ConversionPlans => Ok(Answer::ConversionPlans { plans: Vec::new() }),
        Need::Existing { group, kind, namespace, names } => {
            existing(cluster, kinds, (group, kind, namespace), names).await
        }
        Need::PodCount { namespace, selector } => pod_count(cluster, kinds, namespace, selector).await,
        Need::NamespaceContents { namespace, except } => {
            contents(cluster, kinds, session, need, namespace, except).await
        }
        Need::PodAdmission { workload } => pod_admission::ask(cluster, kinds, session.workload_pod(workload)).await,
        Need::Image { image, platforms } => Ok(Answer::Image { lookup: registries.look_up(image, platforms).await }),
        Need::Dependents { owners } => Ok(cascade::dependents(cluster, kinds, owners).await),
    }
}

/// Answers a need by a review of the user's rights.
///
/// # Errors
/// No answer, or another need.
pub(super) async fn review(cluster: &dyn Cluster, need: &Need) -> Result<Answer, String> {
    match need {
        Need::AccessRules { namespace } => access_rules(cluster, namespace).await,
        Need::Access { verb, group, resource, subresource, namespace, name } => {
            let attributes = ResourceAttributes {
                verb: Some(verb.clone()),
                group: Some(group.clone()),
                resource: Some(resource.clone()),
                subresource: some(subresource),
                namespace: some(namespace),
                name: some(name),
                ..ResourceAttributes::default()
            };
            access(cluster, attributes).await
        }
        _ => Err("no review of rights answers it".to_owned()),
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

async fn live(cluster: &dyn Cluster, kinds: &Kinds, object: &ObjectRef) -> Result<Answer, String> {
    let served = kinds.find(&object.group, &object.version, &object.kind);
    let Some(kind) = served.or_else(|| kinds.preferred(&object.group, &object.kind)) else {
        return match kinds.broken_group(&object.group) {
            Some(reason) => Err(format!("group {} could not be read: {reason}", object.group)),
            None => Ok(Answer::Object { object: None }),
        };
    };
    let address = Address::new(Arc::clone(kind), &object.namespace, &object.name);
    let object = cluster.get(&address).await.map_err(|error| format!("failed to read {address}: {error}"))?;
    Ok(Answer::Object { object })
}

async fn access_rules(cluster: &dyn Cluster, namespace: &str) -> Result<Answer, String> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) },
        ..SelfSubjectRulesReview::default()
    };
    let answered = reviews::post(cluster, "SelfSubjectRulesReview", "selfsubjectrulesreviews", &review).await?;
    let review: SelfSubjectRulesReview =
        serde_json::from_value(answered).map_err(|error| format!("the server's answer is no rules review: {error}"))?;
    let status = review.status.ok_or("the server's answer has no status")?;
    let rules = status
        .resource_rules
        .into_iter()
        .map(|rule| AccessRule {
            verbs: rule.verbs,
            api_groups: rule.api_groups.unwrap_or_default(),
            resources: rule.resources.unwrap_or_default(),
            resource_names: rule.resource_names.unwrap_or_default(),
        })
        .collect();
    Ok(Answer::AccessRules { rules, incomplete: status.incomplete })
}

async fn access(cluster: &dyn Cluster, attributes: ResourceAttributes) -> Result<Answer, String> {
    let (allowed, reason) = reviews::access(cluster, attributes).await?;
    Ok(Answer::Allowed { allowed, reason })
}

/// The kind to list objects of; `None` if there are none. That a server serves it in this version is not taken from the
/// discovery of a while ago: the server is asked.
fn objects_kind(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    (group, version, kind, resource): (&str, &str, &str, &str),
) -> Result<Option<Arc<Kind>>, String> {
    let found = kinds.find(group, version, kind);
    if let Some(reason) = kinds.broken_group(group).filter(|_| found.is_none()) {
        return Err(format!("group {group} could not be read: {reason}"));
    }
    if found.is_some() || !cluster.capabilities().server {
        return Ok(found.or_else(|| kinds.preferred(group, kind)).cloned());
    }
    Ok(Some(Arc::new(Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: resource.to_owned(),
        namespaced: true,
        verbs: vec!["list".to_owned()],
        ..Kind::default()
    })))
}

async fn stream(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    session: &Session,
    need: &Need,
    served: Arc<Kind>,
    limit: u64,
) -> Result<Answer, String> {
    let fail = |error: ClusterError| format!("failed to list {}: {error}", served.kind);
    let mut state = Value::Null;
    let mut examined = 0_u64;
    let is_served_otherwise = !kinds.versions(&served.group, &served.kind).is_empty();
    let query = ListQuery { limit: PAGE, ..ListQuery::new(Arc::clone(&served), None, "") };
    let mut pages = Pages::of(cluster, query);
    loop {
        let page = match pages.next().await {
            Ok(Some(Turn::Page(page))) => page,
            // A fold cannot be undone: after a list has expired it starts with a fresh state.
            Ok(Some(Turn::Restart)) => {
                (state, examined) = (Value::Null, 0);
                continue;
            }
            Ok(None) => break,
            // There are no objects of a kind that no version of is served; else they only cannot be read in this one.
            Err(error) if error.kind == ErrorKind::UnknownKind && !is_served_otherwise => break,
            Err(error) => return Err(fail(error)),
        };
        examined += page.items.len() as u64;
        session.fold(need, &mut state, &page.items);
        if limit > 0 && examined >= limit && !page.continue_token.is_empty() {
            return Ok(Answer::Folded { state, examined, cut: true });
        }
    }
    Ok(Answer::Folded { state, examined, cut: false })
}

/// The number of objects, from a list of one: the server says how many follow.
async fn count(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    (group, version, kind): (&str, &str, &str),
) -> Result<Answer, String> {
    let Some(served) = kinds.find(group, version, kind).or_else(|| kinds.preferred(group, kind)) else {
        return Err(match kinds.broken_group(group) {
            Some(reason) => format!("group {group} could not be read: {reason}"),
            None => format!("{kind} is not served"),
        });
    };
    let counted = pages::count(cluster, served).await.map_err(|error| format!("failed to list {kind}: {error}"))?;
    Ok(Answer::Count { objects: counted.objects, more: counted.more })
}

/// Which objects exist: read one by one, or, if they are many, by a list of names.
async fn existing(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    (group, kind, namespace): (&str, &str, &str),
    names: &BTreeSet<String>,
) -> Result<Answer, String> {
    let mut found = BTreeMap::new();
    let Some(served) = kinds.preferred(group, kind) else {
        return match kinds.broken_group(group) {
            Some(reason) => Err(format!("group {group} could not be read: {reason}")),
            None => Ok(Answer::Existing { parts: found }),
        };
    };
    if names.len() > READ_ONE_BY_ONE {
        let place = Some(namespace).filter(|namespace| !namespace.is_empty());
        let query = ListQuery { metadata_only: true, ..ListQuery::new(Arc::clone(served), place, "") };
        let list = list_all(cluster, &query).await.map_err(|error| format!("failed to list {kind}: {error}"))?;
        let wanted = list.items.iter().filter(|item| names.contains(item.name()));
        found.extend(wanted.map(|item| (item.name().to_owned(), None)));
        return Ok(Answer::Existing { parts: found });
    }
    for name in names {
        let address = Address::new(Arc::clone(served), namespace, name);
        let object = cluster.get(&address).await.map_err(|error| format!("failed to read {address}: {error}"))?;
        found.extend(object.map(|object| (name.clone(), parts(&object).map(BTreeSet::from_iter))));
    }
    Ok(Answer::Existing { parts: found })
}

/// Whether there are Pods that a selector selects.
async fn pod_count(cluster: &dyn Cluster, kinds: &Kinds, namespace: &str, selector: &str) -> Result<Answer, String> {
    let Some(pods) = kinds.preferred("", "Pod") else { return Ok(Answer::Count { objects: 0, more: false }) };
    let query =
        ListQuery { limit: 1, metadata_only: true, ..ListQuery::new(Arc::clone(pods), Some(namespace), selector) };
    let page = cluster.list(&query).await.map_err(|error| format!("failed to list Pods: {error}"))?;
    Ok(Answer::Count { objects: page.items.len() as u64, more: !page.continue_token.is_empty() })
}

/// Every object in a namespace, in the order of the kinds, so that the same contents fold to the same state.
async fn contents(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    session: &Session,
    need: &Need,
    namespace: &str,
    except: &BTreeSet<(String, String)>,
) -> Result<Answer, String> {
    // The objects of a group that does not answer are unknown.
    let mut unlisted: Vec<UnlistedKind> =
        kinds.broken().map(|(group, reason)| cascade::broken(group, reason)).collect();
    let wanted = kinds
        .iter()
        .filter(|kind| kind.namespaced && kind.offers("list"))
        .filter(|kind| !except.contains(&(kind.group.clone(), kind.kind.clone())));
    let list = |kind: &Arc<Kind>| {
        let kind = Arc::clone(kind);
        let listed = async move {
            let query = ListQuery::new(Arc::clone(&kind), Some(namespace), "");
            match list_all(cluster, &query).await {
                Ok(list) => Ok(list.items),
                Err(error) if error.kind == ErrorKind::UnknownKind => Ok(Vec::new()),
                Err(error) => Err(cascade::unlisted(&kind, namespace, error.kind, &error.message)),
            }
        };
        listed.boxed()
    };
    let pages: Vec<BoxFuture<'_, Result<Vec<Arc<Value>>, UnlistedKind>>> = wanted.map(list).collect();
    let mut pages = futures::stream::iter(pages).buffered(KINDS_AT_ONCE);
    let mut state = Value::Null;
    let mut examined = 0_u64;
    while let Some(items) = pages.next().await {
        match items {
            Ok(items) => {
                examined += items.len() as u64;
                session.fold(need, &mut state, &items);
            }
            Err(missing) => unlisted.push(missing),
        }
    }
    Ok(Answer::Listed { state, examined, unlisted })
}
