//! Whether anything reports on the objects of a kind: a custom resource without a controller never gets a status, and
//! waiting for one costs seconds.

use std::sync::Arc;

use pushback_cluster::{Cluster, ErrorKind, Kind, ListQuery};
use pushback_objects::ObjectExt;
use pushback_objects::object::is_custom_group;
use pushback_preflight::Operation;
use serde_json::Value;

use super::Engine;
use super::view::ReadResponse;

/// How many objects of a kind are looked at. One of them with a status is enough.
const LOOKED_AT: u32 = 50;

impl Engine<'_> {
    /// Whether a status of the object may still appear. The cluster is asked once for each kind; until then it may.
    pub(super) fn expects_status(&mut self, node: usize, object: &Value) -> bool {
        let kind = &self.plan.objects[node].kind;
        if !kind.subresources.iter().any(|name| name == "status") {
            return false;
        }
        // Only an answer that is waited for may be asked for: the run must not end in the middle of the request.
        let is_unchanged = self.plan.objects[node].change.operation == Operation::Noop;
        if !is_custom_group(&kind.group) || has_status(object) || is_unchanged {
            return true;
        }
        let key = (kind.group.clone(), kind.kind.clone());
        if let Some(known) = self.view.reporting.get(&key) {
            return known.unwrap_or(true);
        }
        self.view.reporting.insert(key, None);
        let (kind, namespace) = (Arc::clone(kind), object.namespace().to_owned());
        let cluster = Arc::clone(&self.writes.writer.cluster);
        self.view.looks.spawn(async move {
            let reports = is_reported_on(&*cluster, &kind, &namespace).await;
            ReadResponse::Reporting(kind, reports)
        });
        true
    }

    /// Takes in whether a kind is reported on, and looks again at the objects that wait.
    pub(super) fn on_reporting(&mut self, kind: &Kind, reports: bool) {
        self.view.reporting.insert((kind.group.clone(), kind.kind.clone()), Some(reports));
        for node in 0..self.nodes.len() {
            let is_of_kind = *self.plan.objects[node].kind == *kind;
            if is_of_kind && !self.is_deletion(node) && self.nodes[node].waiting().is_some() {
                self.update_readiness(node);
            }
        }
    }
}

/// Whether any object of the kind has a status. What may not be read is taken for reported on.
async fn is_reported_on(cluster: &dyn Cluster, kind: &Arc<Kind>, namespace: &str) -> bool {
    let query =
        |namespace: Option<&str>| ListQuery { limit: LOOKED_AT, ..ListQuery::new(Arc::clone(kind), namespace, "") };
    let page = match cluster.list(&query(None)).await {
        Err(error) if error.kind == ErrorKind::Forbidden && kind.namespaced => {
            cluster.list(&query(Some(namespace))).await
        }
        page => page,
    };
    page.map_or(true, |page| page.items.iter().any(|object| has_status(object)))
}

fn has_status(object: &Value) -> bool {
    object.get("status").and_then(Value::as_object).is_some_and(|status| !status.is_empty())
}
