//! Conversion webhooks that are deployed by the run that changes a storage version: the webhook first. The definition is
//! written with the old storage version, and another round writes the wanted one once the app is ready.

use std::collections::BTreeSet;

use pushback_crd::definition::{CarryOver, StoredState, conversion_service, webhook_first};

use super::Planned;

/// Puts off the change of the storage version where the Service of the conversion webhook is an object of the same set.
pub(super) fn assign(objects: &mut [Planned]) {
    let is_service = |planned: &&Planned| {
        let object = &planned.object;
        object.group.is_empty() && object.kind == "Service" && planned.desired.is_some()
    };
    let name = |planned: &Planned| (planned.object.namespace.clone(), planned.object.name.clone());
    let services: BTreeSet<(String, String)> = objects.iter().filter(is_service).map(name).collect();
    let is_moved = |planned: &&mut Planned| planned.difference().carry_over == Some(CarryOver::After);
    for planned in objects.iter_mut().filter(is_moved) {
        let (Some(live), Some(wanted)) = (planned.live.as_deref(), planned.desired.as_deref()) else {
            continue;
        };
        let Some((namespace, name)) = conversion_service(wanted) else { continue };
        if planned.difference().takeover.is_some() || !services.contains(&(namespace.to_owned(), name.to_owned())) {
            continue;
        }
        let Some(first) = webhook_first(live, wanted) else { continue };
        let storage = |definition| StoredState::of(definition).storage.unwrap_or_default();
        planned.notes.push(format!(
            "objects stay in {} until its webhook, Service {namespace}/{name} of this app, is ready; then a second round \
             stores them in {}",
            storage(&first),
            storage(wanted)
        ));
        if let Some(difference) = planned.action.difference_mut() {
            difference.carry_over = Some(CarryOver::WebhookFirst(first));
        }
    }
}
