//! How inputs are read: what is followed and fetched, and how much.
//! Holds the caller's decisions.

use super::limits::Limits;
use super::render::RenderOptions;

/// A side of a comparison. Both sides are read by the same rules; neither is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedSide {
    /// Role of this side.
    pub role: SideRole,
    /// The option that names a rendered file, such as `--cluster file:`; the file's name follows directly.
    pub option: &'static str,
}

/// The sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideRole {
    /// The existing release.
    Base {
        /// True if the base may be missing.
        may_be_missing: bool,
    },
    /// The release that replaces it.
    New,
}

/// How inputs are read.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Accept an input without any object.
    pub allow_empty: bool,
    /// Keep documents that are operator models; otherwise they are objects that lack every required field.
    pub models: bool,
    /// Fetch `http://` URLs.
    pub allow_http: bool,
    /// Let symbolic links in a directory lead out of it.
    pub follow_links: bool,
    /// The side of a comparison that this is, unless it is applied.
    pub compared: Option<ComparedSide>,
    /// Options for folders that have to be rendered; `None` if programs render nothing.
    pub render: Option<RenderOptions>,
    /// Keep a digest of each file.
    pub digests: bool,
    /// Content of standard input, if not the process's own.
    pub stdin: Option<Vec<u8>>,
    /// Limits of each file, and of all files together.
    pub limits: Limits,
    /// Bytes of all files together.
    pub total_bytes: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            allow_empty: false,
            models: false,
            allow_http: false,
            follow_links: false,
            compared: None,
            render: None,
            digests: false,
            stdin: None,
            limits: Limits::default(),
            total_bytes: 256 << 20,
        }
    }
}
