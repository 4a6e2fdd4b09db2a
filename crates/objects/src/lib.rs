//! Objects of the API and what is said of them: identity, positions in files, the strict reader, findings, remedies, and
//! pieces of text. Pure: no I/O, no clock.

pub mod bookkeeping;
pub mod duration;
pub mod finding;
pub mod hex;
pub mod invocation;
pub mod json_schema;
pub mod object;
pub mod pod_template;
pub mod reader;
pub mod remedy;
pub mod source;
pub mod suggest;
pub mod text;

pub use finding::{Finding, Severity, Verdict};
pub use invocation::{Invocation, quoted};
pub use object::{ObjectExt, ObjectKey, ObjectRef};
pub use remedy::{Audience, Remedy, RemedyKind};
pub use source::{InputError, PathSegment, Position, Positions};
