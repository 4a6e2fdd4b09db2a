//! Operators at one release and the differences between two: models that people write or that are derived from
//! manifests, the matching of components, and the severities of the differences.

pub mod compare;
pub mod definitions;
pub mod derive;
pub mod difference;
pub mod matching;
pub mod mixed;
pub mod model;
pub mod model_file;
pub mod overlay;
pub mod permissions;
pub mod print;
pub mod versioned;
pub mod webhook_rules;

pub use difference::{
    Change, ChangeType, ComponentChange, CrdVerdict, DefinitionChange, MatchType, ReleaseDiff, Severity,
};
pub use model::{Component, Definition, FactClass, Operator, Release, Resource, Webhook};
