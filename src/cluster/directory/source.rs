//! Where the files come from: a folder, a single file, or a git ref. Only a folder is writable.

use std::path::Path;

use super::folder::{Folder, SingleFile};
use crate::cluster::{ClusterError, ErrorKind};
use crate::manifest::files::SourceFile;
use crate::manifest::git::{GitError, GitTree};

/// Files to read, and possibly to write.
#[derive(Debug)]
pub(super) enum Source {
    Folder(Folder),
    File(SingleFile),
    Git(GitTree),
}

impl Source {
    pub(super) fn read_all(&self) -> Result<Vec<SourceFile>, ClusterError> {
        match self {
            Self::Folder(folder) => folder.read_all(),
            Self::File(file) => file.read_all(),
            Self::Git(tree) => tree.read_all().map_err(of_git),
        }
    }

    /// Whether this is a git ref that lacks the path.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Git(tree) if tree.is_absent())
    }

    /// Path of a file, for display.
    pub(super) fn shown(&self, path: &Path) -> String {
        match self {
            Self::Folder(folder) => folder.shown(path),
            Self::File(file) => file.shown(),
            Self::Git(tree) => tree.shown(path),
        }
    }

    /// The folder, for a write.
    ///
    /// # Errors
    /// `Unsupported` on a git ref or a single file.
    pub(super) fn writable(&self) -> Result<&Folder, ClusterError> {
        let message = match self {
            Self::Folder(folder) => return Ok(folder),
            Self::File(file) => format!("file {} is not written: it is read only", file.shown()),
            Self::Git(tree) => format!("git {} cannot be written: a git ref is read only", tree.label()),
        };
        Err(ClusterError::new(ErrorKind::Unsupported, message))
    }
}

/// Every failure of git is an error in the request.
pub(super) fn of_git(error: GitError) -> ClusterError {
    ClusterError::new(ErrorKind::Configuration, error.0)
}
