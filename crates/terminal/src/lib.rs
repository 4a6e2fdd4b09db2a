//! Everything that the user sees: renderers of events, and reports at the end. The only crate that prints. Data (plan,
//! findings, JSON) goes to standard output, progress and errors to standard error.

pub mod cause_text;
pub mod check;
pub mod conversion_text;
pub mod decided_text;
pub mod defect;
pub mod error_text;
pub mod escape;
pub mod excerpt_text;
pub mod finding_card;
pub mod finding_text;
pub mod history_text;
pub mod html;
pub mod inspect_text;
pub mod list_text;
pub mod live;
pub mod log_text;
pub mod markdown;
pub mod markdown_text;
pub mod object_rows;
pub mod output;
pub mod policy_text;
pub mod preview_text;
pub mod raw_objects;
pub mod saved_plan_text;
pub mod shorten;
pub mod storage_text;
pub mod table;
pub mod theme;
pub mod witness_excerpt;
pub mod words;

#[cfg(test)]
mod fixture;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use live::options::{DiffStyle, Format, RenderOptions};
pub use live::renderer::system_clock;
pub use live::reporter::{Reporter, renderer};
pub use theme::{ColorChoice, Theme};
