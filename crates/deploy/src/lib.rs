//! Deploying an app: the plan, the facts and the verdict of a check, and the writes in the order of the graph. Prints
//! nothing; a run is reported as events.

pub mod apply;
pub mod check;
pub mod edits;
pub mod plan;
