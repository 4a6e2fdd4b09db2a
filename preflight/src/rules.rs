//! The rules, one file each (a folder beside it where a rule is large).
//! Which of them exist is said in [`crate::registry`].

pub mod crd_upgrade_safety;
pub mod destructive_change;
pub mod field_conflicts;
mod levels;
pub mod permission_validation;
pub mod upgrade_diff;

pub use crd_upgrade_safety::CrdUpgradeSafety;
pub use destructive_change::DestructiveChange;
pub use field_conflicts::FieldConflicts;
pub use permission_validation::PermissionValidation;
pub use upgrade_diff::UpgradeDiff;
