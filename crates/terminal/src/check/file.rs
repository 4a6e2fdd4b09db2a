//! Reports written at the end of a run, `--report FORMAT=PATH`: checked before the run, then written completely or not
//! at all, readable by their owner only.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pushback_deploy::check::report::CheckReport;
use pushback_system::atomic_file::{probe, replace};
use pushback_system::path_safety::followed;

use super::formats::{self, Format};
use crate::output::Output;

/// A report to write: its format and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSpec {
    /// The format.
    pub format: &'static Format,
    /// The file; `-` is standard output.
    pub path: PathBuf,
}

/// Why a report cannot be requested or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not `FORMAT=PATH`.
    #[error("report `{0}` is not FORMAT=PATH, such as json=report.json")]
    NoPath(String),
    /// An unknown format.
    #[error("unknown report format `{0}`; known: {known}", known = formats::words().join(", "))]
    UnknownFormat(String),
    /// The file cannot be written.
    #[error("cannot write report {path}: {reason}", path = path.display(), reason = pushback_system::environment::reason(source))]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FromStr for ReportSpec {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (word, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or_else(|| ReportError::NoPath(text.to_owned()))?;
        let format = formats::find(word).ok_or_else(|| ReportError::UnknownFormat(word.to_owned()))?;
        Ok(Self { format, path: path.into() })
    }
}

/// A rendered report for standard output.
#[derive(Debug)]
pub struct Document {
    text: String,
    print: fn(&mut Output, &str),
}

impl Document {
    /// Prints it.
    pub fn print(&self, output: &mut Output) {
        (self.print)(output, &self.text);
    }
}

impl ReportSpec {
    /// Whether it goes to standard output.
    #[must_use]
    pub fn is_standard_output(&self) -> bool {
        is_standard_output(&self.path)
    }

    /// Checks, before any change to a cluster, that the report can be written; leaves nothing behind.
    ///
    /// # Errors
    /// The folder does not exist or cannot be written, or the path is a folder.
    pub fn prepare(&self) -> Result<(), ReportError> {
        self.tried(|| match self.target()? {
            // Closing a pipe would signal its reader the end of the data.
            Target::StandardOutput | Target::Stream => Ok(()),
            Target::File(path) => probe(&path),
        })
    }

    /// Writes the report: a file is replaced as a whole, a pipe or device is written to.
    ///
    /// # Errors
    /// It could not be written; previous contents are kept.
    pub fn write(&self, report: &CheckReport) -> Result<(), ReportError> {
        let Document { text, print } = self.document(report);
        write_with(&self.path, &text, print)
    }

    /// Renders the report for standard output.
    #[must_use]
    pub fn document(&self, report: &CheckReport) -> Document {
        Document { text: (self.format.render)(report), print: self.format.print }
    }

    fn target(&self) -> io::Result<Target> {
        target(&self.path)
    }

    fn tried(&self, action: impl FnOnce() -> io::Result<()>) -> Result<(), ReportError> {
        action().map_err(|source| ReportError::Write { path: self.path.clone(), source })
    }
}

/// Writes text to the user's path: to a file completely or not at all, to a pipe, or, for `-`, to standard output.
///
/// # Errors
/// It could not be written; previous contents are kept.
pub fn write_text(path: &Path, text: &str) -> Result<(), ReportError> {
    write_with(path, text, Output::data)
}

fn write_with(path: &Path, text: &str, print: impl Fn(&mut Output, &str)) -> Result<(), ReportError> {
    let write = || match target(path)? {
        Target::StandardOutput => {
            let mut output = Output::standard();
            print(&mut output, text);
            output.finish()
        }
        Target::Stream => OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes()),
        Target::File(path) => replace(&path, text.as_bytes()),
    };
    write().map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// Kind of file that a path leads to.
enum Target {
    /// A regular file or nothing yet; symbolic links within their folder are followed, so that the link itself is not
    /// replaced.
    File(PathBuf),
    /// A pipe or device, which cannot be replaced.
    Stream,
    /// A stream that this process already writes to: opening it again would overwrite a file behind it from its start.
    StandardOutput,
}

/// Whether a path means standard output, by any of its names.
#[must_use]
pub fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

fn target(path: &Path) -> io::Result<Target> {
    if is_standard_output(path) {
        return Ok(Target::StandardOutput);
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // `/dev/fd/3` and similar paths are links to files that the shell has opened.
        Ok(metadata) if ["/dev", "/proc"].iter().any(|system| path.starts_with(system)) => {
            if metadata.is_file() {
                fs::canonicalize(path).map(Target::File)
            } else {
                Ok(Target::Stream)
            }
        }
        Ok(metadata) if metadata.is_file() => followed(path).map(Target::File),
        Ok(_) => followed(path).map(|_| Target::Stream),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Target::File(path.to_owned())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CheckReport {
        CheckReport::new("shop", "dir:./live", pushback_preflight::Outcome::Refused)
    }

    fn spec(path: &Path) -> ReportSpec {
        ReportSpec { format: &formats::JSON, path: path.to_owned() }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("folder");
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_text_says_what_is_wrong_with_it() {
        let error = |text: &str| text.parse::<ReportSpec>().map_err(|error| error.to_string());
        assert_eq!(error("json=a=b.json"), Ok(spec(Path::new("a=b.json"))));
        assert_eq!(error("json"), Err("report `json` is not FORMAT=PATH, such as json=report.json".to_owned()));
        assert_eq!(error("json="), Err("report `json=` is not FORMAT=PATH, such as json=report.json".to_owned()));
        assert_eq!(
            error("yaml=a"),
            Err("unknown report format `yaml`; known: json, junit, sarif, markdown, github, html".to_owned())
        );
    }

    #[test]
    fn preparing_leaves_nothing_behind_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("report.json");
        spec(&path).prepare().expect("prepared");
        assert!(names(folder.path()).is_empty());
        fs::write(&path, "before").expect("written");
        spec(&path).prepare().expect("prepared");
        assert_eq!(fs::read_to_string(&path).expect("read"), "before");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_told_before_the_run() {
        let folder = tempfile::tempdir().expect("folder");
        let missing = spec(&folder.path().join("missing/report.json")).prepare().expect_err("no folder");
        assert!(missing.to_string().starts_with("cannot write report "), "{missing}");
        assert!(spec(folder.path()).prepare().is_err());
        assert!(spec(Path::new("/")).prepare().is_err());
        assert!(spec(Path::new("..")).prepare().is_err());
    }

    #[test]
    fn a_report_replaces_the_file_as_a_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("report.json");
        fs::write(&path, "x".repeat(100_000)).expect("written");
        spec(&path).write(&report()).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), crate::check::json::text(&report()));
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it_and_a_link_to_it_stays_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("folder");
        let (file, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
        fs::write(&file, "before").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("link");
        spec(&link).write(&report()).expect("written");
        assert!(fs::symlink_metadata(&link).expect("link").is_symlink());
        assert_eq!(fs::metadata(&file).expect("file").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&file).expect("read"), crate::check::json::text(&report()));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let null = spec(Path::new("/dev/null"));
        null.prepare().expect("prepared");
        null.write(&report()).expect("written");
        assert!(!fs::metadata("/dev/null").expect("device").is_file());
    }
}
