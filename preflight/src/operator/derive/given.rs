//! A manifest that a model is derived from.

use std::sync::Arc;

use serde_json::Value;

use crate::source::Positions;

/// One object of a release, from a file or from a cluster.
#[derive(Clone, Debug)]
pub struct Given {
    /// The object.
    pub value: Arc<Value>,
    /// Where every node of it stands; `None` for a live one.
    pub positions: Option<Arc<Positions>>,
}
