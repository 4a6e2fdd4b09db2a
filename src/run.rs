//! What every command walks: set up, look at the app, plan, judge, write. Each stops at its own room.

pub mod connect;
pub mod error;
pub mod input;
pub mod outcome;
pub mod pipeline;
pub mod policy;
pub mod signals;
pub mod unknown_app;
pub mod upgrade;
pub mod write;
