//! Operators at one release and what changed between two: models that people write or that manifests yield, the pairing
//! of components, and the differences with their severities.

pub mod compare;
pub mod definitions;
pub mod derive;
pub mod difference;
pub mod duration;
pub mod matching;
pub mod mixed;
pub mod model;
pub mod overlay;
pub mod print;
pub mod versioned;
pub mod written;

pub use difference::{
    Change, ChangeType, ComponentChange, CrdVerdict, DefinitionChange, MatchType, ReleaseDiff, Severity,
};
pub use model::{Component, Definition, FactClass, Operator, Release, Resource, Webhook};
