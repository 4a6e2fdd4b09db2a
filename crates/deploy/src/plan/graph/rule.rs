//! Ordering rules as written in annotations and Config: `upsert after upserting my-group`.
//! Converted for the graph; group names are used unchanged.

use pushback_manifest::config::ordering::{self, OrderAction, OrderRule, OrderSide};

/// A change's operation, as far as ordering is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeOperation {
    /// The object exists afterwards.
    Upsert,
    /// The object no longer exists afterwards.
    Delete,
    /// Nothing is done; the node is not ordered.
    None,
}

/// Whether the rule's own change precedes or follows those of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Position {
    /// The own change first.
    Before,
    /// The group's changes first.
    After,
}

impl Position {
    /// The arc, from the first change to the second.
    pub(super) fn arc(self, own: usize, other: usize) -> (usize, usize) {
        match self {
            Self::Before => (own, other),
            Self::After => (other, own),
        }
    }
}

/// One rule of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The operation of the change that has the rule.
    pub own: NodeOperation,
    /// Whether it runs before or after the group.
    pub position: Position,
    /// The operation of the changes in the group.
    pub other: NodeOperation,
    /// Name of the group.
    pub group: String,
    /// Drop the rule if it would close a cycle.
    pub ignore_if_cyclical: bool,
}

impl Rule {
    /// Creates a rule that orders a change after those of a group with the same operation, unless that closes a cycle.
    pub(in crate::plan) fn after(operation: NodeOperation, group: &str) -> Self {
        Self {
            own: operation,
            position: Position::After,
            other: operation,
            group: group.to_owned(),
            ignore_if_cyclical: true,
        }
    }
}

/// Parses a rule as written in annotations and Config, as a required one.
///
/// # Errors
/// What was expected.
pub fn parse_rule(text: &str) -> Result<Rule, String> {
    ordering::parse_rule(text).map(Rule::from)
}

impl From<OrderRule> for Rule {
    fn from(rule: OrderRule) -> Self {
        let operation = |action| match action {
            OrderAction::Upsert => NodeOperation::Upsert,
            OrderAction::Delete => NodeOperation::Delete,
        };
        let position = match rule.side {
            OrderSide::Before => Position::Before,
            OrderSide::After => Position::After,
        };
        Self {
            own: operation(rule.action),
            position,
            other: operation(rule.target),
            group: rule.group,
            ignore_if_cyclical: false,
        }
    }
}
