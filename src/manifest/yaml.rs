//! YAML and JSON with the meaning that kubectl gives them, and the place of every node.
//! Text becomes a tree of what is written (`tree`), then values (`construct`) by the rules of `scalar`.

mod compose;
mod construct;
mod document;
mod fault;
mod json;
mod scalar;
mod syntax;
mod text;
mod tree;

use std::sync::Arc;

pub use self::document::{Document, Loaded};
use self::fault::Fault;
use super::input::InputError;
pub use super::limits::{Limits, Spent};

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

#[cfg(test)]
mod tests;
