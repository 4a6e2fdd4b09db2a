//! A definition whose update would strand stored objects: what is done to them first, if the storage policy allows it.

use std::sync::Arc;

use pushback_crd::definition::{
    CONVERTING, CarryOver, StoragePolicy, StoredState, carry_over, converting_bridge, dropped_versions,
};
use pushback_crd::schema::pipeline::Server;
use pushback_crd::stack;
use pushback_preflight::{ObjectExt, ObjectRef, Operation, Verification};
use serde_json::Value;

use super::compare::Context;
use super::compared::Compared;
use super::diff::{self, DiffOptions};
use super::estimate;
use super::guard::guard;
use crate::cluster::{Address, ApplyOptions, ClusterError, ErrorKind};
use crate::storage::converting::Conversion;
use crate::storage::losses::{self, Losses};

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
    compared: &mut Compared,
) -> Result<bool, ClusterError> {
    if let Some(refused) = half_converted(context, live, body) {
        compared.refused = Some(refused);
        return Ok(true);
    }
    let Some(mut way) = way(context, live, body) else { return Ok(false) };
    let dropped = dropped_versions(live, body).join(" and ");
    let storage = StoredState::of(body).storage.unwrap_or_default();
    match &mut way {
        CarryOver::After | CarryOver::Done => return Ok(false),
        CarryOver::Before => compared.notes.push(format!(
            "objects that are stored in {dropped} are moved to the storage version first, and that is proved"
        )),
        CarryOver::Bridge(bridge) => {
            compared.conversion = conversion(context, live, body);
            let has_begun = live.annotation(CONVERTING).is_some();
            if compared.conversion.is_some()
                && !has_begun
                && let Some(converting) = converting_bridge(live, body)
            {
                *bridge = converting;
            }
            let how = match &compared.conversion {
                None => "carried over",
                Some(_) => "converted by the plan and carried over",
            };
            compared.notes.push(format!(
                "objects that are stored in {dropped} are {how} to {storage} first: by a definition with both, which this \
                 one replaces once no object is left in {dropped}"
            ));
            compared.refused = bridge_refusal(context, address, live, bridge, compared.conversion.as_ref()).await?;
        }
    }
    compared.operation = Operation::Update;
    compared.fields = diff::diff(live, &estimate::applied(live, body), &DiffOptions::default());
    compared.verification = Verification::NotVerified("its stored objects are moved first".to_owned());
    compared.carry_over = Some(way);
    Ok(true)
}

/// Why objects cannot be carried over by a definition with the old and the new versions.
async fn bridge_refusal(
    context: Context<'_>,
    address: &Address,
    live: &Value,
    bridge: &Value,
    conversion: Option<&Conversion>,
) -> Result<Option<ClusterError>, ClusterError> {
    let has_begun = live.annotation(CONVERTING).is_some();
    if !has_begun && let Err(error) = context.cluster.apply(address, &guard(bridge, live), ApplyOptions::DRY_RUN).await
    {
        return Ok(Some(prefixed(error, "a definition with the old and the new versions is refused")));
    }
    match conversion {
        Some(conversion) => {
            let message = conversion.check(context.cluster, live).await?.sentence();
            Ok(message.map(|message| ClusterError::new(ErrorKind::Invalid, message)))
        }
        None => {
            let found = losses::find(context.cluster, live, bridge, Server::default()).await?;
            Ok(refusal(&found, &StoredState::of(bridge).storage.unwrap_or_default()))
        }
    }
}

/// How the objects of a definition are converted, if there is a plan for it. One that does not fit is an error of the
/// input, which is told with its position once everything is planned.
fn conversion(context: Context<'_>, live: &Value, body: &Arc<Value>) -> Option<Conversion> {
    let given = context.storage.plans.for_definition(body.name())?;
    let converter = stack::with_room(|| given.converter(Some(live), body)).ok()?;
    Conversion::new(converter, live, body, context.storage.backup.clone())
}

/// Why an update does not go on with a conversion that an earlier run has begun.
fn half_converted(context: Context<'_>, live: &Value, body: &Value) -> Option<ClusterError> {
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
    Some(ClusterError::new(ErrorKind::Invalid, message))
}

/// Decides about a definition that the server accepts: its objects may be stored in another version afterwards.
///
/// # Errors
/// The cluster cannot be reached.
pub(super) async fn after(
    context: Context<'_>,
    live: &Value,
    body: &Value,
    compared: &mut Compared,
) -> Result<(), ClusterError> {
    let way = way(context, live, body);
    if way == Some(CarryOver::After) {
        // Also if an earlier run has written the definition, and left its objects where they were.
        compared.operation = Operation::Update;
        compared.verification = Verification::Server;
        let storage = StoredState::of(body).storage.unwrap_or_default();
        compared.notes.push(format!("its objects are moved to {storage} once it is written, and that is proved"));
        let found = losses::find(context.cluster, live, body, Server::default()).await?;
        compared.refused = refusal(&found, &storage);
    }
    compared.carry_over =
        way.filter(|way| matches!(way, CarryOver::After | CarryOver::Done) && compared.operation.writes());
    Ok(())
}

/// Why objects cannot be moved: without a conversion, only their version changes.
fn refusal(found: &Losses, storage: &str) -> Option<ClusterError> {
    (found.affected > 0).then(|| {
        let message = format!("stored objects cannot be carried over to {storage}: {}", found.sentence());
        ClusterError::new(ErrorKind::Invalid, message)
    })
}

/// Whether objects of a definition are to be moved, even if nothing of it changes.
pub(super) fn moves_objects(context: Context<'_>, live: &Value, body: &Value) -> bool {
    way(context, live, body) == Some(CarryOver::After)
}

fn way(context: Context<'_>, live: &Value, body: &Value) -> Option<CarryOver> {
    if !(context.cluster.capabilities().server && ObjectRef::of(body).is_definition()) {
        return None;
    }
    let way = carry_over(live, body, policy(context, body));
    // The storage version has changed already, but not all objects have come along.
    match way {
        Some(CarryOver::Before) if live.annotation(CONVERTING).is_some() => Some(CarryOver::Bridge(live.clone())),
        way => way,
    }
}

/// What a manifest says of itself can only be stricter.
fn policy(context: Context<'_>, body: &Value) -> StoragePolicy {
    let own = body.annotation(ANNOTATION).map(|name| StoragePolicy::named(name).unwrap_or_default());
    own.map_or(context.storage.policy, |own| own.min(context.storage.policy))
}

fn prefixed(error: ClusterError, prefix: &str) -> ClusterError {
    ClusterError { message: format!("{prefix}: {}", error.message), causes: Vec::new(), ..error }
}
