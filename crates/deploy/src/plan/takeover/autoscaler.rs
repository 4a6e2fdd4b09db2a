//! Whether an autoscaler controls an object's replicas: a manifest without the field then means to leave them alone,
//! not to use the server's default.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Cluster, Kind, ListQuery, list_all};
use pushback_objects::{ObjectExt, ObjectKey};
use serde_json::Value;

/// The objects that the given autoscalers scale.
pub fn targets<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeSet<ObjectKey> {
    objects.filter_map(target).collect()
}

fn target(object: &Value) -> Option<ObjectKey> {
    let is_autoscaler = object.text("/kind") == "HorizontalPodAutoscaler"
        && object.text("/apiVersion").split_once('/').is_some_and(|(group, _)| group == "autoscaling");
    let api_version = object.text("/spec/scaleTargetRef/apiVersion");
    is_autoscaler.then(|| ObjectKey {
        group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: object.text("/spec/scaleTargetRef/kind").to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.text("/spec/scaleTargetRef/name").to_owned(),
    })
}

/// Whether an autoscaler of the cluster scales an object. Without permission to list them, none is assumed.
pub(super) async fn is_autoscaled(cluster: &dyn Cluster, key: &ObjectKey) -> bool {
    let kind = Kind {
        group: "autoscaling".to_owned(),
        version: "v2".to_owned(),
        kind: "HorizontalPodAutoscaler".to_owned(),
        plural: "horizontalpodautoscalers".to_owned(),
        namespaced: true,
        ..Kind::default()
    };
    let query = ListQuery::new(Arc::new(kind), Some(&key.namespace), "");
    let Ok(page) = list_all(cluster, &query).await else { return false };
    targets(page.items.iter().map(AsRef::as_ref)).contains(key)
}
