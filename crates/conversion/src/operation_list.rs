//! What a step does to which field, and whether anything is lost: for people and rules. Nothing here is executed.

use super::path::FieldPath;

/// What happens to a field between a version and a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// It gets another name.
    Rename,
    /// It goes into another object.
    Move,
    /// The newer version does not have it: its value goes into the bag.
    Stash,
    /// The older version does not have it: its value comes out of the bag.
    Unstash,
    /// The newer version does not have it, and its value is lost.
    Drop,
    /// It gets another type.
    Coerce,
    /// Its values get other names.
    MapEnum,
    /// It becomes a list with one item.
    WrapList,
    /// A list becomes its only item.
    UnwrapList,
    /// A list becomes a map.
    ListToMap,
    /// A map becomes a list.
    MapToList,
    /// An expression sets it.
    Set,
    /// A program converts the object.
    Program,
}

impl OperationKind {
    /// What happens to the field, in a few words.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Rename => "another name",
            Self::Move => "another object",
            Self::Stash => "into the property bag",
            Self::Unstash => "out of the property bag",
            Self::Drop => "dropped, and lost",
            Self::Coerce => "another type",
            Self::MapEnum => "other values",
            Self::WrapList => "becomes a list of one item",
            Self::UnwrapList => "the only item of the list",
            Self::ListToMap => "becomes a map",
            Self::MapToList => "becomes a list",
            Self::Set => "set by an expression",
            Self::Program => "converted by a program",
        }
    }
}

/// Whether an operation loses anything on the way there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// Never.
    None,
    /// Only without a bag.
    InBag,
    /// It depends on what an expression or a program does.
    Unknown,
    /// Always.
    Lost,
}

/// One operation of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The older version.
    pub from: String,
    /// The newer version.
    pub to: String,
    /// The field in the older version, or the object that it would be in.
    pub older: FieldPath,
    /// The field in the newer version, or the object that it would be in.
    pub newer: FieldPath,
    /// What happens on the way to the newer version.
    pub kind: OperationKind,
    /// Whether that loses anything.
    pub loss: Loss,
}
