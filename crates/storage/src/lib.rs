//! Live half of storage versions: reads where objects are stored, rewrites them at the storage version, proves that
//! none is left in another, and takes old versions off the definition.

pub mod carry_over;
pub mod conversion;
pub mod converting;
pub mod definitions;
pub mod losses;
pub mod migrate;
pub mod operators;
pub mod outcome;
pub mod pass;
pub mod preview;
pub mod record;
pub mod replacement;
pub mod rewrite;
pub mod rights;
pub mod served_versions;
mod settling;
pub mod status;
pub mod versions;

use pushback_events::{DiagnosticCode, Event, Events};

/// Tells something worth knowing about stored objects.
pub fn note(events: &Events, message: String) {
    events.send(Event::diagnostic(DiagnosticCode::Storage, message));
}
