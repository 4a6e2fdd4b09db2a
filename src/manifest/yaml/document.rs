//! What a file holds: documents with the place of every node in them.
//! The result of reading, whichever way the file is written.

use pushback_preflight::Positions;
use serde_json::Value;

use crate::manifest::input::InputWarning;

/// One document. An empty one has the value null.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its value.
    pub value: Value,
    /// Where every node of it stands; a map entry stands where its key is.
    pub positions: Positions,
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Its documents, empty ones too.
    pub documents: Vec<Document>,
    /// What is legal and probably not meant, in the order of the file.
    pub warnings: Vec<InputWarning>,
}
