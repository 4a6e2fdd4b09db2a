//! Which files are manifests, and how their paths are displayed.

use std::path::{Path, PathBuf};

use super::limits::Limits;

/// The content of one file.
#[derive(Debug)]
pub struct SourceFile {
    /// Path relative to the folder that was read.
    pub path: PathBuf,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// A path for messages, without control characters.
#[must_use]
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Refuses a file that the parser would refuse, before it is read.
///
/// # Errors
/// The message, if the file is too large.
pub fn check_size(shown: &str, size: u64) -> Result<(), String> {
    let limit = Limits::default().bytes;
    if usize::try_from(size).is_ok_and(|size| size <= limit) {
        return Ok(());
    }
    Err(format!("{shown}: larger than {} MiB, the limit of one file", limit >> 20))
}

/// Whether the extension is that of a manifest.
#[must_use]
pub fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}
