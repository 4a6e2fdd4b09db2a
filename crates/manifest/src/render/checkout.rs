//! The files of a git ref in a folder of their own, for programs that read files; removed at the end.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::shown;
use crate::git::{GitError, GitTree};

/// The files of a ref, without symbolic links and submodules.
#[derive(Debug)]
pub(crate) struct Checkout {
    directory: tempfile::TempDir,
    /// Real path of the folder, as programs name it.
    root: PathBuf,
    reference: String,
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
        Ok(Self { directory, root, reference: reference.to_owned() })
    }

    /// Returns the place of a path of the ref.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the path in the ref of a place, if it is in this folder.
    pub(super) fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.root).ok()
    }

    /// Returns the name of a file for messages: `git:main:base/web.yaml`.
    pub(super) fn shown(&self, path: &Path) -> String {
        match self.relative(path) {
            Some(path) if path.as_os_str().is_empty() => format!("git:{}", self.reference),
            Some(path) => format!("git:{}:{}", self.reference, shown(path)),
            None => shown(path),
        }
    }

    /// Replaces the folder by the ref in a message of a program.
    pub(super) fn rename_in(&self, message: &str) -> String {
        let mut message = message.to_owned();
        for folder in [self.root.as_path(), self.directory.path()] {
            let folder = folder.to_string_lossy();
            message = message.replace(&format!("{folder}/"), &format!("git:{}:", self.reference));
            message = message.replace(folder.as_ref(), &format!("git:{}", self.reference));
        }
        message
    }
}
