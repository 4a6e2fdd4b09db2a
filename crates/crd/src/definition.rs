//! CustomResourceDefinitions as a whole: names, versions and what each version offers. [`compare`] finds what changes
//! between two of them and proves the effect on objects and clients; [`structural_changes`] lists the differences field
//! by field.

mod attribution;
mod carry_over;
mod change;
mod compare;
mod comparisons;
pub mod crd;
mod cross_version;
mod keywords;
mod lifecycle;
mod nodes;
mod offers;
mod pair;
pub mod path;
mod round_trip;
mod schemas;
mod stored;
mod structure;
mod upgrade;
mod version_losses;
mod words;

#[cfg(test)]
mod tests;

pub use attribution::structural_changes;
pub use carry_over::{
    CarryOver, StoragePolicy, carry_over, conversion_service, converting_bridge, dropped_versions, webhook_first,
};
pub use change::{Blocked, CROSS_VERSION_LOSS, DefinitionChange, Place, Proof, Safety, keywords};
pub use compare::{compare, refusals};
pub use crd::{Crd, Strategy, Version};
pub use pair::{LossKind, PairLoss, converted_losses, pair_losses};
pub use round_trip::{RoundTrip, not_kept, round_trip};
pub use stored::{Blocker, CONVERTING, StoredState};
pub use structure::{Direction, Kind, Node, NodeChange, StructuralChange, What};
pub use upgrade::{Schemas, Upgrade};
pub use version_losses::{VersionLosses, version_losses};
pub use words::{cut, listed, quoted, short};
