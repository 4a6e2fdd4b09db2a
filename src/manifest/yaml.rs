//! YAML and JSON with the meaning that kubectl gives them, and the place of every node.
//! Text becomes a tree of what is written (`tree`), then values (`construct`) by the rules of `scalar`.

mod compose;
mod construct;
mod json;
mod scalar;
mod syntax;
mod text;
mod tree;

use std::sync::Arc;

use pushback_preflight::{Position, Positions};
use serde_json::Value;

use self::tree::Place;
use super::{InputError, InputWarning};

/// How much may be read. Each error about a limit says the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub bytes: usize,
    /// Levels of nesting, aliases followed. kubectl stops at 10,000; recursion elsewhere must be able to follow.
    pub depth: usize,
    /// Nodes of all files, as written.
    pub nodes: usize,
    /// Documents of a file.
    pub documents: usize,
    /// Bytes that aliases and merge keys may add in all files.
    pub alias_bytes: usize,
}

/// What has been used of the limits that hold for all files of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Nodes read so far.
    pub nodes: usize,
    /// Bytes that aliases have added so far.
    pub alias_bytes: usize,
}

impl Spent {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            alias_bytes: self.alias_bytes.saturating_add(other.alias_bytes),
        }
    }

    /// Whether so much may be read.
    #[must_use]
    pub fn is_within(self, limits: &Limits) -> bool {
        self.nodes <= limits.nodes && self.alias_bytes <= limits.alias_bytes
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 20, depth: 1_000, nodes: 5_000_000, documents: 100_000, alias_bytes: 64 << 20 }
    }
}

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

/// Reads all documents of a file. `file` is the name that positions carry.
///
/// # Errors
/// The first thing in the file that cannot be read: its place, what is wrong, and what to do.
pub fn load(file: &str, bytes: &[u8], limits: &Limits) -> Result<Loaded, InputError> {
    load_next(file, bytes, limits, &mut Spent::default())
}

/// The same for one file of several, which share the limits of a run.
///
/// # Errors
/// As [`load`].
pub fn load_next(file: &str, bytes: &[u8], limits: &Limits, spent: &mut Spent) -> Result<Loaded, InputError> {
    read(&Arc::from(file), bytes, limits, spent).map_err(|fault| fault.in_file(file))
}

fn read(file: &Arc<str>, bytes: &[u8], limits: &Limits, spent: &mut Spent) -> Result<Loaded, Fault> {
    let text = text::decode(bytes, limits)?;
    let as_yaml = |spent: &mut Spent| {
        text::check_characters(&text)?;
        compose::load(file, &text, limits, spent)
    };
    let Some(behind_brace) = text.trim_start().strip_prefix('{') else { return as_yaml(spent) };
    let before = *spent;
    // A JSON stream needs a reader of its own: `{}{}` is no YAML. What is no JSON may still be a YAML flow map.
    let json_fault = match json::load(file, &text, limits, spent) {
        Ok(loaded) => return Ok(loaded),
        Err(fault) => fault,
    };
    let meant_as_json = behind_brace.trim_start().starts_with(['"', '}']);
    *spent = before;
    as_yaml(spent).map_err(|fault| if meant_as_json { json_fault } else { fault })
}

/// An error before it knows its file.
#[derive(Clone, Debug)]
struct Fault {
    place: Place,
    message: String,
    hints: Vec<String>,
}

impl Fault {
    fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), hints: Vec::new() }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn in_file(self, file: &str) -> InputError {
        InputError { message: self.message, position: self.place.in_file(file), hints: self.hints }
    }
}

impl Place {
    fn in_file(self, file: &str) -> Position {
        Position { file: file.to_owned(), line: self.line, column: self.column }
    }
}

#[cfg(test)]
mod tests;
