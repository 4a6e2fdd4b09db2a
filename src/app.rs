//! Which app this is: its record and label, what it owns, who works on it now, and what was done to it.
//! The record is kapp's; our part of it lives in data keys of its own.

pub mod claims;
pub mod history;
pub mod identity;
pub mod inventory;
pub mod lease;
pub mod listing;
pub mod lock;
pub mod record;
pub mod session;
pub mod twins;
