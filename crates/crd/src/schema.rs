//! Structural schemas of custom resources: the model, what the API server does to an object under a schema, and whether
//! every object that one schema accepts is accepted unchanged by another.

pub mod cel;
pub mod contain;
pub mod invalid;
pub(crate) mod keywords;
pub mod model;
pub mod pattern;
pub mod pipeline;
mod releases;
mod shared;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use model::{Additional, CelRule, Limit, ListType, MapType, Schema, Type, Window};
