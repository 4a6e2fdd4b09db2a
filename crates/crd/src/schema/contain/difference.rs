//! The result of comparing two schemas: each difference with its proof, and the work that it took.

use serde_json::Value;

use super::confirm::Damage;
use super::step::SchemaStep;

/// What is known about the effect of a difference.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaProof {
    /// It affects no old object.
    Safe,
    /// An object that was accepted before and is damaged now.
    Breaking {
        /// A complete custom resource.
        witness: Value,
        /// What happens to it.
        damage: Damage,
    },
    /// Neither safe nor breaking could be proved.
    Unknown {
        /// The keyword that prevented a proof.
        keyword: String,
        /// The reason, if there is more to say than the keyword.
        reason: Option<String>,
    },
}

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The node, from the root of the schema.
    pub path: Vec<SchemaStep>,
    /// The keyword that differs, or the name of the event at the node.
    pub keyword: &'static str,
    /// The old value; `None` if it was absent.
    pub old: Option<Value>,
    /// The new value; `None` if it is absent.
    pub new: Option<Value>,
    /// Its effect on old objects.
    pub proof: SchemaProof,
}

/// How much of its budgets a comparison used. The same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Steps taken by searches.
    pub steps: u64,
    /// Steps taken by pattern automata.
    pub automata: u64,
    /// Values that the pipeline examined.
    pub values: u64,
}

impl SchemaProof {
    /// Unknown, because this keyword could not be judged.
    pub(super) fn unknown(keyword: &str) -> Self {
        Self::Unknown { keyword: keyword.to_owned(), reason: None }
    }
}
