//! `pushback version`.

use serde_json::json;

use super::arguments::GlobalArgs;
use crate::config::parse::COMPATIBLE_KAPP_VERSION;

/// Runs the command.
///
/// # Errors
/// Never.
pub fn run(global: &GlobalArgs) -> anyhow::Result<String> {
    if global.wants_json() {
        let version = json!({"schemaVersion": 1, "version": env!("CARGO_PKG_VERSION")});
        return Ok(serde_json::to_string_pretty(&version)? + "\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    Ok(match global.kapp {
        Some(_) => format!("kapp version {COMPATIBLE_KAPP_VERSION} (pushback {version})\n"),
        None => format!("pushback version {version}\n"),
    })
}
