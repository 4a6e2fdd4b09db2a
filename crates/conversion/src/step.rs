//! Conversions as they are executed: a tree with a node only where something changes, so that an object is walked once
//! and what stays the same is not looked at.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pushback_crd::schema::Schema;
use pushback_crd::schema::cel::Program;
use serde_json::Value;

use super::operation::Scalar;
use super::plan::Keyed;

/// What becomes of a value.
#[derive(Clone, Debug, Default)]
pub(super) enum Convert {
    /// It stays as it is.
    #[default]
    Same,
    /// Its fields are converted.
    Object(Arc<ObjectStep>),
    /// Each of its items or values is converted.
    Each(Arc<Convert>),
    /// It gets another type.
    Scalar { to: Scalar, quantity: bool },
    /// Its value gets another name.
    Enum(Arc<HashMap<String, Value>>),
    /// It becomes the only item of a list.
    Wrap(Arc<Convert>),
    /// The only item of a list takes its place.
    Unwrap(Arc<Convert>),
    /// A list becomes a map.
    ToMap(Keyed, Arc<Convert>),
    /// A map becomes a list.
    ToList(Keyed, Arc<Convert>),
    /// A null, which the other version does not have, is kept beside it.
    NotNull(Arc<Convert>),
}

impl Convert {
    /// Whether it may be unable to express a value.
    pub(super) fn is_partial(&self) -> bool {
        match self {
            Self::Same | Self::Object(_) => false,
            Self::Each(inner) => inner.is_partial(),
            _ => true,
        }
    }

    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same)
    }

    /// Of each item or value.
    pub(super) fn each(inner: Self) -> Self {
        if inner.is_same() { Self::Same } else { Self::Each(Arc::new(inner)) }
    }
}

/// Up to so many names are compared one by one.
pub(super) const FEW: usize = 8;

/// Entries by name. Most objects have few, and comparing a few names takes less time than hashing one.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    entries: Vec<(String, T)>,
    /// Places in the list, where it is long.
    places: HashMap<String, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: HashMap::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether entries are compared one by one.
    pub(super) fn is_short(&self) -> bool {
        self.entries.len() <= FEW
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, T)> {
        self.entries.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        Some(&self.entry(name)?.1)
    }

    /// The name as it is kept here, with its value.
    pub(super) fn entry(&self, name: &str) -> Option<&(String, T)> {
        let place = if self.is_short() {
            self.entries.iter().position(|(known, _)| known == name)
        } else {
            self.places.get(name).copied()
        };
        place.map(|place| &self.entries[place])
    }

    /// Adds an entry, or replaces the one of this name.
    pub(super) fn insert(&mut self, name: String, value: T) {
        match self.places.get(&name) {
            Some(&place) => self.entries[place].1 = value,
            None => {
                self.places.insert(name.clone(), self.entries.len());
                self.entries.push((name, value));
            }
        }
    }
}

/// What happens in an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectStep {
    /// Fields of the source with which anything happens.
    pub(super) fields: Table<Field>,
    /// Whether fields get other names or leave, so that the map is written anew.
    pub(super) rewrites: bool,
    /// Entries of the bag that the destination has a field for, by their keys.
    pub(super) pulls: Table<Pull>,
    /// Fields that go into other objects.
    pub(super) moves: Vec<Move>,
    /// What is set afterwards.
    pub(super) assignments: Vec<Assignment>,
    /// Fields that the source keeps without a schema.
    pub(super) rest: Option<Rest>,
}

impl ObjectStep {
    pub(super) fn is_same(&self) -> bool {
        self.fields.is_empty()
            && self.pulls.is_empty()
            && self.moves.is_empty()
            && self.assignments.is_empty()
            && self.rest.is_none()
    }
}

/// What happens with a field.
#[derive(Clone, Debug)]
pub(super) enum Field {
    /// The destination has it.
    Keep { to: String, convert: Convert, aside: Option<Aside> },
    /// It goes into the bag.
    Stash { key: String, raw: bool },
    /// It is lost.
    Drop,
}

/// Where the original is kept if the converted value does not give it back.
#[derive(Clone, Debug)]
pub(super) struct Aside {
    pub(super) key: String,
    pub(super) back: Convert,
}

/// What an entry of the bag becomes.
#[derive(Clone, Debug)]
pub(super) enum Pull {
    /// A field.
    Field { to: String, raw: bool, shape: Shape },
    /// The original of a field, if the field was not changed since.
    Original { to: String, there: Convert, back: Convert },
    /// All fields that have no schema.
    Rest,
}

/// What a value looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Any,
    Object,
    List,
    Scalar,
}

impl Shape {
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            _ if value.is_null() => true,
            Self::Any => true,
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::Scalar => !value.is_object() && !value.is_array(),
        }
    }
}

/// A field that goes into another object; names from the object at hand.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) from: Vec<String>,
    pub(super) to: Vec<String>,
    pub(super) convert: Convert,
    /// In the bag of the object at hand.
    pub(super) aside: Option<Aside>,
    /// Where the other direction keeps originals, with the conversion in which it did.
    pub(super) originals: Option<Aside>,
}

/// A field that is set to the value of an expression about the source.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) program: Arc<Program>,
    /// What the expression calls `self`.
    pub(super) schema: Arc<Schema>,
    pub(super) field: Vec<String>,
    pub(super) always: bool,
    /// Whether a value that has no first field on the way is left alone: a request may carry parts of an object.
    pub(super) needs_first: bool,
}

/// Which fields without a schema the destination keeps, and where the others go.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// Fields that the source has in its schema.
    pub(super) known: HashSet<String>,
    /// Fields that the destination has in its schema, if it keeps all others.
    pub(super) taken: Option<HashSet<String>>,
    /// Where the others go in the bag.
    pub(super) key: String,
}

impl Rest {
    pub(super) fn stays(&self, name: &str) -> bool {
        self.known.contains(name) || self.taken.as_ref().is_some_and(|taken| !taken.contains(name))
    }
}
