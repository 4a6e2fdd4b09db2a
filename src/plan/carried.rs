//! A definition whose update would strand stored objects: what is done to them first, if the storage policy allows it.

use std::sync::Arc;

use pushback_crd::definition::{CarryOver, StoragePolicy, StoredState, carry_over, dropped_versions};
use pushback_crd::schema::pipeline::Server;
use pushback_preflight::{ObjectExt, ObjectRef, Operation, Verification};
use serde_json::Value;

use super::compare::Context;
use super::compared::Compared;
use super::diff::{self, DiffOptions};
use super::estimate;
use super::guard::guard;
use crate::cluster::{Address, ApplyOptions, ClusterError, ErrorKind};
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
    let Some(way) = way(context, live, body) else { return Ok(false) };
    let dropped = dropped_versions(live, body).join(" and ");
    let storage = StoredState::of(body).storage.unwrap_or_default();
    match &way {
        CarryOver::After | CarryOver::Done => return Ok(false),
        CarryOver::Before => compared.notes.push(format!(
            "objects that are stored in {dropped} are moved to the storage version first, and that is proved"
        )),
        CarryOver::Bridge(bridge) => {
            let asked = context.cluster.apply(address, &guard(bridge, live), ApplyOptions::DRY_RUN).await;
            if let Err(error) = asked {
                compared.refused = Some(prefixed(error, "a definition with the old and the new versions is refused"));
            } else {
                let found = losses::find(context.cluster, live, bridge, Server::default()).await?;
                compared.refused = refusal(&found, &storage);
            }
            compared.notes.push(format!(
                "objects that are stored in {dropped} are carried over to {storage} first: by a definition with both, \
                 which this one replaces once no object is left in {dropped}"
            ));
        }
    }
    compared.operation = Operation::Update;
    compared.fields = diff::diff(live, &estimate::applied(live, body), &DiffOptions::default());
    compared.verification = Verification::NotVerified("its stored objects are moved first".to_owned());
    compared.carry_over = Some(way);
    Ok(true)
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
    // What a manifest says of itself can only be stricter.
    let own = body.annotation(ANNOTATION).map(|name| StoragePolicy::named(name).unwrap_or_default());
    carry_over(live, body, own.map_or(context.storage, |own| own.min(context.storage)))
}

fn prefixed(error: ClusterError, prefix: &str) -> ClusterError {
    ClusterError { message: format!("{prefix}: {}", error.message), causes: Vec::new(), ..error }
}
