//! The digest beside kapp's copy of the manifest, where no dry-run could foretell it: the server gives a Service its
//! addresses, and a Job its selector, when it creates them.

use pushback_preflight::ObjectExt;
use serde_json::Value;

use super::Writer;
use crate::cluster::{Address, Written};
use crate::plan::{Planned, original};

impl Writer {
    /// After a write: corrects the digest if the server made something else of the object than it had announced. That it
    /// cannot is no failure: kapp then compares with the live object.
    pub(super) async fn note_original(
        &self,
        planned: &Planned,
        address: &Address,
        body: &Value,
        written: &mut Written,
    ) {
        let Some(digest) = planned.original.as_ref().and_then(|rules| rules.outdated(&written.object)) else { return };
        let mut corrected = body.clone();
        original::set_digest(&mut corrected, &digest);
        // Controllers may have written status by now, so that only the object itself is the condition.
        if let Some(metadata) = corrected.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), written.object.uid().into());
        }
        if self.allowed().is_err() {
            return;
        }
        match self.cluster.apply(address, &corrected, super::options(planned)).await {
            Ok(again) => written.object = again.object,
            Err(error) => {
                let message = format!("kapp's copy of the manifest is not up to date: {}", error.message);
                written.warnings.push(message);
            }
        }
    }
}
