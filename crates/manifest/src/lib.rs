//! Parses manifests into objects that remember file, line and column.

pub mod answer;
pub mod collect;
pub mod config;
pub mod excerpt;
pub mod files;
pub mod git;
mod input;
mod layout;
mod limits;
pub mod moved;
mod options;
mod render;
pub mod revision;
mod similar;
mod source;
pub mod variants;
pub mod yaml;

pub use self::collect::{load, load_config_files};
pub use self::input::{FileDigest, Input, InputError, InputWarning, KeptManifests, Manifest};
pub use self::options::{ComparedSide, LoadOptions, SideRole};
pub use self::render::{HelmOptions, RenderOptions, RenderedFolder, ResolvedSource};
pub use self::source::{absent_file, find_files, shown_input};
