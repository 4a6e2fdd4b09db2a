//! Ordering rules as annotations and Config write them: `upsert after upserting my-group`.
//! Turned into what the graph needs; group names are taken as they stand.

use crate::config::ordering::{self, OrderAction, OrderRule, OrderSide};

/// What a change does, as far as ordering is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeOperation {
    /// The object is there afterwards.
    Upsert,
    /// The object is gone afterwards.
    Delete,
    /// Nothing is done; the node takes no part in ordering.
    None,
}

/// On which side of the group's changes the rule's own change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Position {
    /// Before them.
    Before,
    /// After them.
    After,
}

impl Position {
    /// The arc, from what goes first to what goes second.
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
    /// Before or after.
    pub position: Position,
    /// The operation of the changes in the group.
    pub other: NodeOperation,
    /// The group.
    pub group: String,
    /// Left out where it would close a cycle.
    pub ignore_if_cyclical: bool,
}

/// Reads a rule the way annotations and Config write it, as a required one.
///
/// # Errors
/// What was expected, where it is none.
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
