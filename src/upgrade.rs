//! Live half of comparing releases: reads what they are, and runs what tests them.

pub mod sources;
