//! A definition whose update would strand stored objects: what is done to them first, if the storage policy allows it.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Address, ClusterError, estimate};
use pushback_crd::definition::{
    CONVERTING, CarryOver, StoragePolicy, StoredState, conversion_service, dropped_versions, webhook_first,
};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Verification;
use pushback_storage::replacement::{Obstacle, Replacement, way};
use serde_json::Value;

use super::comparison::Context;
use super::diff::{self, DiffOptions};
use super::refusal::Refusal;
use super::{Action, Difference, Planned};

/// The annotation of a definition that allows less than `--storage`.
const ANNOTATION: &str = "pushback.dev/storage";

/// Decides about a definition that the server refuses as it is now; false if nothing may be done about it.
///
/// # Errors
/// The cluster cannot be reached.
pub(super) async fn before(
    context: Context<'_>,
    address: &Address,
    live: &Arc<Value>,
    body: &Arc<Value>,
    planned: &mut Planned,
) -> Result<bool, ClusterError> {
    if let Some(refused) = half_converted(context, live, body) {
        planned.refused = Some(Refusal::of_storage(refused));
        return Ok(true);
    }
    let Some(replacement) = replacement(context, live, body) else { return Ok(false) };
    let dropped = dropped_versions(live, body).join(" and ");
    let storage = StoredState::of(body).storage.unwrap_or_default();
    planned.notes.push(match &replacement.way {
        None | Some(CarryOver::After | CarryOver::Done | CarryOver::WebhookFirst(_)) => return Ok(false),
        Some(CarryOver::Before) => {
            format!("objects that are stored in {dropped} are moved to the storage version first, and that is proved")
        }
        Some(CarryOver::Bridge(_)) => {
            let how = match &replacement.conversion {
                None => "carried over",
                Some(_) => "converted by the plan and carried over",
            };
            format!(
                "objects that are stored in {dropped} are {how} to {storage} first: by a definition with both, which this \
                 one replaces once no object is left in {dropped}"
            )
        }
    });
    planned.refused = replacement.obstacle(context.cluster, address, live, body).await?.map(Refusal::of_storage);
    planned.action = Action::Update(Box::new(Difference {
        fields: diff::diff(live, &estimate::applied(live, body), &DiffOptions::default()),
        carry_over: replacement.way,
        conversion: replacement.conversion,
        ..Difference::default()
    }));
    planned.verification = Verification::NotVerified("its stored objects are moved first".to_owned());
    Ok(true)
}

/// Why an update does not go on with a conversion that an earlier run has begun.
fn half_converted(context: Context<'_>, live: &Value, body: &Value) -> Option<Obstacle> {
    let from = live.annotation(CONVERTING)?;
    let (target, storage) = (StoredState::of(live).storage?, StoredState::of(body).storage?);
    let begun = format!("an earlier run has begun to convert its objects from {from} to {target}");
    let message = if target != storage {
        format!("{begun}, and this definition stores {storage}: apply the one that stores {target} first")
    } else if policy(context, body) != StoragePolicy::Bridge {
        format!("{begun}: apply with --storage=bridge, so that this run goes on")
    } else if context.storage.plans.for_definition(body.name()).is_none() {
        format!("{begun}: apply with the same conversion plan, so that this run goes on")
    } else {
        return None;
    };
    Some(Obstacle::Begun(message))
}

/// Decides about a definition that the server accepts: its objects may be stored in another version afterwards.
///
/// # Errors
/// The cluster cannot be reached.
pub(super) async fn after(
    context: Context<'_>,
    address: &Address,
    live: &Value,
    body: &Arc<Value>,
    planned: &mut Planned,
) -> Result<(), ClusterError> {
    let Some(replacement) = replacement(context, live, body) else { return Ok(()) };
    if replacement.way == Some(CarryOver::After) {
        // Also if an earlier run has written the definition, and left its objects where they were.
        planned.action = Action::Update(std::mem::take(&mut planned.action).into_difference());
        planned.verification = Verification::Server;
        let storage = StoredState::of(body).storage.unwrap_or_default();
        planned.notes.push(format!("its objects are moved to {storage} once it is written, and that is proved"));
        planned.refused = replacement.obstacle(context.cluster, address, live, body).await?.map(Refusal::of_storage);
    }
    let is_after = |way: &CarryOver| matches!(way, CarryOver::After | CarryOver::Done);
    if let Some(difference) = planned.action.difference_mut() {
        difference.carry_over = replacement.way.filter(is_after);
    }
    Ok(())
}

/// Whether objects of a definition are to be moved, even if nothing of it changes.
pub(super) fn moves_objects(context: Context<'_>, live: &Value, body: &Value) -> bool {
    has_objects(context, body) && way(live, body, policy(context, body)) == Some(CarryOver::After)
}

/// Puts off the change of the storage version where the Service of the conversion webhook is an object of the same set. The
/// CRD is written with the old storage version, and another round writes the wanted one once the app is ready.
pub(super) fn put_webhooks_first(objects: &mut [Planned]) {
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

/// What is done to the stored objects; `None` for what is no definition.
fn replacement(context: Context<'_>, live: &Value, body: &Arc<Value>) -> Option<Replacement> {
    has_objects(context, body).then(|| {
        let given = context.storage.plans.for_definition(body.name());
        Replacement::of(live, body, policy(context, body), given, context.storage.backup.clone())
    })
}

fn has_objects(context: Context<'_>, body: &Value) -> bool {
    context.cluster.capabilities().server && ObjectRef::of(body).is_definition()
}

/// What a manifest says of itself can only be stricter.
fn policy(context: Context<'_>, body: &Value) -> StoragePolicy {
    let own = body.annotation(ANNOTATION).map(|name| StoragePolicy::named(name).unwrap_or_default());
    own.map_or(context.storage.policy, |own| own.min(context.storage.policy))
}
