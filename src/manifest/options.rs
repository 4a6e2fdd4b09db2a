//! How inputs are read: what is followed and fetched, and how much.
//! Holds the caller's decisions.

use super::limits::Limits;

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
    /// Treat a git ref that lacks the path as empty, with a warning.
    pub may_be_absent: bool,
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
            may_be_absent: false,
            digests: false,
            stdin: None,
            limits: Limits::default(),
            total_bytes: 256 << 20,
        }
    }
}
