//! Where the files come from: a folder, a single file, or a git ref. Only a folder is writable.

use std::path::Path;

use pushback_manifest::files::SourceFile;
use pushback_manifest::git::{GitError, GitTree};

use super::folder::{Folder, SingleFile};
use crate::{ClusterError, ErrorKind};

/// Files to read, and possibly to write.
#[derive(Debug)]
pub(super) enum Source {
    Folder(Folder),
    File(SingleFile),
    Git(GitTree),
    /// Objects that were read already, with the name of their place.
    Objects(String),
}

impl Source {
    pub(super) fn read_all(&self) -> Result<Vec<SourceFile>, ClusterError> {
        match self {
            Self::Folder(folder) => folder.read_all(),
            Self::File(file) => file.read_all(),
            Self::Git(tree) => tree.read_all().map_err(of_git),
            Self::Objects(_) => Ok(Vec::new()),
        }
    }

    /// Path of a file, for display.
    pub(super) fn shown(&self, path: &Path) -> String {
        match self {
            Self::Folder(folder) => folder.shown(path),
            Self::File(file) => file.shown(),
            Self::Git(tree) => tree.shown(path),
            Self::Objects(place) => place.clone(),
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
            Self::Objects(place) => format!("{place} is not written: it is the base of a comparison"),
        };
        Err(ClusterError::new(ErrorKind::Unsupported, message))
    }
}

/// Every failure of git is an error in the request.
pub(super) fn of_git(error: GitError) -> ClusterError {
    ClusterError::new(ErrorKind::Configuration, error.0)
}
