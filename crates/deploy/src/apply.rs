//! Writes the plan in the order of its change graph, waits until objects are ready or gone, and prunes.

mod children;
pub mod engine;
pub mod gone;
pub mod pod_logs;
pub mod readiness;
pub mod tree;
pub mod wait_words;
mod watch;
mod write;
