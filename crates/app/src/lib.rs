//! The app: its record and label, the objects that it owns, the run that holds it, and its history.
//! The record is kapp's; our part of it has data keys of its own.

pub mod claims;
pub mod error;
pub mod history;
pub mod identity;
pub mod inventory;
pub mod lease;
pub mod listing;
pub mod lock;
pub mod lock_wait;
mod memory;
pub mod moving;
pub mod record;
pub mod rename;
pub mod session;
pub mod twins;
