//! Where the files come from: a folder, or a git ref. Only a folder can be written.

use std::path::Path;

use super::folder::{Folder, SourceFile};
use super::git::GitTree;
use crate::cluster::{ClusterError, ErrorKind};

/// Files to read, and perhaps to write.
#[derive(Debug)]
pub(super) enum Source {
    Folder(Folder),
    Git(GitTree),
}

impl Source {
    pub(super) fn read_all(&self) -> Result<Vec<SourceFile>, ClusterError> {
        match self {
            Self::Folder(folder) => folder.read_all(),
            Self::Git(tree) => tree.read_all(),
        }
    }

    /// Path of a file as people see it.
    pub(super) fn shown(&self, path: &Path) -> String {
        match self {
            Self::Folder(folder) => folder.shown(path),
            Self::Git(tree) => tree.shown(path),
        }
    }

    /// The folder, for a write.
    ///
    /// # Errors
    /// `Unsupported` on a git ref.
    pub(super) fn writable(&self) -> Result<&Folder, ClusterError> {
        match self {
            Self::Folder(folder) => Ok(folder),
            Self::Git(tree) => {
                let message = format!("git {} cannot be written: a git ref is read only", tree.label());
                Err(ClusterError::new(ErrorKind::Unsupported, message))
            }
        }
    }
}
