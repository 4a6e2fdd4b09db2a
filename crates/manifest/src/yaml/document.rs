//! The content of a file: documents with the position of every node.
//! The result of parsing, for either format.

use std::sync::Arc;

use pushback_objects::{Positions, source};
use serde_json::Value;

use crate::input::InputWarning;

/// One document. An empty one has the value null.
#[derive(Clone, Debug)]
pub struct Document {
    /// Value of the document.
    pub value: Value,
    /// Position of every node; a map entry has the position of its key.
    pub positions: Positions,
}

impl From<Document> for source::Document {
    fn from(Document { value, positions }: Document) -> Self {
        Self { value, positions: Arc::new(positions) }
    }
}

/// The content of a file.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The documents, including empty ones.
    pub documents: Vec<Document>,
    /// Warnings, in the order of the file.
    pub warnings: Vec<InputWarning>,
}
