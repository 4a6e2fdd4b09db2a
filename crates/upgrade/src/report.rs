//! Reports on two releases, and on experiments with their upgrade.

pub mod definitions_text;
mod difference;
mod difference_html;
pub mod difference_markdown;
pub mod difference_text;
pub mod experiments_text;
pub mod formats;
mod same_changes;
pub mod suite_text;
pub mod versioned_text;
