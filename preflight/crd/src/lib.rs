//! Structural schemas of CustomResourceDefinitions: what the API server does to an object under one, and whether all
//! that one schema lets in gets through another, by proof or with a witness.
//!
//! Nothing here knows of rules, findings or operators; everything is pure and synchronous: no I/O, no clock.

pub mod definition;
pub mod names;
pub mod order;
pub mod path;
pub mod schema;
pub mod stack;

pub use path::{PathSegment, display_path};
