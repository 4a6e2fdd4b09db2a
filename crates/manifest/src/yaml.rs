//! YAML and JSON with the meaning that kubectl gives them, and the position of every node.
//! Text becomes a syntax tree (`tree`), then values (`construct`) by the rules of `scalar`.

mod compose;
mod construct;
mod document;
mod fault;
pub mod go;
mod json;
mod scalar;
mod syntax;
mod text;
mod tree;

use std::sync::Arc;

pub use self::construct::DUPLICATE_KEY;
pub use self::document::{Document, Loaded};
use self::fault::Fault;
use super::input::InputError;
pub use super::limits::{Limits, Usage};

/// Reads all documents of a file. `file` is the file name in positions.
///
/// # Errors
/// The first problem in the file: its position, what is wrong, and what to do.
pub fn load(file: &str, bytes: &[u8], limits: &Limits) -> Result<Loaded, InputError> {
    load_next(file, bytes, limits, &mut Usage::default())
}

/// As [`load`], for one of several files that share the limits of a run.
///
/// # Errors
/// As [`load`].
pub fn load_next(file: &str, bytes: &[u8], limits: &Limits, usage: &mut Usage) -> Result<Loaded, InputError> {
    read(&Arc::from(file), bytes, limits, usage).map_err(|fault| fault.in_file(file))
}

fn read(file: &Arc<str>, bytes: &[u8], limits: &Limits, usage: &mut Usage) -> Result<Loaded, Fault> {
    let text = text::decode(bytes, limits)?;
    let as_yaml = |usage: &mut Usage| {
        text::check_characters(&text)?;
        compose::load(file, &text, limits, usage)
    };
    let Some(behind_brace) = text.trim_start().strip_prefix('{') else { return as_yaml(usage) };
    let before = *usage;
    // A JSON stream needs its own parser: `{}{}` is not YAML. Text that is not JSON may still be a YAML flow map.
    let json_fault = match json::load(file, &text, limits, usage) {
        Ok(loaded) => return Ok(loaded),
        Err(fault) => fault,
    };
    let meant_as_json = behind_brace.trim_start().starts_with(['"', '}']);
    *usage = before;
    as_yaml(usage).map_err(|fault| if meant_as_json { json_fault } else { fault })
}

#[cfg(test)]
mod tests;
