//! Webhooks that the API server calls: conversions by conversion plans, and admission of CRDs by the rules of preflight.
//! The served files and the certificate are read again when they change; unusable ones leave those in use.

pub mod admission;
mod certificate;
mod connections;
pub mod conversions;
mod handler;
mod intake;
mod metrics;
mod notice;
mod reviews;
mod server;
mod sources;
pub mod text;

pub use notice::{Journal, Notice};
pub use server::{Settings, StartError};
