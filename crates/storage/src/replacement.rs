//! A definition that another form of itself is to replace: the way of its stored objects, and what stands against it.
//! Read only; [`super::carry_over`] goes the way.

use std::path::PathBuf;
use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, Cluster, ClusterError, ErrorKind, guarded};
use pushback_conversion::GivenPlan;
use pushback_crd::definition::{CONVERTING, CarryOver, StoragePolicy, StoredState, carry_over, converting_bridge};
use pushback_crd::schema::pipeline::Server;
use pushback_crd::stack;
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::converting::Conversion;
use super::losses::{self, Losses};

/// What is done to the stored objects of a definition when another form of it is written.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The way; `None` if nothing is done to them.
    pub way: Option<CarryOver>,
    /// How they are converted on it, if a plan says so.
    pub conversion: Option<Conversion>,
}

/// The way under a policy, without a conversion plan.
#[must_use]
pub fn way(live: &Value, wanted: &Value, policy: StoragePolicy) -> Option<CarryOver> {
    // The storage version has changed already, but not all objects have come along.
    match carry_over(live, wanted, policy) {
        Some(CarryOver::Before) if has_begun(live) => Some(CarryOver::Bridge(live.clone())),
        way => way,
    }
}

/// Whether an earlier run has begun to convert objects of the definition.
fn has_begun(live: &Value) -> bool {
    live.annotation(CONVERTING).is_some()
}

impl Replacement {
    /// The way under a policy. A plan that does not fit is left out: it is an error of the input.
    #[must_use]
    pub fn of(
        live: &Value,
        wanted: &Arc<Value>,
        policy: StoragePolicy,
        given: Option<&GivenPlan>,
        backup: Option<PathBuf>,
    ) -> Self {
        let mut way = way(live, wanted, policy);
        let Some(CarryOver::Bridge(bridge)) = &mut way else { return Self { way, conversion: None } };
        let conversion = given.and_then(|given| {
            let converter = stack::with_room(|| given.converter(Some(live), wanted)).ok()?;
            Conversion::new(converter, live, wanted, backup)
        });
        if conversion.is_some()
            && !has_begun(live)
            && let Some(converting) = converting_bridge(live, wanted)
        {
            *bridge = converting;
        }
        Self { way, conversion }
    }

    /// Why the way cannot be gone: the API server refuses the definition with the old and the new versions, or stored
    /// objects cannot be converted, or would lose fields.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn obstacle(
        &self,
        cluster: &dyn Cluster,
        address: &Address,
        live: &Value,
        wanted: &Value,
    ) -> Result<Option<ClusterError>, ClusterError> {
        let target = match &self.way {
            None | Some(CarryOver::Before | CarryOver::Done | CarryOver::WebhookFirst(_)) => return Ok(None),
            Some(CarryOver::After) => wanted,
            Some(CarryOver::Bridge(bridge)) => {
                if !has_begun(live)
                    && let Err(error) = cluster.apply(address, &guarded(bridge, live), ApplyOptions::DRY_RUN).await
                {
                    let message =
                        format!("a definition with the old and the new versions is refused: {}", error.message);
                    return Ok(Some(ClusterError { message, causes: Vec::new(), ..error }));
                }
                if let Some(conversion) = &self.conversion {
                    let message = conversion.check(cluster, live).await?.sentence();
                    return Ok(message.map(|message| ClusterError::new(ErrorKind::Invalid, message)));
                }
                bridge
            }
        };
        let found = losses::find(cluster, live, target, Server::default()).await?;
        Ok(refusal(&found, &StoredState::of(target).storage.unwrap_or_default()))
    }
}

/// Why objects cannot be moved: without a conversion, only their version changes.
fn refusal(found: &Losses, storage: &str) -> Option<ClusterError> {
    (found.affected > 0).then(|| {
        let message = format!("stored objects cannot be carried over to {storage}: {}", found.sentence());
        ClusterError::new(ErrorKind::Invalid, message)
    })
}
