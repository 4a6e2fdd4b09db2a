//! How inputs are read: what is followed and fetched, and how much.
//! What the caller decides, resolved.

use super::limits::Limits;

/// How inputs are read.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// An input without a single object is no error.
    pub allow_empty: bool,
    /// Documents that are operator models are kept as such; else they are objects that lack everything.
    pub models: bool,
    /// `http://` URLs are fetched.
    pub allow_http: bool,
    /// Symbolic links in a directory may lead out of it.
    pub follow_links: bool,
    /// A git ref that does not have the path yet holds nothing; a warning says so.
    pub may_be_absent: bool,
    /// What standard input holds, where it is not the process's own.
    pub stdin: Option<Vec<u8>>,
    /// Limits of each file, and of what they hold together.
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
            stdin: None,
            limits: Limits::default(),
            total_bytes: 256 << 20,
        }
    }
}
