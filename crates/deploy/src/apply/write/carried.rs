//! The stored objects of a definition, before and after it is written: moved to the version that it stores them in.

use std::sync::Arc;

use pushback_cluster::Address;
use pushback_crd::definition::CarryOver;
use pushback_storage::carry_over::CarryingOver;
use serde_json::Value;

use super::{Done, Failure, Writer};
use crate::plan::Planned;

impl Writer {
    /// Before a definition is written: moves its stored objects, and returns what the definition is then.
    pub(super) async fn carry_over(&self, planned: &Planned, address: &Address) -> Result<Option<Arc<Value>>, Failure> {
        let Some(carry_over) = &planned.difference().carry_over else { return Ok(None) };
        self.allowed()?;
        self.pause_operators(planned).await?;
        let carrying = self.carrying(planned, address);
        carrying.before(carry_over, &self.events).await.map_err(Failure::Cluster)?;
        if matches!(carry_over, CarryOver::Bridge(_)) {
            self.written.note(planned, planned.operation());
        }
        self.cluster.get(address).await.map_err(Failure::Cluster)
    }

    /// Writes the definition as it is until the webhook of the same run is ready. Another round judges and writes the wanted
    /// one; the two differ in the storage version alone.
    pub(super) async fn write_first(
        &self,
        planned: &Planned,
        address: &Address,
        first: &Value,
    ) -> Result<Done, Failure> {
        self.allowed()?;
        let live = planned.live.as_deref().unwrap_or(&Value::Null);
        let written = self.carrying(planned, address).write(first, live).await.map_err(Failure::Cluster)?;
        Ok(Done { object: Some(written.object), warnings: written.warnings, ..Done::default() })
    }

    /// After a definition was written: moves its stored objects to the new storage version.
    pub(super) async fn carried_over(&self, planned: &Planned, address: &Address, done: Done) -> Result<Done, Failure> {
        let Some(carry_over) = &planned.difference().carry_over else { return Ok(done) };
        let moved = self.carrying(planned, address).after(carry_over, &self.events).await;
        moved.map_err(|mut error| {
            error.message = format!("it was written, but its objects are not moved yet: {}", error.message);
            Failure::Cluster(error)
        })?;
        Ok(done)
    }

    fn carrying<'a>(&'a self, planned: &'a Planned, address: &'a Address) -> CarryingOver<'a> {
        CarryingOver {
            cluster: &*self.cluster,
            definitions: Arc::clone(&address.kind),
            name: &address.name,
            conversion: planned.difference().conversion.as_ref(),
            lock: self.session.as_ref().map(|session| session.lease()),
            namespace: self.session.as_ref().map(|session| session.namespace().to_owned()).unwrap_or_default(),
        }
    }
}
