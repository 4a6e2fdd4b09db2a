//! Shows a run in progress: on a terminal, in a log, or for a program.

pub mod end_text;
pub mod group_text;
pub mod json;
pub mod judged;
pub mod live_area;
pub mod options;
pub mod plain;
pub mod plan_fields;
pub mod plan_text;
pub mod progress;
pub mod prompt;
pub mod renderer;
pub mod reporter;
pub mod tty;
