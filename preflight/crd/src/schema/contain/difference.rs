//! What a comparison of two schemas finds: each difference with what is proved of it, and what the comparison took.

use serde_json::Value;

use super::confirm::Damage;
use super::step::SchemaStep;

/// What is known of a difference.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// No old object suffers from it.
    Safe,
    /// This object was accepted before, and suffers now.
    Breaking {
        /// A whole custom resource.
        witness: Value,
        /// What becomes of it.
        damage: Damage,
    },
    /// Neither could be proved.
    Unknown {
        /// The keyword that stood in the way.
        keyword: String,
        /// Why, where there is more to say than the keyword.
        reason: Option<String>,
    },
}

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The node, from the root of the schema.
    pub path: Vec<SchemaStep>,
    /// The keyword that differs, or the name of what happened to the node.
    pub keyword: &'static str,
    /// Before.
    pub old: Option<Value>,
    /// After.
    pub new: Option<Value>,
    /// What it does to old objects.
    pub proof: Proof,
}

/// What a comparison took of its budgets. It is the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Steps of searches.
    pub steps: u64,
    /// Steps of automata for patterns.
    pub automata: u64,
    /// Values that the pipeline was asked about.
    pub values: u64,
}

impl Proof {
    /// What could not be proved, for the sake of this keyword.
    pub(super) fn unknown(keyword: &str) -> Self {
        Self::Unknown { keyword: keyword.to_owned(), reason: None }
    }
}
