//! `pushback version`: which build this is, and which API servers it is tested on.

use clap::Args;
use serde_json::json;

use super::arguments::GlobalArgs;
use crate::run::error::CommandError;

/// The Kubernetes versions whose API servers the tests run on; a test compares them with what the tests build.
pub const TESTED_SERVERS: [&str; 1] = ["1.36.3"];

/// Told by the build script; empty where it is not known.
const COMMIT: &str = env!("PUSHBACK_BUILD_COMMIT");
const PROFILE: &str = env!("PUSHBACK_BUILD_PROFILE");
const TARGET: &str = env!("PUSHBACK_BUILD_TARGET");
const RUSTC: &str = env!("PUSHBACK_BUILD_RUSTC");

/// Print the version, the build, and the Kubernetes versions that it is tested on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback version
  pushback version -o json

Exit codes: 0 printed.")]
pub struct VersionArgs {}

/// Runs the command.
///
/// # Errors
/// Never.
pub fn run(global: &GlobalArgs) -> Result<String, CommandError> {
    let version = env!("CARGO_PKG_VERSION");
    if global.wants_json() {
        let version = json!({
            "schemaVersion": 1,
            "version": version,
            "commit": (!COMMIT.is_empty()).then_some(COMMIT),
            "build": {"profile": PROFILE, "target": TARGET, "rustc": RUSTC},
            "testedServers": TESTED_SERVERS,
        });
        return Ok(format!("{version:#}\n"));
    }
    let commit = if COMMIT.is_empty() { "not known" } else { COMMIT };
    let servers = TESTED_SERVERS.join(", ");
    Ok(format!(
        "pushback version {version}\n\
         commit     {commit}\n\
         build      {PROFILE}, {TARGET}, rustc {RUSTC}\n\
         tested on  Kubernetes {servers}\n"
    ))
}
