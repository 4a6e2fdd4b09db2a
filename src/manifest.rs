//! Parses manifests into objects that remember file, line and column.

pub mod collect;
pub mod excerpt;
pub mod files;
pub mod git;
mod input;
mod limits;
mod options;
pub mod revision;
mod source;
pub mod yaml;

pub use self::collect::{load, load_config_files};
pub use self::input::{FileDigest, Input, InputError, InputWarning, KeptManifests, Manifest};
pub use self::options::LoadOptions;
pub use self::source::{absent_file, shown_input};
