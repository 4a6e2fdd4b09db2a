//! Reads a file whole, up to a limit: a plan or a report may come from anybody, and a path may name a device, a pipe that
//! nobody writes to, or a file as large as the disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::environment::reason;

/// Maximum size of a saved plan, of facts and of a report.
pub const DOCUMENT: u64 = 256 << 20;

/// Reads the text of a file; a pipe that the shell has opened is read like one.
///
/// # Errors
/// The reason, as the end of a sentence: the file cannot be read, is not a regular file, is larger than the limit, or
/// is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    String::from_utf8(read(path, limit)?).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Reads the bytes of a file; a pipe that the shell has opened is read like one.
///
/// # Errors
/// The reason, as the end of a sentence: the file cannot be read, is not a regular file, or is larger than the limit.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| reason(&error);
    if !fs::metadata(path).map_err(failed)?.is_file() && !is_inherited_pipe(path) {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is larger than {} MiB", limit >> 20));
    }
    Ok(bytes)
}

/// Returns whether the path is a pipe that the shell has opened: `<(fetch-kubeconfig)`.
pub fn is_inherited_pipe(path: &Path) -> bool {
    let is_descriptor =
        path.parent().is_some_and(|folder| [Path::new("/dev/fd"), Path::new("/proc/self/fd")].contains(&folder))
            || path == Path::new("/dev/stdin");
    is_descriptor && fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan");
        fs::write(&file, "abc").unwrap();
        assert_eq!(read_text(&file, 3).as_deref(), Ok("abc"));
        assert_eq!(read_text(&file, 2).unwrap_err(), "it is larger than 0 MiB");
        fs::write(&file, b"\xff").unwrap();
        assert_eq!(read_text(&file, 3).unwrap_err(), "it is not UTF-8 text");
        assert_eq!(read_text(folder.path(), 3).unwrap_err(), "it is not a regular file");
        // As large as a disk, without filling one.
        File::create(&file).unwrap().set_len(5 << 30).unwrap();
        assert_eq!(read_text(&file, 1 << 20).unwrap_err(), "it is larger than 1 MiB");
    }

    #[cfg(unix)]
    #[test]
    fn pipe_without_a_writer_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!(read_text(&pipe, 3).unwrap_err(), "it is not a regular file");
    }
}
