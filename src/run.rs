//! The steps that commands share: set up, look at the app, plan, judge, write. Each command stops at its own step.

mod allowed;
pub mod answer;
pub mod app_group;
pub(crate) mod app_name;
pub mod apply;
pub mod base;
pub mod compare;
pub mod connect;
mod conversion_files;
mod conversion_plans;
pub mod delete;
pub mod error;
pub mod history;
pub mod input;
pub mod inspect;
pub mod judging;
mod last_good;
pub mod list;
pub mod logs;
pub mod names;
pub mod observer;
pub mod options;
pub mod outcome;
pub mod planning;
pub mod policy;
pub mod record;
pub mod rename;
pub mod replay;
pub mod running;
pub mod saved;
#[cfg(feature = "webhook")]
pub mod serve_admission;
#[cfg(feature = "webhook")]
pub mod serve_conversion;
pub mod setup;
pub mod signals;
pub mod storage;
pub mod tools;
pub mod unknown_app;
#[cfg(feature = "upgrade")]
pub mod upgrade;
pub mod verify;
pub mod write;
pub mod write_loop;

pub use running::Run;
