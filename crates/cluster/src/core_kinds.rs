//! Kinds that every server has, for those who need no discovery: what controllers make below the objects of an app, and
//! the events about them.

use std::sync::{Arc, LazyLock};

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::Kind;

static KINDS: LazyLock<[Arc<Kind>; 5]> = LazyLock::new(|| {
    let kind = |group: &str, kind: &str, plural: &str| {
        Arc::new(Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            verbs: vec!["list".to_owned(), "watch".to_owned()],
            ..Kind::default()
        })
    };
    [
        kind("", "Pod", "pods"),
        kind("apps", "ReplicaSet", "replicasets"),
        kind("", "Event", "events"),
        kind("discovery.k8s.io", "EndpointSlice", "endpointslices"),
        kind("", "Endpoints", "endpoints"),
    ]
});

/// The kind Pod.
#[must_use]
pub fn pod() -> Arc<Kind> {
    Arc::clone(&KINDS[0])
}

/// The kind ReplicaSet.
#[must_use]
pub fn replica_set() -> Arc<Kind> {
    Arc::clone(&KINDS[1])
}

/// The kind Event.
#[must_use]
pub fn event() -> Arc<Kind> {
    Arc::clone(&KINDS[2])
}

/// The kind EndpointSlice.
#[must_use]
pub fn endpoint_slice() -> Arc<Kind> {
    Arc::clone(&KINDS[3])
}

/// The kind Endpoints.
#[must_use]
pub fn endpoints() -> Arc<Kind> {
    Arc::clone(&KINDS[4])
}

/// Whether an object is a Pod.
#[must_use]
pub fn is_pod(object: &Value) -> bool {
    is_of(object, &KINDS[0])
}

/// Whether an object is of a kind, in its version.
#[must_use]
pub fn is_of(object: &Value, kind: &Kind) -> bool {
    let api_version = object.text("/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group, version, object.text("/kind")) == (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str())
}
