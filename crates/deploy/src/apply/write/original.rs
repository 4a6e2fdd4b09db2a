//! The digest beside kapp's copy of the manifest, where no dry-run could foretell it: the server gives a Service its
//! addresses, and a Job its selector, when it creates them.

use pushback_cluster::Address;
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::{Done, Failure, Writer};
use crate::plan::{Planned, original};

impl Writer {
    /// After a write: corrects the digest if the server made something else of the object than it had announced. That it
    /// cannot is no failure: kapp then compares with the live object.
    pub(super) async fn note_original(
        &self,
        planned: &Planned,
        address: &Address,
        body: &Value,
        mut done: Done,
    ) -> Result<Done, Failure> {
        let (Some(rules), Some(written)) = (&planned.original, done.object.clone()) else { return Ok(done) };
        let Some(digest) = rules.outdated(&written).filter(|_| self.allowed().is_ok()) else { return Ok(done) };
        let mut corrected = body.clone();
        original::set_digest(&mut corrected, &digest);
        // Controllers may have written status by now, so that only the object itself is the condition.
        if let Some(metadata) = corrected.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), written.uid().into());
        }
        match self.cluster.apply(address, &corrected, super::options(planned)).await {
            Ok(again) => {
                self.as_expected(planned, Some(&written), Some(&written), &again).await?;
                done.object = Some(again.object);
            }
            Err(error) => {
                done.warnings.push(format!("kapp's copy of the manifest is not up to date: {}", error.message));
            }
        }
        Ok(done)
    }
}
