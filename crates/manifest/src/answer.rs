//! Answers of other programs, read as JSON.

use serde_json::Value;

use super::yaml::{DUPLICATE_KEY, Limits, load};

/// Parses the answer of a program.
///
/// # Errors
/// The answer is not JSON, or has a key twice: two readers could take it for two answers.
pub fn parse(output: &[u8]) -> Result<Value, String> {
    let answer = serde_json::from_slice(output).map_err(|error| format!("its answer is not JSON: {error}"))?;
    let read = load("its answer", output, &Limits::default()).map_err(|error| error.to_string())?;
    match read.warnings.iter().find(|warning| warning.code == DUPLICATE_KEY) {
        Some(twice) => Err(format!("its answer has a key twice, {}: {}", twice.position, twice.message)),
        None => Ok(answer),
    }
}
