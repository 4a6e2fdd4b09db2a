//! Filters over objects and over changes: by kind, namespace, name, labels and age, as kapp's flags and JSON trees have
//! them.

mod age;
mod json;
mod pattern;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Operation;
use pushback_preflight::selector::LabelSelector;
use serde_json::Value;

pub use age::Age;
pub use pattern::Pattern;

/// A tree of conditions over leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree<L> {
    /// All of these.
    And(Vec<Tree<L>>),
    /// Any of these.
    Or(Vec<Tree<L>>),
    /// Not this.
    Not(Box<Tree<L>>),
    /// One condition.
    Leaf(L),
}

impl<L> Tree<L> {
    /// Whether the tree holds, where a leaf is judged by `holds`.
    pub fn holds(&self, holds: &impl Fn(&L) -> bool) -> bool {
        match self {
            Self::And(trees) => trees.iter().all(|tree| tree.holds(holds)),
            Self::Or(trees) => trees.iter().any(|tree| tree.holds(holds)),
            Self::Not(tree) => !tree.holds(holds),
            Self::Leaf(leaf) => holds(leaf),
        }
    }
}

/// What an object must be like. Each list that is not empty must have an entry that the object matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// When it was created.
    pub created: Age,
    /// Kinds.
    pub kinds: Vec<Pattern>,
    /// Namespaces; a cluster-scoped object has none.
    pub namespaces: Vec<Pattern>,
    /// Names.
    pub names: Vec<Pattern>,
    /// `Kind/name`.
    pub kind_names: Vec<[Pattern; 2]>,
    /// `Kind/namespace`; `Kind/` for cluster-scoped objects.
    pub kind_namespaces: Vec<[Pattern; 2]>,
    /// `Kind/namespace/name`.
    pub kind_namespace_names: Vec<[Pattern; 3]>,
    /// Label selectors.
    pub labels: Vec<LabelSelector>,
}

impl Criteria {
    fn match_object(&self, object: &Value, created: Option<Timestamp>) -> bool {
        let ObjectRef { kind, namespace, name, .. } = ObjectRef::of(object);
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        self.created.covers(created)
            && any(&self.kinds, &kind)
            && (self.namespaces.is_empty() || (!namespace.is_empty() && any(&self.namespaces, &namespace)))
            && any(&self.names, &name)
            && any_of(&self.kind_names, [&kind, &name])
            && any_of(&self.kind_namespaces, [&kind, &namespace])
            && any_of(&self.kind_namespace_names, [&kind, &namespace, &name])
            && (self.labels.is_empty() || self.labels.iter().any(|selector| selector.matches(object)))
    }
}

fn any_of<const N: usize>(wanted: &[[Pattern; N]], parts: [&String; N]) -> bool {
    let matches = |patterns: &[Pattern; N]| patterns.iter().zip(parts).all(|(pattern, part)| pattern.matches(part));
    wanted.is_empty() || wanted.iter().any(matches)
}

/// Selects objects. The empty filter selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFilter {
    /// What every object must be like.
    pub criteria: Criteria,
    /// A tree that must hold too.
    pub tree: Option<Tree<Criteria>>,
}

impl ObjectFilter {
    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it selects an object that is live, or that was never created.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_created(object, object.text("/metadata/creationTimestamp"))
    }

    /// Whether it selects an object that was created at this time; without one it is as new as can be.
    #[must_use]
    pub fn matches_created(&self, object: &Value, created: &str) -> bool {
        let created = created.parse().ok();
        let meets = |criteria: &Criteria| criteria.match_object(object, created);
        meets(&self.criteria) && self.tree.as_ref().is_none_or(|tree| tree.holds(&meets))
    }

    /// Reads kapp's JSON: `{"and": [{"not": {"resource": {"kinds": ["Secret"]}}}, …]}`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn tree_of(text: &str) -> Result<Tree<Criteria>, String> {
        json::objects(&json::value(text)?)
    }
}

/// A condition on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeCondition {
    /// The operation is one of these.
    Operations(Vec<Operation>),
    /// There is a live object, and it is like this.
    Existing(Tree<Criteria>),
    /// There is an object in the input, and it is like this.
    New(Tree<Criteria>),
}

/// Selects changes. The empty filter selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFilter(Option<Tree<ChangeCondition>>);

impl ChangeFilter {
    /// Reads kapp's JSON: `{"and": [{"ops": ["update"]}, {"existingResource": {"kinds": ["Deployment"]}}]}`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        json::changes(&json::value(text)?).map(|tree| Self(Some(tree)))
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it selects a change of the live object to the new one.
    #[must_use]
    pub fn matches(&self, operation: Operation, live: Option<&Value>, new: Option<&Value>) -> bool {
        let is_like = |tree: &Tree<Criteria>, object: Option<&Value>| {
            object.is_some_and(|object| {
                let created = live.unwrap_or(object).text("/metadata/creationTimestamp").parse().ok();
                tree.holds(&|criteria| criteria.match_object(object, created))
            })
        };
        let holds = |condition: &ChangeCondition| match condition {
            ChangeCondition::Operations(operations) => operations.contains(&operation),
            ChangeCondition::Existing(tree) => is_like(tree, live),
            ChangeCondition::New(tree) => is_like(tree, new),
        };
        self.0.as_ref().is_none_or(|tree| tree.holds(&holds))
    }
}
