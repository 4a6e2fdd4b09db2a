//! What the commands that compare and test releases walk.

pub mod experiments;
pub mod live;
