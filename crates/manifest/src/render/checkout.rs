//! The files of a git ref or an artifact in a folder of their own, for programs that read files; removed at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::shown;
use crate::git::{GitError, GitTree};

/// Files that a program reads, without symbolic links and submodules.
#[derive(Debug)]
pub(crate) struct Checkout {
    directory: tempfile::TempDir,
    /// Real path of the folder, as programs name it.
    root: PathBuf,
    /// Name in messages: `git:main`, `oci://ghcr.io/org/app:v1`.
    name: String,
    /// Separator between the name and a path.
    separator: char,
    /// Default name of a release whose chart is the whole checkout.
    release: String,
    /// True if files of values are among its files, not on this machine.
    has_values: bool,
}

impl Checkout {
    /// Writes the files of a ref of the repository of the working directory.
    ///
    /// # Errors
    /// The ref cannot be read, or its files cannot be written.
    pub(crate) fn write(reference: &str) -> Result<Self, GitError> {
        let unwritten = |error: &dyn std::fmt::Display| GitError(format!("{reference} cannot be checked out: {error}"));
        let tree = GitTree::open(Path::new("."), reference, "")?;
        let directory = tempfile::tempdir().map_err(|error| unwritten(&error))?;
        let root = fs::canonicalize(directory.path()).map_err(|error| unwritten(&error))?;
        tree.write_to(&root)?;
        let top = tree.top_level();
        let release = top.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { directory, root, name: format!("git:{reference}"), separator: ':', release, has_values: true })
    }

    /// Writes the files of an artifact, whose paths are inside.
    ///
    /// # Errors
    /// The files cannot be written.
    pub(crate) fn write_artifact(
        name: &str,
        release: &str,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, std::io::Error> {
        let directory = tempfile::tempdir()?;
        let root = fs::canonicalize(directory.path())?;
        for (path, content) in files {
            let place = root.join(path);
            fs::create_dir_all(place.parent().unwrap_or(&root))?;
            fs::write(place, content)?;
        }
        let (name, release) = (name.to_owned(), release.to_owned());
        Ok(Self { directory, root, name, separator: '/', release, has_values: false })
    }

    /// Returns the place of a path among its files.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the default name of a release, if the chart is the whole checkout.
    pub(super) fn release(&self, chart: &Path) -> Option<&str> {
        let is_root = fs::canonicalize(chart).is_ok_and(|chart| chart == self.root);
        Some(self.release.as_str()).filter(|name| is_root && !name.is_empty())
    }

    /// Returns the place of a file of values that the user names.
    pub(super) fn values_file(&self, path: &Path) -> PathBuf {
        if self.has_values { self.path(path) } else { path.to_owned() }
    }

    /// Returns the word for the whole of its files.
    pub(super) fn kind(&self) -> &'static str {
        if self.has_values { "repository" } else { "artifact" }
    }

    /// Returns the path below the folder of a place, if it is in this folder.
    pub(super) fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.root).ok()
    }

    /// Returns the name of a file for messages: `git:main:base/web.yaml`.
    pub(super) fn shown(&self, path: &Path) -> String {
        match self.relative(path) {
            Some(path) if path.as_os_str().is_empty() => self.name.clone(),
            Some(path) => format!("{}{}{}", self.name, self.separator, shown(path)),
            None => shown(path),
        }
    }

    /// Replaces the folder by the name in a message of a program.
    pub(super) fn rename_in(&self, message: &str) -> String {
        let mut message = message.to_owned();
        for folder in [self.root.as_path(), self.directory.path()] {
            let folder = folder.to_string_lossy();
            message = message.replace(&format!("{folder}/"), &format!("{}{}", self.name, self.separator));
            message = message.replace(folder.as_ref(), &self.name);
        }
        message
    }
}
