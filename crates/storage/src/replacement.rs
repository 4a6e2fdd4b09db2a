//! A definition that another form of itself is to replace: the way of its stored objects, and what stands against it.
//! Read only; [`super::carry_over`] goes the way.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, Cluster, ClusterError, Guard};
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
    ) -> Result<Option<Obstacle>, ClusterError> {
        let target = match &self.way {
            None | Some(CarryOver::Before | CarryOver::Done | CarryOver::WebhookFirst(_)) => return Ok(None),
            Some(CarryOver::After) => wanted,
            Some(CarryOver::Bridge(bridge)) => {
                if !has_begun(live) {
                    // The API server writes the status of a CRD at any time, which does not change its answer.
                    let body = Guard::Identity.of(bridge, live);
                    match cluster.apply(address, &body, ApplyOptions::DRY_RUN).await {
                        Ok(_) => {}
                        Err(error) if error.kind.is_unanswered() => return Err(error),
                        Err(error) => return Ok(Some(Obstacle::Bridge(error))),
                    }
                }
                if let Some(conversion) = &self.conversion {
                    let message = conversion.check(cluster, live).await?.sentence();
                    return Ok(message.map(Obstacle::Conversion));
                }
                bridge
            }
        };
        let losses = losses::find(cluster, live, target, Server::default()).await?;
        let storage = StoredState::of(target).storage.unwrap_or_default();
        Ok((losses.affected > 0).then_some(Obstacle::Loss { losses, storage }))
    }
}

/// A reason why stored objects cannot be carried over.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// The API server refuses the CRD with the old and the new versions.
    Bridge(ClusterError),
    /// The conversion plan does not fit the objects.
    Conversion(String),
    /// Without a conversion only the version of objects changes, so that they would lose fields.
    Loss {
        /// The fields.
        losses: Losses,
        /// The version that objects are moved to.
        storage: String,
    },
    /// An earlier run has begun to convert objects, and this one does not continue it.
    Begun(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bridge(error) => {
                write!(f, "a definition with the old and the new versions is refused: {}", error.message)
            }
            Self::Conversion(message) | Self::Begun(message) => f.write_str(message),
            Self::Loss { losses, storage } => {
                write!(f, "stored objects cannot be carried over to {storage}: {}", losses.sentence())
            }
        }
    }
}
