//! Check reports in every format.

pub mod file;
pub mod formats;
pub mod github;
mod grouped;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
mod markdown_plan;
pub mod sarif;
pub mod source_path;
pub mod witness_files;
