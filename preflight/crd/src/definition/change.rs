//! One change between two definitions: where it stands, what was there and what is, and the proof of what becomes of
//! objects and clients.

use std::sync::Arc;

use serde_json::Value;

use super::path::field_path;
use crate::path::{PathSegment, display_path};
use crate::schema::contain::{Damage, Effect, SchemaStep};

/// A change. Its [`Display`](std::fmt::Display) is one sentence, without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionChange {
    /// Name of the definition.
    pub definition: Arc<str>,
    /// The version that it is about; `None` for the definition as a whole.
    pub version: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// The keyword that changes, or the name of what happens.
    pub keyword: &'static str,
    /// Before: a value, or what a keyword says.
    pub old: Option<Value>,
    /// After.
    pub new: Option<Value>,
    /// What becomes of objects and clients.
    pub proof: Proof,
    /// An object that was fine before. It suffers where the change is breaking, and may where that is not known.
    pub witness: Option<Value>,
    /// Whether nobody has to be told: it only offers more, it is in a version that nobody uses, or another change tells it.
    pub is_moot: bool,
}

/// Where a change stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the definition, under these keys from its root.
    Definition(Vec<&'static str>),
    /// In the version, under these keys; none for the version itself.
    Version(Vec<&'static str>),
    /// At a node of the schema of the version.
    Schema(Vec<SchemaStep>),
    /// Between another version and this one, with the first node that differs.
    Between {
        /// The version in which the objects are.
        from: String,
        /// The node.
        path: Vec<SchemaStep>,
        /// What differs there.
        keyword: &'static str,
        /// How many more differences there are of the same consequence.
        more: usize,
    },
    /// Anywhere in the document.
    Document(Vec<PathSegment>),
}

/// What is known of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// No object and no client suffers from it.
    Safe(Safety),
    /// Objects or clients suffer from it.
    Breaking {
        /// What becomes of objects.
        effect: Effect,
        /// What cannot be done any more, where that is known.
        blocks: Option<Blocked>,
        /// What becomes of the witness, where there is one.
        damage: Option<Damage>,
    },
    /// Neither could be proved.
    Unknown {
        /// The keyword that stood in the way.
        keyword: String,
        /// Why, where there is more to say than the keyword.
        reason: Option<String>,
    },
}

/// Why a change is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Proved: no object that was valid before is refused, pruned or altered.
    NoObject,
    /// It concerns neither objects nor requests of clients that work today.
    NotUsed,
    /// It was announced by a deprecation, and nothing is stored that needs it.
    Announced,
    /// It holds as long as the conversion webhook answers.
    WithWebhook,
    /// Only a write in another version is refused, where nobody had to write before.
    OnlyNewWrites,
}

/// What can no longer be done with an object that suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// It cannot be read, or not as it was.
    Read,
    /// It cannot be edited.
    Edit,
    /// It cannot be created, and so not restored.
    Create,
    /// It cannot be created, nor edited in any field.
    EditOfObject,
    /// It cannot be created, nor edited in any field of what is around the field.
    EditOfParent,
    /// It cannot be created, nor edited in the field itself.
    EditOfField,
    /// Every write is taken but server-side apply.
    Apply,
}

impl Blocked {
    /// As it is written in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Create => "create",
            Self::EditOfObject => "create, any edit of the object",
            Self::EditOfParent => "create, any edit of the parent",
            Self::EditOfField => "create, edit of the field",
            Self::Apply => "server-side apply",
        }
    }
}

impl Proof {
    /// What could not be proved, for the sake of this.
    pub(super) fn unknown(keyword: &str) -> Self {
        Self::Unknown { keyword: keyword.to_owned(), reason: None }
    }

    /// Breaking, without an object to show it.
    pub(super) fn breaking(effect: Effect, blocks: Option<Blocked>) -> Self {
        Self::Breaking { effect, blocks, damage: None }
    }
}

impl DefinitionChange {
    /// The node of the schema that it is about.
    #[must_use]
    pub fn node(&self) -> Option<&[SchemaStep]> {
        match &self.place {
            Place::Schema(path) => Some(path),
            _ => None,
        }
    }

    /// Its place as reports write it: `spec.scope` in the definition, `served` in the version, `spec.items[*].name` in the
    /// objects; `None` for the root of one of these.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        let path = match &self.place {
            Place::Definition(keys) | Place::Version(keys) => keys.join("."),
            Place::Schema(path) => field_path(path),
            Place::Between { .. } => "schema".to_owned(),
            Place::Document(path) => display_path(path),
        };
        Some(path).filter(|path| !path.is_empty())
    }
}

/// Changes while they are being found.
#[derive(Debug)]
pub(super) struct Changes {
    definition: Arc<str>,
    pub(super) found: Vec<DefinitionChange>,
}

impl Changes {
    pub(super) fn of(definition: &str) -> Self {
        Self { definition: definition.into(), found: Vec::new() }
    }

    /// Adds a change of the definition as a whole.
    pub(super) fn whole(
        &mut self,
        keyword: &'static str,
        keys: &[&'static str],
        values: [Option<Value>; 2],
        proof: Proof,
    ) -> &mut DefinitionChange {
        self.push(None, Place::Definition(keys.to_vec()), keyword, values, proof)
    }

    /// Adds a change of a version.
    pub(super) fn in_version(
        &mut self,
        version: &str,
        keyword: &'static str,
        keys: &[&'static str],
        values: [Option<Value>; 2],
        proof: Proof,
    ) -> &mut DefinitionChange {
        self.push(Some(version), Place::Version(keys.to_vec()), keyword, values, proof)
    }

    /// Nobody has to be told of a change.
    pub(super) fn moot(change: &mut DefinitionChange) {
        (change.proof, change.witness, change.is_moot) = (Proof::Safe(Safety::NotUsed), None, true);
    }

    pub(super) fn push(
        &mut self,
        version: Option<&str>,
        place: Place,
        keyword: &'static str,
        [old, new]: [Option<Value>; 2],
        proof: Proof,
    ) -> &mut DefinitionChange {
        let version = version.map(ToOwned::to_owned);
        let definition = self.definition.clone();
        let (witness, is_moot) = (None, false);
        self.found.push(DefinitionChange { definition, version, place, keyword, old, new, proof, witness, is_moot });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }
}
