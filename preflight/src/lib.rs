#![doc = include_str!("../README.md")]

pub mod bookkeeping;
pub mod cause;
pub mod conversion;
pub mod duration;
pub mod experiment;
pub mod facts;
pub mod finding;
mod glob;
pub mod hex;
pub mod invocation;
pub mod judge;
pub mod loosened;
pub mod object;
pub mod operator;
pub mod operator_workloads;
pub mod parallel;
pub mod policy;
pub mod reader;
pub mod reference;
pub mod registry;
pub mod remedy;
mod repeated;
pub mod rule;
mod rules;
pub mod selection;
pub mod selector;
pub mod session;
pub mod settings;
pub mod source;
mod strictness;
pub mod suggest;
pub mod waiver;

pub use pushback_crd::words;

pub use cause::{Cause, causes};
pub use facts::{Answer, Change, ChangeSet, Facts, Need, Needs, Operation, TakenField, TakenFrom, Verification};
pub use finding::{Finding, Severity, Verdict};
pub use invocation::Invocation;
pub use judge::{Outcome, RuleOutcome, RuleResult, RunReport};
pub use object::{ObjectExt, ObjectKey, ObjectRef};
pub use policy::Policy;
pub use remedy::{Audience, Remedy, RemedyKind};
pub use selection::Selection;
pub use session::Session;
pub use source::{InputError, PathSegment, Position, Positions};
pub use waiver::Waiver;
