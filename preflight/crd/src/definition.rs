//! CustomResourceDefinitions as a whole: their names, their versions, and what each version offers.

pub mod crd;

pub use crd::{Crd, Strategy, Version};
