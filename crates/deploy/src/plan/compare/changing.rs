//! Compares an object that controllers keep writing: what the server answers counts if nothing but the status has
//! changed around it.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, ClusterError, ErrorKind, Guard};
use serde_json::Value;

use super::super::compared::Compared;
use super::super::comparison::Context;
use super::super::desired::Desired;
use super::super::steady;
use super::with_state;

/// How often an object is compared that changes meanwhile.
const ATTEMPTS: u32 = 6;

/// Time before the second attempt; it doubles with each.
const PAUSE: Duration = Duration::from_millis(50);

/// Compares with a live object. The listed one may be outdated by a status update, which does not concern the input.
pub(super) async fn with_live(
    context: Context<'_>,
    desired: &Desired,
    address: &Address,
    mut live: Arc<Value>,
) -> Result<Compared, ClusterError> {
    let compared = with_state(context, desired, address, Arc::clone(&live), Guard::State).await?;
    if !is_outdated(&compared) {
        return Ok(compared);
    }
    let Some(seen) = context.cluster.get(address).await? else { return Ok(compared) };
    live = seen;
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        // Its status may change between any two requests: only two reads around them can tell.
        let mut compared = with_state(context, desired, address, Arc::clone(&live), Guard::Identity).await?;
        let Some(seen) = context.cluster.get(address).await? else { return Ok(compared) };
        if !is_outdated(&compared) && steady::is_same(&live, &seen) {
            if let Some(takeover) = &mut compared.takeover {
                takeover.keep_status_of(&seen);
            }
            compared.live = Some(seen);
            return Ok(compared);
        }
        live = seen;
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    with_state(context, desired, address, live, Guard::State).await
}

/// Whether the server says that the object is another one by now.
fn is_outdated(compared: &Compared) -> bool {
    compared.refused.as_ref().is_some_and(|error| error.kind == ErrorKind::Conflict)
}
