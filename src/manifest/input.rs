//! What the input holds, and what is wrong with it.
//! The types that every part of this room hands on.

use std::fmt;
use std::sync::Arc;

use pushback_preflight::source::Document;
use pushback_preflight::{ObjectRef, Position, Positions};
use serde_json::Value;

use super::excerpt::Sources;

/// One object of the input.
#[derive(Clone)]
pub struct Manifest {
    /// What it is called; the namespace is empty where the manifest gives none.
    pub object: ObjectRef,
    /// The object as it was written.
    pub value: Value,
    /// Where every node of it stands.
    pub positions: Arc<Positions>,
}

/// Without the content, which may be a Secret's.
impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.positions.start();
        f.debug_struct("Manifest").field("object", &self.object).field("position", &place).finish_non_exhaustive()
    }
}

/// Something in the input that is legal and probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputWarning {
    /// Stable word, such as `yaml-octal`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// Where.
    pub position: Position,
}

/// What the input holds.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Objects to apply, in input order, every identity once.
    pub manifests: Vec<Manifest>,
    /// Config documents, and ConfigMaps that carry one (these are in `manifests` too).
    pub configs: Vec<Manifest>,
    /// Operator models, where [`LoadOptions::models`](super::LoadOptions::models) asks for them, in input order.
    pub models: Vec<Document>,
    /// Warnings, in input order.
    pub warnings: Vec<InputWarning>,
    /// The local files, of which messages show lines.
    pub sources: Sources,
}

/// What is wrong with an input: kind of error, place, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct InputError {
    /// A lower-case sentence: what is wrong, and what was expected.
    pub message: String,
    /// Where; line 0 where only the file is known.
    pub position: Position,
    /// What to do about it, each a sentence.
    pub hints: Vec<String>,
}

impl InputError {
    /// The place and a colon; nothing where an error is about no file.
    pub(super) fn place(&self) -> String {
        if self.position.file.is_empty() { String::new() } else { format!("{}: ", self.position) }
    }
}

/// An error that knows no more than the input's name.
pub(super) fn error_in(name: &str, message: impl Into<String>, hints: &[&str]) -> InputError {
    let position = Position { file: name.to_owned(), line: 0, column: 0 };
    InputError { message: message.into(), position, hints: hints.iter().map(|&hint| hint.to_owned()).collect() }
}
