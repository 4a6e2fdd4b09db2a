//! The content of the input, and its errors: the types that the other modules of the loader share.

use std::fmt;
use std::sync::Arc;

pub use pushback_objects::InputError;
use pushback_objects::source::Document;
use pushback_objects::{ObjectRef, Position, Positions};
use serde_json::Value;

use super::excerpt::Sources;
use super::render::ResolvedSource;

/// One object of the input.
#[derive(Clone)]
pub struct Manifest {
    /// Identity of the object; the namespace is empty if the manifest has none.
    pub object: ObjectRef,
    /// The object, normalized: without the fields that only the server sets.
    pub value: Value,
    /// Position of every node in the file.
    pub positions: Arc<Positions>,
}

/// How deep a manifest is kept as JSON: its reader takes 127 levels, and a manifest may have more.
const KEPT_AS_JSON: usize = 100;

/// Manifests as JSON: they take a tenth of the space until they are needed once more.
pub struct KeptManifests(Vec<Kept>);

enum Kept {
    Json(Box<[u8]>, Arc<Positions>),
    Whole(Manifest),
}

impl KeptManifests {
    /// Keeps manifests.
    #[must_use]
    pub fn of(manifests: &[Manifest]) -> Self {
        let kept = |manifest: &Manifest| match is_within(&manifest.value, KEPT_AS_JSON) {
            true => Kept::Json(manifest.value.to_string().into_bytes().into(), Arc::clone(&manifest.positions)),
            false => Kept::Whole(manifest.clone()),
        };
        Self(manifests.iter().map(kept).collect())
    }

    /// The same manifests.
    #[must_use]
    pub fn manifests(&self) -> Vec<Manifest> {
        let manifest = |kept: &Kept| match kept {
            Kept::Json(json, positions) => {
                let value: Value = serde_json::from_slice(json).expect("what was written as JSON can be read");
                Manifest { object: ObjectRef::of(&value), value, positions: Arc::clone(positions) }
            }
            Kept::Whole(manifest) => manifest.clone(),
        };
        self.0.iter().map(manifest).collect()
    }
}

/// Whether a value is nested no deeper than this.
fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(fields) => levels > 0 && fields.values().all(|value| is_within(value, levels - 1)),
        Value::Array(items) => levels > 0 && items.iter().all(|value| is_within(value, levels - 1)),
        _ => true,
    }
}

/// Omits the content, which may be a Secret's.
impl fmt::Debug for KeptManifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptManifests").field(&self.0.len()).finish()
    }
}

/// Omits the content, which may be a Secret's.
impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.positions.start();
        f.debug_struct("Manifest").field("object", &self.object).field("position", &place).finish_non_exhaustive()
    }
}

/// A legal construct in the input that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputWarning {
    /// Stable identifier, such as `yaml-octal`.
    pub code: &'static str,
    /// The text, one sentence.
    pub message: String,
    /// Position in the input.
    pub position: Position,
}

/// What a file held when it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// Its name in positions.
    pub name: String,
    /// SHA-256 of its bytes. A short secret in it could be guessed from this.
    pub sha256: [u8; 32],
}

/// Omits the digest.
impl fmt::Debug for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDigest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The content of all inputs.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Objects to apply, in input order, every identity once.
    pub manifests: Vec<Manifest>,
    /// Further CRDs of a name in [`Self::manifests`], from other files; only if the input is compared.
    pub variants: Vec<Manifest>,
    /// Inputs that do not exist, if [`LoadOptions::compared`](super::LoadOptions::compared) allows that.
    pub missing: Vec<String>,
    /// Config documents, and ConfigMaps that carry one (these are in `manifests` too).
    pub configs: Vec<Manifest>,
    /// Conversion plans, in input order: they are read, and never applied.
    pub plans: Vec<Document>,
    /// Operator models, if [`LoadOptions::models`](super::LoadOptions::models) is set, in input order.
    pub models: Vec<Document>,
    /// Warnings, in input order.
    pub warnings: Vec<InputWarning>,
    /// Sources that were rendered or resolved, in input order.
    pub rendered: Vec<ResolvedSource>,
    /// The local files, for excerpts in messages.
    pub sources: Sources,
    /// A digest of each file, if [`LoadOptions::digests`](super::LoadOptions::digests) is set, in input order.
    pub digests: Vec<FileDigest>,
}

/// An error that is about an input as a whole.
pub(super) fn error_in(name: &str, message: impl Into<String>, hints: &[&str]) -> InputError {
    let position = Position { file: name.to_owned(), line: 0, column: 0 };
    InputError { message: message.into(), position, hints: hints.iter().map(|&hint| hint.to_owned()).collect() }
}
