//! What a difference between two definitions is, as they are read: of the definition or a version as a whole, or of a node of a
//! schema. Each says what changed, whatever becomes of objects, and carries what is proved of it.

use std::sync::Arc;

use serde_json::Value;

use super::change::DefinitionChange;
use crate::schema::Schema;
use crate::schema::contain::SchemaStep;

/// Something that is not as it was.
#[derive(Clone, Debug)]
pub struct StructuralChange<'u> {
    /// What it is.
    pub what: What<'u>,
    /// What is known of it, where anything has to be said: nothing where it is safe.
    pub grounds: Vec<Arc<DefinitionChange>>,
}

/// Of what it is.
#[derive(Clone, Debug)]
pub enum What<'u> {
    /// Of the definition, or of a version, as a whole; or that no API server takes the definition.
    Whole(Arc<DefinitionChange>),
    /// Of a node of the schema of a version.
    Node(Box<NodeChange<'u>>),
}

/// Something that is not as it was at a node.
#[derive(Clone, Debug)]
pub struct NodeChange<'u> {
    /// The version.
    pub version: &'u str,
    /// The node, from the root of the schema; the field itself where it is about that.
    pub path: Vec<SchemaStep>,
    /// What changed.
    pub kind: Kind,
    /// The keyword, where it is about one.
    pub keyword: &'u str,
    /// Its value before, or what stands for it; `None` where it was not there.
    pub old: Option<Value>,
    /// The same after.
    pub new: Option<Value>,
    /// The node before and after.
    pub nodes: [Option<Node<'u>>; 2],
    pub(super) claims: &'static [Claim],
}

/// What changed of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The field is gone or has come; `old` and `new` are its type.
    Field,
    /// Its type; whatever else differs follows from that.
    Type,
    /// Its default.
    Default,
    /// Whether it is required; `old` and `new` are its name. One that is new and required is told as that alone.
    Required,
    /// All values that are allowed, where any other was before, or is now.
    Enum,
    /// One value of an enum.
    EnumValue,
    /// One CEL rule, with whether it is evaluated without an old value.
    Rule,
    /// The branches of `allOf`, `anyOf`, `oneOf` or `not`.
    Branches {
        /// What it does to what is allowed.
        direction: Direction,
        /// How many there were and are.
        count: [usize; 2],
        /// How many are new.
        added: usize,
        /// How many are gone.
        removed: usize,
    },
    /// A keyword that no structural schema has, or whose value is of the wrong type.
    Unreadable,
    /// Any other keyword.
    Keyword(Direction),
}

/// What a change of a keyword does to what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More is allowed.
    Wider,
    /// Less is allowed, or something else.
    Tighter,
    /// Data is dropped.
    Drops,
}

impl Direction {
    pub(super) fn wider_if(is_wider: bool) -> Self {
        if is_wider { Self::Wider } else { Self::Tighter }
    }
}

/// A node of a schema as it was read and as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Node<'u> {
    /// As it was read.
    pub schema: &'u Schema,
    /// As it is written.
    pub written: &'u Value,
}

impl<'u> Node<'u> {
    pub(super) fn keyword(&self, keyword: &str) -> Option<&'u Value> {
        self.written.get(keyword)
    }
}

/// Which proofs are about a change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Those about its keyword at the node.
    Keyword,
    /// Those about keywords that cannot be judged at the node.
    Unhandled,
    /// That the node around it requires this field.
    Required,
    /// All about the node and what is below.
    Within,
    /// All about the values under free keys of the node.
    FreeValues,
}

impl NodeChange<'_> {
    /// Whether it makes the server fill in other values, which anything around the field may see.
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
