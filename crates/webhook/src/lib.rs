//! The conversion webhook: a server that converts objects for the API server by conversion plans. Plans and certificate
//! are read again when their files change; what cannot be used leaves the ones in use where they are.

mod certificate;
mod connections;
mod handler;
mod intake;
mod metrics;
mod notice;
mod server;
mod sources;
pub mod text;

pub use notice::{Journal, Notice};
pub use server::{Settings, StartError, serve};
pub use sources::Compile;
