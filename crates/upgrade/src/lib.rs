//! Live half of comparing releases: reads releases, and runs the experiments that test them. Reports on both.

pub mod at_hand;
pub mod change;
pub mod difference;
pub mod inject;
pub mod journal;
pub mod lock;
pub mod loss;
pub mod mark;
pub mod outcome;
pub mod owners;
pub mod place;
pub mod probe;
pub mod reconciler;
pub mod recover;
pub mod report;
pub mod revert;
pub mod run;
pub mod side_effects;
pub mod sources;
pub mod steady;
pub mod suite_folder;
