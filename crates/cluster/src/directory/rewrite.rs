//! Replaces documents in a text; every byte outside them stays.

use serde_json::Value;

use super::{edit, read};
use crate::ClusterError;

/// The text of a file with those documents replaced for which `convert` gives another value, and their number. `file`
/// tells the format by its ending.
///
/// # Errors
/// The text cannot be parsed, `convert` fails, or a value cannot be written so that it is read again as it is.
pub fn rewrite<E: From<ClusterError>>(
    text: &str,
    file: &str,
    mut convert: impl FnMut(&Value, u32) -> Result<Option<Value>, E>,
) -> Result<(String, usize), E> {
    let mut documents = Vec::new();
    for (part, value) in read::parse(text, file)? {
        documents.extend(convert(&value, part.line)?.map(|value| (part, value)));
    }
    let mut text = text.to_owned();
    // From the end, so that the places of those before stay.
    for (part, value) in documents.iter().rev() {
        text = edit::replace(&text, part, value, file)?;
    }
    Ok((text, documents.len()))
}
