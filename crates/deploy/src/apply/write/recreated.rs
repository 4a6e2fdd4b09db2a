//! Objects that are deleted together with a replaced parent, and created again after it.

use pushback_cluster::{Address, DeleteOptions, ErrorKind};
use pushback_objects::ObjectExt;
use serde_json::Value;
use tokio::time::Instant;

use super::{Done, Failure, Writer};
use crate::plan::Planned;

impl Writer {
    /// Creates an object again whose parent this run has replaced or deleted. The deletion of the parent was judged with
    /// everything below it, so nothing is judged again here: the object would otherwise stay deleted.
    pub(super) async fn recreate(
        &self,
        planned: &Planned,
        address: &Address,
        deadline: Instant,
    ) -> Result<Done, Failure> {
        let uid = planned.live.as_deref().map(ObjectExt::uid).unwrap_or_default();
        let seen = match self.cluster.get(address).await {
            // The CRD is there again, and not served by every API server yet.
            Err(error) if error.kind == ErrorKind::UnknownKind => None,
            seen => seen.map_err(Failure::Cluster)?,
        };
        let is_old = |seen: &Value| seen.uid() == uid && !seen.is_terminating();
        if seen.is_some_and(|seen| is_old(&seen)) {
            // The garbage collector takes its time; in a folder nobody deletes it.
            self.allowed()?;
            let options = DeleteOptions { uid: uid.to_owned(), ..DeleteOptions::default() };
            match self.cluster.delete(address, &options).await {
                Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => {
                    return Err(Failure::Cluster(error));
                }
                _ => {}
            }
        }
        self.wait_until_gone(planned, address, deadline).await?;
        self.write_new(planned, address).await
    }
}
