//! One difference between two definitions as read: of the definition or a version as a whole, or of a schema node. Each
//! states what changed, whatever the effect on objects, and carries the proofs about it.

use std::sync::Arc;

use serde_json::Value;

use super::change::DefinitionChange;
use crate::schema::Schema;
use crate::schema::contain::{SchemaStep, new_branches};

/// One structural change.
#[derive(Clone, Debug)]
pub struct StructuralChange<'u> {
    /// What changed.
    pub what: What<'u>,
    /// The proofs that concern it, if there is anything to report; empty if it is safe.
    pub grounds: Vec<Arc<DefinitionChange>>,
}

/// What a structural change is about.
#[derive(Clone, Debug)]
pub enum What<'u> {
    /// The definition or a version as a whole, or that no API server accepts the definition.
    Whole(Arc<DefinitionChange>),
    /// A schema node of a version.
    Node(Box<NodeChange<'u>>),
}

/// A change of a schema node.
#[derive(Clone, Debug)]
pub struct NodeChange<'u> {
    /// Name of the version.
    pub version: &'u str,
    /// The node, from the root of the schema; for an added or removed field, the field itself.
    pub path: Vec<SchemaStep>,
    /// What kind of change it is.
    pub kind: Kind,
    /// The keyword that changed, or the name of the change.
    pub keyword: &'u str,
    /// The old value, or a summary of it; `None` if it was absent.
    pub old: Option<Value>,
    /// The new value, likewise.
    pub new: Option<Value>,
    /// The node before and after; `None` if it was or is absent.
    pub nodes: [Option<Node<'u>>; 2],
    pub(super) claims: &'static [Claim],
}

/// What changed at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A field was removed or added; `old` and `new` are its type.
    Field,
    /// The type changed; other differences follow from that.
    Type,
    /// The default changed.
    Default,
    /// Whether the field is required; `old` and `new` are its name. A new required field is reported only as this.
    Required,
    /// The whole enum: it was added or removed.
    Enum,
    /// One value of an enum was added or removed.
    EnumValue,
    /// One CEL rule, including its `optionalOldSelf`.
    Rule,
    /// The branches of `allOf`, `anyOf`, `oneOf` or `not`.
    Branches {
        /// Whether it allows more or less.
        direction: Direction,
        /// The number of branches before and after.
        count: [usize; 2],
        /// How many branches were added.
        added: usize,
        /// How many branches were removed.
        removed: usize,
    },
    /// A keyword that structural schemas do not have, or whose value is of the wrong type.
    Unreadable,
    /// Any other keyword.
    Keyword(Direction),
}

/// How a changed keyword affects what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More is allowed.
    Wider,
    /// Less is allowed, or something different.
    Tighter,
    /// Data is pruned.
    Drops,
}

impl Direction {
    pub(super) fn wider_if(is_wider: bool) -> Self {
        if is_wider { Self::Wider } else { Self::Tighter }
    }
}

impl NodeChange<'_> {
    /// What new branches of a combinator demand, `allOf[1]: required ["a"]`; empty for other changes.
    #[must_use]
    pub fn new_branches(&self) -> Vec<String> {
        match (self.kind, self.nodes) {
            (Kind::Branches { .. }, [Some(old), Some(new)]) => new_branches(old.schema, new.schema, self.keyword),
            _ => Vec::new(),
        }
    }
}

/// A schema node, parsed and as written.
#[derive(Clone, Copy, Debug)]
pub struct Node<'u> {
    /// The parsed schema.
    pub schema: &'u Schema,
    /// The schema as written.
    pub written: &'u Value,
}

impl<'u> Node<'u> {
    pub(super) fn keyword(&self, keyword: &str) -> Option<&'u Value> {
        self.written.get(keyword)
    }
}

/// Which proofs concern a change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Those about its keyword at the node.
    Keyword,
    /// Those about keywords that cannot be judged at the node.
    Unhandled,
    /// That the parent node requires this field.
    Required,
    /// All about the node and its descendants.
    Within,
    /// All about values under free keys of the node.
    FreeValues,
}

impl NodeChange<'_> {
    /// Whether it alters the values that the server fills in, which rules further up may see.
    pub(super) fn fills_in(&self) -> bool {
        fn any(schema: &Schema) -> bool {
            schema.default.is_some() || schema.children().any(any)
        }
        match (self.kind, self.nodes) {
            (Kind::Default, _) => true,
            (Kind::Type, [Some(old), Some(new)]) => old.schema.default != new.schema.default,
            (Kind::Field | Kind::Required, [None, Some(new)]) => self.new.is_some() && any(new.schema),
            _ => false,
        }
    }
}
