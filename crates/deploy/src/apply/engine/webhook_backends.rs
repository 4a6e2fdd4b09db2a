//! The backends of admission webhooks: whether what the API server calls has an endpoint yet.

use std::collections::BTreeMap;

use pushback_cluster::core_kinds;
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Operation;
use serde_json::Value;

use super::Engine;

impl Engine<'_> {
    /// The app's Services with Pods that a webhook configuration calls, each with whether an endpoint is ready.
    pub(super) fn backends(&mut self, configuration: &Value) -> Vec<(String, bool)> {
        let mut backends = BTreeMap::new();
        for service in called_services(configuration) {
            let Some(&node) = self.by_key.get(&service.key()) else { continue };
            let is_kept = self.plan.objects[node].operation() != Operation::Delete;
            let live = self.nodes[node].object.as_deref();
            let desired = self.plan.objects[node].desired.as_deref();
            let has_pods = live.or(desired).and_then(|it| it.pointer("/spec/selector")?.as_object());
            let slices = core_kinds::endpoint_slice();
            let is_unknown = self.view.is_hidden(&slices, &service.namespace);
            if !is_kept || is_unknown || has_pods.is_none_or(serde_json::Map::is_empty) {
                continue;
            }
            self.view.watches.ensure(&slices, &service.namespace);
            let is_ready = self.view.children.has_endpoint(&service.namespace, &service.name);
            backends.insert(format!("{}/{}", service.namespace, service.name), is_ready);
        }
        backends.into_iter().collect()
    }
}

/// Services that a webhook configuration depends on: those of webhooks that fail closed.
fn called_services(configuration: &Value) -> Vec<ObjectRef> {
    if configuration.text("/apiVersion").split('/').next() != Some("admissionregistration.k8s.io") {
        return Vec::new();
    }
    let webhooks = configuration.pointer("/webhooks").and_then(Value::as_array);
    let closed = webhooks.into_iter().flatten().filter(|webhook| webhook.text("/failurePolicy") != "Ignore");
    let services = closed.filter_map(|webhook| webhook.pointer("/clientConfig/service"));
    let named = services.map(|service| ObjectRef {
        version: "v1".to_owned(),
        kind: "Service".to_owned(),
        namespace: service.text("/namespace").to_owned(),
        name: service.text("/name").to_owned(),
        ..ObjectRef::default()
    });
    named.collect()
}
