//! Access to the machine: clock, environment, other programs, files that are replaced whole, and paths that are safe to
//! follow. No other crate of the workspace.

pub mod atomic_file;
pub mod bounded_file;
pub mod environment;
pub mod path_safety;
pub mod program;
pub mod proxy;
pub mod redact;
