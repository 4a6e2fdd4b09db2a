//! Whether every object that an old schema accepts into etcd passes a new one unharmed: three-valued, difference by
//! difference, with a witness if the answer is no. What is not proved either way is unknown, never safe.

mod affected;
mod bounded;
mod branches;
mod budget;
mod claims;
mod compare;
mod confirm;
mod constraints;
mod defaults;
mod difference;
mod embedded;
mod formula;
mod granular;
mod implied;
mod judge;
mod largest;
mod list;
mod listed;
mod logic;
mod merged;
mod minimise;
mod misread;
mod number;
mod object;
mod outcome;
mod probe;
mod range;
mod retyped;
mod rules;
mod solve;
mod step;
mod telling;
mod text;
mod types;
mod unusual;
mod values;
mod walk;
mod ways;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use affected::{AffectedObject, BareObject, FieldLoss, affected_object, bare_object, field_loss};
pub(crate) use branches::{branches_of, new_branches};
pub use budget::Budget;
#[cfg(feature = "testing")]
pub use compare::count_differences;
pub use compare::{compare, compare_and_count, compare_within, harmed_value, object_with, unscalable_object};
pub use confirm::{DISAGREEMENT, Damage, Effect, in_version};
pub use difference::{Difference, SchemaProof, Spent};
pub use step::SchemaStep;
