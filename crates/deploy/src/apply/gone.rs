//! Waiting for objects that go along with those of the app: the garbage collector deletes them.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, Cluster, Kinds};
use pushback_events::stop::Stop;
use pushback_events::{Event, Events};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Operation;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time between two looks at objects that are being deleted.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Waits until these objects are gone, and tells each that is; returns those that are still there at the end of the
/// time.
pub async fn until_gone(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    events: &Events,
    stop: &watch::Receiver<Stop>,
    going: Vec<Arc<Value>>,
    deadline: Instant,
) -> Vec<ObjectRef> {
    let mut left = going;
    loop {
        let mut still = Vec::new();
        for object in left {
            let reference = ObjectRef::of(&object);
            let kind = kinds.find(&reference.group, &reference.version, &reference.kind);
            let found = match kind {
                Some(kind) => {
                    let address = Address::new(Arc::clone(kind), &reference.namespace, &reference.name);
                    cluster.get(&address).await
                }
                None => Ok(None),
            };
            if found.is_ok_and(|found| found.is_none_or(|found| found.uid() != object.uid())) {
                events.send(Event::Completed { object: reference, operation: Operation::Delete });
            } else {
                still.push(object);
            }
        }
        left = still;
        if left.is_empty() || Instant::now() >= deadline || *stop.borrow() != Stop::No {
            return left.iter().map(|object| ObjectRef::of(object)).collect();
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
