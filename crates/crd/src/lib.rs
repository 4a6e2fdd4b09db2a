#![doc = include_str!("../README.md")]

pub mod definition;
pub mod duration;
pub mod names;
pub mod order;
pub mod path;
pub mod schema;
pub mod stack;
mod words;

pub use path::{PathSegment, display_path, value_at};
