//! One change between two definitions: its place, the old and new value, and the proof of its effect on objects and
//! clients.

use std::sync::Arc;

use serde_json::Value;

use super::path::field_path;
use crate::path::{PathSegment, display_path};
use crate::schema::contain::{Damage, Effect, SchemaStep};
use crate::schema::keywords::KEYWORDS;
use crate::words;

/// Keyword of a field that is lost between two versions, which concerns the schemas of both.
pub const CROSS_VERSION_LOSS: &str = "crossVersionLoss";

/// The changes that are not named after a keyword of schemas.
const EVENTS: [&str; 26] = [
    "scope",
    "group",
    "names",
    "storedVersionRemoval",
    "servedVersionRemoval",
    "unservedVersionRemoval",
    "servedVersionUnserved",
    "versionServed",
    "versionAdded",
    "versionDeprecated",
    "versionUndeprecated",
    "storageVersionChange",
    "conversion",
    CROSS_VERSION_LOSS,
    "crossVersionRejection",
    "statusSubresource",
    "scaleSubresource",
    "selectableFields",
    "additionalPrinterColumns",
    "preserveUnknownFields",
    "invalid",
    "existingFieldRemoval",
    "fieldAdded",
    "fieldDeclared",
    "defaultOfNewField",
    "unhandled",
];

/// Every value that [`DefinitionChange::keyword`] can have.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().filter(|keyword| keyword.is_compared).map(|keyword| keyword.name).chain(EVENTS)
}

/// One change. Its [`Display`](std::fmt::Display) is one sentence without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionChange {
    /// Name of the CustomResourceDefinition.
    pub definition: Arc<str>,
    /// The version concerned; `None` for the definition as a whole.
    pub version: Option<String>,
    /// Where in the definition the change is.
    pub place: Place,
    /// The keyword that changed, or the name of the event, such as `storageVersionChange`.
    pub keyword: &'static str,
    /// The old value, or a summary of the keyword; `None` if there was none.
    pub old: Option<Value>,
    /// The new value, likewise.
    pub new: Option<Value>,
    /// The effect on objects and clients.
    pub proof: Proof,
    /// An object that was valid before. A breaking change affects it; an unknown one may.
    pub witness: Option<Value>,
    /// Whether it need not be reported: it only allows more, concerns an unused version, or another change covers it.
    pub is_moot: bool,
}

/// Where a change is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the definition, at these keys from its root.
    Definition(Vec<&'static str>),
    /// In the version, at these keys; empty for the version itself.
    Version(Vec<&'static str>),
    /// At a node of the version's schema.
    Schema(Vec<SchemaStep>),
    /// Between another version and this one, at the first node that differs.
    Between {
        /// The version that the objects are in.
        from: String,
        /// The first node that differs.
        path: Vec<SchemaStep>,
        /// The keyword that differs there.
        keyword: &'static str,
        /// How many further differences have the same consequence.
        more: usize,
    },
    /// At this path of the document.
    Document(Vec<PathSegment>),
}

/// What is known about the effect of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// No object or client is affected.
    Safe(Safety),
    /// Objects or clients are affected.
    Breaking {
        /// What happens to objects.
        effect: Effect,
        /// What can no longer be done, if known.
        blocks: Option<Blocked>,
        /// What happens to the witness, if there is one.
        damage: Option<Damage>,
    },
    /// Neither safe nor breaking could be proved.
    Unknown {
        /// The keyword that prevented a proof.
        keyword: String,
        /// The reason, if there is more to say than the keyword.
        reason: Option<String>,
    },
}

/// Why a change is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Proved: no object that was valid before is rejected, pruned or altered.
    NoObject,
    /// It concerns no existing object and no request that works today.
    NotUsed,
    /// A deprecation announced it, and no stored object needs it.
    Announced,
    /// Safe as long as the conversion webhook works.
    WithWebhook,
    /// It only rejects writes in another version, which no client had to make before.
    OnlyNewWrites,
}

words! {
    /// What can no longer be done with an affected object.
    #[non_exhaustive]
    pub enum Blocked {
        /// It cannot be read, or reads differently than before.
        Read = "read",
        /// It cannot be edited.
        Edit = "edit",
        /// It cannot be created, so it cannot be restored from a backup either.
        Create = "create",
        /// It can neither be created nor edited in any field.
        EditOfObject = "create, any edit of the object",
        /// It can neither be created nor edited in any field of the parent of the affected field.
        EditOfParent = "create, any edit of the parent",
        /// It can neither be created nor edited anywhere in the list that contains the affected field.
        EditOfList = "create, any edit of the list",
        /// It can neither be created nor edited in the affected field.
        EditOfField = "create, edit of the field",
        /// Every write is accepted except server-side apply.
        Apply = "server-side apply",
    }
}

impl Proof {
    /// Unknown, because this keyword could not be judged.
    pub(super) fn unknown(keyword: &str) -> Self {
        Self::Unknown { keyword: keyword.to_owned(), reason: None }
    }

    /// Breaking, without a witness.
    pub(super) fn breaking(effect: Effect, blocks: Option<Blocked>) -> Self {
        Self::Breaking { effect, blocks, damage: None }
    }
}

impl DefinitionChange {
    /// The schema node that the change concerns, if any.
    #[must_use]
    pub fn node(&self) -> Option<&[SchemaStep]> {
        match &self.place {
            Place::Schema(path) => Some(path),
            _ => None,
        }
    }

    /// The place as reports write it: `spec.scope` in the definition, `served` in the version, `spec.items[*].name` in
    /// the objects; `None` for the root of any of them.
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

/// Collects changes as they are found.
#[derive(Debug)]
pub(super) struct Changes {
    definition: Arc<str>,
    pub(super) found: Vec<DefinitionChange>,
}

impl Changes {
    pub(super) fn of(definition: &str) -> Self {
        Self { definition: definition.into(), found: Vec::new() }
    }

    /// Adds a change to the definition as a whole.
    pub(super) fn whole(
        &mut self,
        keyword: &'static str,
        keys: &[&'static str],
        values: [Option<Value>; 2],
        proof: Proof,
    ) -> &mut DefinitionChange {
        self.push(None, Place::Definition(keys.to_vec()), keyword, values, proof)
    }

    /// Adds a change to a version.
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

    /// Marks a change as not worth reporting.
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
        debug_assert!(keywords().any(|known| known == keyword), "{keyword} is not among the keywords of changes");
        let version = version.map(ToOwned::to_owned);
        let definition = self.definition.clone();
        let (witness, is_moot) = (None, false);
        self.found.push(DefinitionChange { definition, version, place, keyword, old, new, proof, witness, is_moot });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }
}
