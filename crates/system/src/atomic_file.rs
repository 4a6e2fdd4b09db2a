//! Writes a file completely or not at all: under another name in the same folder, then renamed. Owner-only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::path_safety::check_folder;

/// How many temporary names are tried before giving up.
const TEMPORARY_NAMES: u32 = 16;

/// Writes a file completely or not at all, readable only by its owner.
///
/// # Errors
/// The file system's error.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = create_beside(path)?;
    let result = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Checks that a file could be written at `path`, and leaves nothing behind.
///
/// # Errors
/// The file system's error.
pub fn probe(path: &Path) -> io::Result<()> {
    let (temporary, file) = create_beside(path)?;
    drop(file);
    fs::remove_file(temporary)
}

/// Creates a file in the folder of `path`: a rename within one file system is atomic.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    check_folder(path.parent().unwrap_or(Path::new("")))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut result = Err(io::ErrorKind::AlreadyExists.into());
    for number in 0..TEMPORARY_NAMES {
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{number}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        result = options.open(&temporary).map(|file| (temporary, file));
        if !matches!(&result, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    result
}
