//! Conversions between the versions of a kind: derived from their schemas, with a plan that says only what schemas do not.
//!
//! Every version is converted to the hub and from it, one step after the other. What a version has no field for is kept in
//! a property bag, so that the way back restores it. A plan is compiled once; an object is walked once for each step, and only
//! where that step has anything to do.

mod bag;
mod compile;
mod converter;
mod derive;
mod execute;
mod gaps;
mod gather;
mod given;
mod golden;
pub mod json_schema;
pub mod lineage;
mod losses;
mod operation;
mod operation_list;
pub mod path;
pub mod plan;
mod prune;
mod read;
pub mod review;
pub mod sampling;
mod step;
mod storage_schema;
mod suggest;

#[cfg(test)]
mod tests;

pub use bag::is_bag_edited;
pub use compile::compile;
pub use converter::{ConversionError, Converted, Converter, Lost, NoPrograms, ProgramRequest, Programs, Why};
pub use given::{ConversionPlans, GivenPlan, PlanSource, with_versions_of};
pub use golden::{Golden, goldens};
pub use losses::PlannedLoss;
pub use operation_list::{Loss, Operation, OperationKind};
pub use plan::ConversionPlan;
pub use read::{is_plan, read, read_entry};
pub use suggest::{Suggestion, likeness, resembles, suggestions};
