//! Compares an object that controllers keep writing: what the server answers counts if nothing but the status has
//! changed around it.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, ClusterError, ErrorKind, Guard};
use serde_json::Value;

use super::super::comparison::Context;
use super::super::desired::Desired;
use super::super::{Difference, Planned, steady};
use super::with_state;

/// How often an object is planned that changes meanwhile.
const ATTEMPTS: u32 = 6;

/// Time before the second attempt; it doubles with each.
const PAUSE: Duration = Duration::from_millis(50);

/// Compares with a live object. The listed one may be outdated by a status update, which does not concern the input.
pub(super) async fn with_live(
    context: Context<'_>,
    desired: &Desired,
    address: &Address,
    mut live: Arc<Value>,
) -> Result<Planned, ClusterError> {
    let planned = with_state(context, desired, address, Arc::clone(&live), Guard::State).await?;
    if !is_outdated(&planned) {
        return Ok(planned);
    }
    let Some(seen) = context.cluster.get(address).await? else { return Ok(planned) };
    live = seen;
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        // Its status may change between any two requests: only two reads around them can tell.
        let mut planned = with_state(context, desired, address, Arc::clone(&live), Guard::Identity).await?;
        let Some(seen) = context.cluster.get(address).await? else { return Ok(planned) };
        if !is_outdated(&planned) && steady::is_same(&live, &seen) {
            if let Some(Difference { takeover: Some(takeover), .. }) = planned.action.difference_mut() {
                takeover.keep_status_of(&seen);
            }
            planned.live = Some(seen);
            return Ok(planned);
        }
        live = seen;
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    with_state(context, desired, address, live, Guard::State).await
}

/// Whether the server says that the object is another one by now.
fn is_outdated(planned: &Planned) -> bool {
    planned.refused.as_ref().is_some_and(|refused| refused.error.kind == ErrorKind::Conflict)
}
