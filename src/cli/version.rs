//! `pushback version`.

use serde_json::json;

use super::arguments::GlobalArgs;

/// Runs the command.
///
/// # Errors
/// Never.
pub fn run(global: &GlobalArgs) -> anyhow::Result<String> {
    if global.wants_json() {
        let version = json!({"schemaVersion": 1, "version": env!("CARGO_PKG_VERSION")});
        return Ok(serde_json::to_string_pretty(&version)? + "\n");
    }
    Ok(format!("pushback version {}\n", env!("CARGO_PKG_VERSION")))
}
