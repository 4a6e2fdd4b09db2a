//! The kinds that a server serves: two requests with aggregated discovery, otherwise one per group.
//! A group that does not respond is recorded as broken and does not affect the others.

use serde::Deserialize;

use super::request::{Call, group_version_path, push_segment};
use super::transport::Transport;
use crate::{ClusterError, ErrorKind, Kind, Kinds};

/// The last choice is for servers before 1.26.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

const CLASSIC: &str = "application/json";

/// `apidiscovery.k8s.io` `APIGroupDiscoveryList`, v2 and v2beta1.
#[derive(Deserialize)]
struct GroupList {
    #[serde(default)]
    kind: String,
    items: Option<Vec<Group>>,
    /// The answer of a server without aggregated discovery: to `/apis`…
    groups: Option<Vec<ClassicGroup>>,
    /// …and to `/api`.
    versions: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Group {
    metadata: Option<Metadata>,
    versions: Option<Vec<Version>>,
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    freshness: Option<String>,
    resources: Option<Vec<Resource>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    response_kind: Option<ResponseKind>,
    scope: Option<String>,
    singular_resource: Option<String>,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    subresources: Option<Vec<Subresource>>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

/// `metav1.APIGroup`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClassicGroup {
    #[serde(default)]
    name: String,
    versions: Option<Vec<ClassicVersion>>,
    preferred_version: Option<ClassicVersion>,
}

#[derive(Clone, Deserialize)]
struct ClassicVersion {
    version: String,
}

/// `metav1.APIResourceList`.
#[derive(Deserialize)]
struct ClassicResources {
    resources: Option<Vec<ClassicResource>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClassicResource {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    namespaced: bool,
    singular_name: Option<String>,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    storage_version_hash: Option<String>,
}

/// Fetches all kinds.
pub(super) async fn all(transport: &Transport) -> Result<Kinds, ClusterError> {
    let (core_call, apis_call) = (Call::read_path("/api", AGGREGATED), Call::read_path("/apis", AGGREGATED));
    let (core, named) =
        futures::try_join!(transport.json::<GroupList>(&core_call), transport.json::<GroupList>(&apis_call))?;
    let mut kinds = Kinds::default();
    // Either of the two may be aggregated: a proxy may route one of them elsewhere.
    let mut wanted = Vec::new();
    for (list, core) in [(core, true), (named, false)] {
        if list.kind == "APIGroupDiscoveryList" {
            list.items.unwrap_or_default().into_iter().for_each(|group| add_aggregated(&mut kinds, group));
        } else if core {
            let versions = list.versions.ok_or_else(no_discovery)?;
            wanted.extend(versions.into_iter().map(|version| (String::new(), version)));
        } else {
            for group in list.groups.ok_or_else(no_discovery)? {
                wanted.extend(by_preference(&mut kinds, group));
            }
        }
    }
    add_classic(transport, &mut kinds, wanted).await;
    Ok(kinds)
}

/// Fetches the kinds of one group into `kinds`, which has none of it.
pub(super) async fn group(transport: &Transport, kinds: &mut Kinds, group: &str) -> Result<(), ClusterError> {
    let versions = if group.is_empty() {
        vec![(String::new(), "v1".to_owned())]
    } else {
        let mut path = "/apis".to_owned();
        push_segment(&mut path, group)?;
        match transport.json::<ClassicGroup>(&Call::read_path(path, CLASSIC)).await {
            Ok(found) => by_preference(kinds, ClassicGroup { name: group.to_owned(), ..found }),
            // The last CRD of the group is gone, or the first is not served yet.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::UnknownKind) => Vec::new(),
            Err(error) => return Err(error),
        }
    };
    add_classic(transport, kinds, versions).await;
    Ok(())
}

/// Fetches the hash of the version in which the server stores objects of a kind; aggregated discovery has none.
pub(super) async fn storage_version_hash(transport: &Transport, kind: &Kind) -> Result<Option<String>, ClusterError> {
    let call = Call::read_path(group_version_path(&kind.group, &kind.version)?, CLASSIC);
    let resources = transport.json::<ClassicResources>(&call).await?.resources.unwrap_or_default();
    let resource = resources.into_iter().find(|resource| resource.name == kind.plural);
    Ok(resource.and_then(|resource| resource.storage_version_hash).filter(|hash| !hash.is_empty()))
}

fn no_discovery() -> ClusterError {
    ClusterError::new(ErrorKind::Protocol, "the server does not list its APIs; is this address an API server's?")
}

fn add_aggregated(kinds: &mut Kinds, group: Group) {
    let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
    let versions = group.versions.unwrap_or_default();
    if versions.is_empty() {
        kinds.add_broken(name.as_str(), "the server lists no version of it");
    }
    for version in versions {
        let resources = version.resources.unwrap_or_default();
        let place = || format!("{name}/{}", version.version);
        if version.freshness.as_deref() == Some("Stale") {
            kinds.add_broken(place(), "its API server does not answer");
        } else if resources.is_empty() {
            kinds.add_broken(place(), "the server lists no kind of it");
        }
        for resource in resources {
            let kind = resource.response_kind.map(|kind| kind.kind).unwrap_or_default();
            if kind.is_empty() {
                continue;
            }
            let subresources = resource.subresources.unwrap_or_default();
            add(
                kinds,
                Kind {
                    group: name.clone(),
                    version: version.version.clone(),
                    kind,
                    plural: resource.resource,
                    singular: resource.singular_resource.unwrap_or_default(),
                    short_names: resource.short_names.unwrap_or_default(),
                    namespaced: resource.scope.as_deref() == Some("Namespaced"),
                    verbs: resource.verbs.unwrap_or_default(),
                    subresources: subresources.into_iter().map(|subresource| subresource.subresource).collect(),
                },
            );
        }
    }
}

/// The versions of a group, the preferred one first, the others in the server's order.
fn by_preference(kinds: &mut Kinds, group: ClassicGroup) -> Vec<(String, String)> {
    let mut versions: Vec<String> = group.preferred_version.into_iter().map(|version| version.version).collect();
    for version in group.versions.unwrap_or_default() {
        if !versions.contains(&version.version) {
            versions.push(version.version);
        }
    }
    if versions.is_empty() {
        kinds.add_broken(group.name.as_str(), "the server lists no version of it");
    }
    versions.into_iter().map(|version| (group.name.clone(), version)).collect()
}

async fn add_classic(transport: &Transport, kinds: &mut Kinds, wanted: Vec<(String, String)>) {
    // Concurrent, within the transport's limit. Added in the order of preference.
    let answers = futures::future::join_all(wanted.iter().map(|(group, version)| async move {
        // An aggregated API that is down answers 503 the whole time.
        let call = Call { dispensable: true, ..Call::read_path(group_version_path(group, version)?, CLASSIC) };
        transport.send_measured::<ClassicResources>(&call).await.map(|answer| answer.body.0)
    }))
    .await;
    for ((group, version), answer) in wanted.iter().zip(answers) {
        match answer {
            Ok(list) => add_resources(kinds, group, version, list.resources.unwrap_or_default()),
            Err(error) => kinds.add_broken(format!("{group}/{version}"), error.message),
        }
    }
}

fn add_resources(kinds: &mut Kinds, group: &str, version: &str, resources: Vec<ClassicResource>) {
    let subresources: Vec<(String, String)> = resources
        .iter()
        .filter_map(|resource| resource.name.split_once('/'))
        .map(|(parent, subresource)| (parent.to_owned(), subresource.to_owned()))
        .collect();
    for resource in resources.into_iter().filter(|resource| !resource.name.contains('/') && !resource.kind.is_empty()) {
        let own = subresources.iter().filter(|(parent, _)| *parent == resource.name);
        let own = own.map(|(_, subresource)| subresource.clone()).collect();
        add(
            kinds,
            Kind {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource.kind,
                plural: resource.name,
                singular: resource.singular_name.unwrap_or_default(),
                short_names: resource.short_names.unwrap_or_default(),
                namespaced: resource.namespaced,
                verbs: resource.verbs.unwrap_or_default(),
                subresources: own,
            },
        );
    }
}

/// Parses one answer as each format of discovery.
#[cfg(fuzzing)]
pub(super) fn read_any(kinds: &mut Kinds, body: &[u8]) {
    use super::transport::parse;
    if let Ok(list) = parse::<GroupList>(body) {
        list.items.unwrap_or_default().into_iter().for_each(|group| add_aggregated(kinds, group));
        list.groups.unwrap_or_default().into_iter().for_each(|group| drop(by_preference(kinds, group)));
    }
    if let Ok(list) = parse::<ClassicResources>(body) {
        add_resources(kinds, "g", "v1", list.resources.unwrap_or_default());
    }
}

/// Two resources can return one kind (metrics APIs do); the first is the kind's own.
fn add(kinds: &mut Kinds, kind: Kind) {
    if kinds.find(&kind.group, &kind.version, &kind.kind).is_none() {
        kinds.add(kind);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{Fake, Reply};
    use crate::{Cluster, ErrorKind, Kinds};

    fn aggregated(path: &str) -> Value {
        let items = if path == "/api" {
            json!([{"metadata": {"name": ""}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "pods", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "scope": "Namespaced",
                 "singularResource": "pod", "verbs": ["get", "list"], "shortNames": ["po"],
                 "subresources": [{"subresource": "status"}, {"subresource": "eviction"}]}]}]}])
        } else {
            json!([
                {"metadata": {"name": "ex.com"}, "versions": [
                    {"version": "v2", "freshness": "Current", "resources": [
                        {"resource": "foos", "responseKind": {"kind": "Foo"}, "scope": "Cluster", "verbs": ["get"]},
                        {"resource": "foolists", "responseKind": {"kind": "Foo"}, "scope": "Cluster"},
                        {"resource": "unnamed", "scope": "Cluster"}]},
                    {"version": "v1", "resources": [{"resource": "foos", "responseKind": {"kind": "Foo"}, "scope": "Cluster"}]}]},
                {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
                {"metadata": {"name": "nothing.io"}},
            ])
        };
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
    }

    fn classic(path: &str) -> Reply {
        let group = |name: &str, preferred: &str, versions: &[&str]| {
            let versions: Vec<Value> = versions.iter().map(|version| json!({"version": version})).collect();
            json!({"name": name, "versions": versions, "preferredVersion": {"version": preferred}})
        };
        let resource =
            |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true, "verbs": ["get"]});
        Reply::json(
            200,
            &match path {
                "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
                "/apis" => json!({"kind": "APIGroupList",
                    "groups": [group("ex.com", "v1", &["v2", "v1"]), group("dead.io", "v1", &["v1"])]}),
                "/apis/ex.com" => group("ex.com", "v2", &["v2", "v1"]),
                "/api/v1" => json!({"resources": [resource("pods", "Pod"), resource("pods/status", "Pod")]}),
                "/apis/ex.com/v1" | "/apis/ex.com/v2" => json!({"resources": [resource("foos", "Foo")]}),
                _ => return Reply::status(404, "NotFound", "the server could not find the requested resource"),
            },
        )
    }

    fn versions(kinds: &Kinds, group: &str, kind: &str) -> Vec<String> {
        kinds.versions(group, kind).iter().map(|kind| kind.version.clone()).collect()
    }

    #[tokio::test]
    async fn everything_comes_in_two_requests() {
        let fake = Fake::function(|asked| {
            assert!(asked.headers["accept"].to_str().unwrap().contains("as=APIGroupDiscoveryList"));
            Reply::json(200, &aggregated(&asked.path))
        });
        let kinds = fake.cluster.kinds().await.unwrap();
        let pod = kinds.preferred("", "Pod").unwrap();
        assert_eq!((pod.plural.as_str(), pod.singular.as_str(), pod.namespaced), ("pods", "pod", true));
        assert_eq!((pod.short_names.as_slice(), pod.offers("list")), (["po".to_owned()].as_slice(), true));
        assert_eq!(pod.subresources, ["status", "eviction"]);
        assert_eq!(versions(&kinds, "ex.com", "Foo"), ["v2", "v1"]);
        assert_eq!(kinds.preferred("ex.com", "Foo").unwrap().plural, "foos");
        fake.cluster.kinds().await.unwrap();
        assert_eq!(fake.asked().len(), 2);
    }

    #[tokio::test]
    async fn a_group_that_does_not_answer_is_noted_and_fails_nothing() {
        let fake = Fake::function(|asked| Reply::json(200, &aggregated(&asked.path)));
        let kinds = fake.cluster.kinds().await.unwrap();
        assert_eq!(kinds.broken_group("metrics.k8s.io"), Some("its API server does not answer"));
        assert_eq!(kinds.broken_group("nothing.io"), Some("the server lists no version of it"));
        assert_eq!(kinds.broken_group("ex.com"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_aggregate_is_asked_group_by_group() {
        let fake = Fake::function(|asked| match asked.path.as_str() {
            "/apis/dead.io/v1" => Reply::status(503, "ServiceUnavailable", "the server is currently unable"),
            path => classic(path),
        });
        let began = tokio::time::Instant::now();
        let kinds = fake.cluster.kinds().await.unwrap();
        assert!(began.elapsed().as_secs() < 5);
        assert_eq!(versions(&kinds, "ex.com", "Foo"), ["v1", "v2"]);
        assert_eq!(kinds.preferred("", "Pod").unwrap().subresources, ["status"]);
        assert_eq!(kinds.broken_group("dead.io"), Some("the server is currently unable"));
    }

    #[tokio::test]
    async fn only_the_group_that_changed_is_read_anew() {
        let fake = Fake::function(|asked| match asked.path.as_str() {
            path @ ("/api" | "/apis") => Reply::json(200, &aggregated(path)),
            path => classic(path),
        });
        let before = fake.cluster.kinds().await.unwrap();
        assert!(!before.preferred("ex.com", "Foo").unwrap().namespaced);
        let after = fake.cluster.rediscover("ex.com").await.unwrap();
        assert!(after.preferred("ex.com", "Foo").unwrap().namespaced);
        assert!(after.preferred("", "Pod").is_some());
        let gone = fake.cluster.rediscover("nothing.io").await.unwrap();
        assert_eq!(gone.broken_group("nothing.io"), None);
        assert_eq!(fake.cluster.kinds().await.unwrap().preferred("ex.com", "Foo"), after.preferred("ex.com", "Foo"));
        let paths: Vec<String> = fake.asked().into_iter().map(|asked| asked.path).skip(2).collect();
        assert_eq!(paths, ["/apis/ex.com", "/apis/ex.com/v2", "/apis/ex.com/v1", "/apis/nothing.io"]);
    }

    #[tokio::test]
    async fn a_group_that_cannot_be_read_anew_leaves_what_was_known() {
        let fake = Fake::function(|asked| match asked.path.as_str() {
            path @ ("/api" | "/apis") => Reply::json(200, &aggregated(path)),
            _ => Reply::status(403, "Forbidden", "forbidden: User \"u\" cannot get path \"/apis/ex.com\""),
        });
        fake.cluster.kinds().await.unwrap();
        assert_eq!(fake.cluster.rediscover("ex.com").await.unwrap_err().kind, ErrorKind::Forbidden);
        assert!(fake.cluster.kinds().await.unwrap().preferred("ex.com", "Foo").is_some());
    }

    #[tokio::test]
    async fn an_address_that_is_no_api_servers_is_an_error() {
        let fake = Fake::function(|_| Reply::json(200, &json!({"hello": "world"})));
        let error = fake.cluster.kinds().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
        assert!(error.message.contains("is this address an API server's?"), "{}", error.message);
    }
}
