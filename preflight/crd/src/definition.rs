//! CustomResourceDefinitions as a whole: their names, their versions, what each version offers, and what changes between
//! two of them, with the proof of what becomes of objects and clients.

mod change;
mod compare;
pub mod crd;
mod cross_version;
mod lifecycle;
mod offers;
pub mod path;
mod schemas;
mod upgrade;
mod words;

#[cfg(test)]
mod tests;

pub use change::{Blocked, DefinitionChange, Place, Proof, Safety};
pub use compare::{compare, refusals};
pub use crd::{Crd, Strategy, Version};
pub use upgrade::{Schemas, Upgrade};
