//! Bytes to objects that remember file, line and column.

pub mod collect;
pub mod excerpt;
pub mod files;
pub mod git;
mod source;
pub mod yaml;

use std::fmt;
use std::sync::Arc;

use pushback_preflight::source::Document;
use pushback_preflight::{ObjectRef, Position, Positions};
use serde_json::Value;

pub use self::collect::{LoadOptions, load, load_config_files};

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
    /// Operator models, where [`LoadOptions::models`] asks for them, in input order.
    pub models: Vec<Document>,
    /// Warnings, in input order.
    pub warnings: Vec<InputWarning>,
    /// The local files, of which messages show lines.
    pub sources: excerpt::Sources,
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
    fn place(&self) -> String {
        if self.position.file.is_empty() { String::new() } else { format!("{}: ", self.position) }
    }
}

/// An input as it may be shown, however it is written: a URL without user, password, query and fragment.
#[must_use]
pub fn shown_input(input: &str) -> String {
    if input.contains("://") { source::fetch::without_secrets(input) } else { input.to_owned() }
}

/// A limit as messages show it.
fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}
