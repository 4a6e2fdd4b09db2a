#![doc = include_str!("../README.md")]

pub mod api_lifecycle;
pub mod cascade;
pub mod cause;
pub mod custom;
pub mod default_set;
pub mod derived_crds;
pub mod experiment;
pub mod facts;
mod glob;
pub mod judge;
pub mod loosened;
pub mod operator_workloads;
pub mod parallel;
pub mod parts;
pub mod policy;
pub mod reference;
pub mod registry;
mod repeated;
pub mod replay;
pub mod rule;
mod rules;
pub mod selection;
pub mod selector;
pub mod service_backend;
pub mod session;
pub mod settings;
mod strictness;
pub mod waiver;

pub use cause::{Cause, causes};
pub use facts::{Answer, Change, ChangeSet, Facts, Need, Needs, Operation, TakenField, TakenFrom, Verification};
pub use judge::{Outcome, RuleOutcome, RuleResult, RunReport};
pub use policy::Policy;
pub use rules::{CascadeSize, WorkloadPod, cascade_sizes, is_shared, read_by_pods};
pub use selection::Selection;
pub use session::Session;
pub use waiver::Waiver;
