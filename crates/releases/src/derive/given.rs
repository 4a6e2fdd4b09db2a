//! A manifest as input for deriving a model.

use std::sync::Arc;

use pushback_objects::source::Positions;
use serde_json::Value;

/// An object of a release, from a file or a cluster.
#[derive(Clone, Debug)]
pub struct Given {
    /// Content of the object.
    pub value: Arc<Value>,
    /// Position of each node; `None` for a live object.
    pub positions: Option<Arc<Positions>>,
}
