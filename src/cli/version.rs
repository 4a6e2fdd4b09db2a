//! `pushback version`.

/// Runs the command.
///
/// # Errors
/// None.
pub fn run() -> anyhow::Result<String> {
    Ok(format!("pushback version {}\n", env!("CARGO_PKG_VERSION")))
}
