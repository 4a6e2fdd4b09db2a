//! The change graph: which change waits for which, from groups and rules, in time linear in memberships and rules.
//! Every (group, operation, side) has one join node between members and rules, which avoids pairwise edges.

mod cycle;
mod incremental;
mod order;
mod rule;
mod waves;

use std::collections::HashMap;
use std::fmt;

use self::incremental::Acyclic;
pub use self::order::Order;
pub use self::rule::{NodeOperation, Position, Rule, parse_rule};

/// One change. Its index in the input is its identity everywhere in this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeNode {
    /// Name in messages.
    pub name: String,
    /// The change's operation.
    pub operation: NodeOperation,
    /// Change groups that it is a member of.
    pub groups: Vec<String>,
    /// Rules of its own; those for another operation are ignored.
    pub rules: Vec<Rule>,
}

/// A rule that was left out because it would have closed a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DroppedRule {
    /// Index of the node.
    pub node: usize,
    /// Index in the node's `rules`.
    pub rule: usize,
}

/// The required rules contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleError {
    /// The nodes on the cycle, each waiting for the next; the first is repeated at the end.
    pub nodes: Vec<usize>,
    /// Their names.
    pub names: Vec<String>,
}

impl fmt::Display for CycleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Detected cycle while ordering changes: ")?;
        for (index, name) in self.names.iter().enumerate() {
            let arrow = if index == 0 { "" } else { " -> " };
            write!(f, "{arrow}[{name}]")?;
        }
        Ok(())
    }
}

impl std::error::Error for CycleError {}

/// The graph. Vertices below `node_count` are changes, the rest are joins.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    node_count: usize,
    /// For each vertex, the vertices that wait for it.
    dependents: Vec<Vec<usize>>,
    /// For each vertex, the vertices that it waits for.
    dependencies: Vec<Vec<usize>>,
    dropped: Vec<DroppedRule>,
}

/// Identifies the join of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct JoinKey<'a> {
    group: &'a str,
    operation: NodeOperation,
    position: Position,
}

#[derive(Debug)]
struct Join {
    vertex: usize,
    position: Position,
    /// Members of the group, sorted by index.
    members: Vec<usize>,
    /// The member with a rule about its own group. At most one: two would wait for each other.
    inner_source: Option<usize>,
}

/// One rule of one node, bound to its join.
#[derive(Clone, Copy, Debug)]
struct BoundRule {
    id: DroppedRule,
    /// Index of the join.
    join: usize,
}

/// The changes of each group by operation, sorted by index.
type Members<'a> = HashMap<(&'a str, NodeOperation), Vec<usize>>;

impl Graph {
    /// Builds the graph. All required rules apply; the optional ones are added in node and rule order,
    /// and a rule that would close a cycle with the rules so far is dropped as a whole.
    ///
    /// # Errors
    /// The shortest cycle of required rules through its first node.
    pub fn build(nodes: &[ChangeNode]) -> Result<Self, CycleError> {
        // These maps are never iterated: the order of the input alone determines the numbers.
        let mut members = Members::new();
        for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.operation != NodeOperation::None) {
            for group in &node.groups {
                let group_members = members.entry((group, node.operation)).or_default();
                if group_members.last() != Some(&index) {
                    group_members.push(index);
                }
            }
        }
        let mut builder = Builder { arcs: vec![Vec::new(); nodes.len()], joins: Vec::new(), by_key: HashMap::new() };
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        for (node_index, node) in nodes.iter().enumerate() {
            for (rule_index, rule) in node.rules.iter().enumerate() {
                if node.operation == NodeOperation::None || rule.own != node.operation {
                    continue;
                }
                let key = JoinKey { group: &rule.group, operation: rule.other, position: rule.position };
                let Some(join) = builder.ensure_join(key, &members) else { continue };
                let bound = BoundRule { id: DroppedRule { node: node_index, rule: rule_index }, join };
                if rule.ignore_if_cyclical { &mut optional } else { &mut required }.push(bound);
            }
        }
        for bound in &required {
            builder.draw(bound);
        }
        if let Some(cycle) = cycle::find(&builder.arcs, nodes.len()) {
            let names = cycle.iter().map(|&index| nodes[index].name.clone()).collect();
            return Err(CycleError { nodes: cycle, names });
        }
        let dropped = builder.draw_optional(&optional);
        Ok(Self::from_arcs(nodes.len(), builder.arcs, dropped))
    }

    fn from_arcs(node_count: usize, mut dependents: Vec<Vec<usize>>, dropped: Vec<DroppedRule>) -> Self {
        let mut dependencies = vec![Vec::new(); dependents.len()];
        for (from, targets) in dependents.iter_mut().enumerate() {
            targets.sort_unstable();
            targets.dedup();
            for &to in targets.iter() {
                dependencies[to].push(from);
            }
        }
        Self { node_count, dependents, dependencies, dropped }
    }

    /// The dropped rules, in node and rule order.
    #[must_use]
    pub fn dropped(&self) -> &[DroppedRule] {
        &self.dropped
    }

    /// All nodes that wait for `node`, directly or through others, sorted.
    #[must_use]
    pub fn dependents_of(&self, node: usize) -> Vec<usize> {
        if node >= self.node_count {
            return Vec::new();
        }
        let mut seen = vec![false; self.dependents.len()];
        seen[node] = true;
        let mut stack = vec![node];
        let mut found = Vec::new();
        while let Some(vertex) = stack.pop() {
            for &next in &self.dependents[vertex] {
                if std::mem::replace(&mut seen[next], true) {
                    continue;
                }
                if next < self.node_count {
                    found.push(next);
                }
                stack.push(next);
            }
        }
        found.sort_unstable();
        found
    }

    /// Starts a traversal of the graph.
    #[must_use]
    pub fn order(&self) -> Order<'_> {
        Order::new(self)
    }
}

/// The graph under construction: for each vertex, the vertices that wait for it.
#[derive(Debug)]
struct Builder<'a> {
    arcs: Vec<Vec<usize>>,
    joins: Vec<Join>,
    by_key: HashMap<JoinKey<'a>, usize>,
}

impl<'a> Builder<'a> {
    /// The join; created on first use with arcs to all members. `None` if the group has no members.
    fn ensure_join(&mut self, key: JoinKey<'a>, members: &Members<'a>) -> Option<usize> {
        if let Some(&known) = self.by_key.get(&key) {
            return Some(known);
        }
        let members = members.get(&(key.group, key.operation))?;
        let vertex = self.arcs.len();
        self.arcs.push(Vec::new());
        for &member in members {
            let (from, to) = key.position.arc(vertex, member);
            self.arcs[from].push(to);
        }
        let index = self.joins.len();
        self.joins.push(Join { vertex, position: key.position, members: members.clone(), inner_source: None });
        self.by_key.insert(key, index);
        Some(index)
    }

    /// Adds the arc of a rule; several arcs if its node is itself a member and must not wait for itself.
    fn draw(&mut self, bound: &BoundRule) {
        let source = bound.id.node;
        let join = &mut self.joins[bound.join];
        let position = join.position;
        if join.members.binary_search(&source).is_err() {
            let (from, to) = position.arc(source, join.vertex);
            self.arcs[from].push(to);
            return;
        }
        match join.inner_source {
            Some(first) if first == source => {}
            // Both wait for each other. One pair of arcs is enough for the cycle to be found.
            Some(first) => {
                let (from, to) = position.arc(source, first);
                self.arcs[from].push(to);
            }
            None => {
                join.inner_source = Some(source);
                for &member in join.members.iter().filter(|&&member| member != source) {
                    let (from, to) = position.arc(source, member);
                    self.arcs[from].push(to);
                }
            }
        }
    }

    /// Adds the optional rules that close no cycle, and returns the others.
    fn draw_optional(&mut self, optional: &[BoundRule]) -> Vec<DroppedRule> {
        // Only a rule whose ends are in the same strongly connected component of all rules together can be on a cycle.
        // All others, in practice nearly all, are added at once.
        let mut everything = self.arcs.clone();
        for bound in optional {
            let join = &self.joins[bound.join];
            let (from, to) = join.position.arc(bound.id.node, join.vertex);
            everything[from].push(to);
        }
        let component = cycle::components(&everything);
        let (mut certain, mut doubtful) = (Vec::new(), Vec::new());
        for bound in optional {
            let join = &self.joins[bound.join];
            if component[bound.id.node] == component[join.vertex] { &mut doubtful } else { &mut certain }.push(bound);
        }
        for bound in certain {
            self.draw(bound);
        }
        if doubtful.is_empty() {
            return Vec::new();
        }
        let mut acyclic = Acyclic::new(std::mem::take(&mut self.arcs));
        let mut dropped = Vec::new();
        // Joins that have refused a rule, with all vertices on the wrong side at that time. Reachability only grows, so
        // these vertices are refused without a search.
        let mut refused: HashMap<usize, Vec<bool>> = HashMap::new();
        for bound in doubtful {
            let source = bound.id.node;
            let join = &mut self.joins[bound.join];
            let position = join.position;
            let accepted = if join.members.binary_search(&source).is_ok() {
                match join.inner_source {
                    Some(first) => first == source,
                    None => {
                        let others = join.members.iter().copied().filter(|&member| member != source);
                        let accepted = acyclic.insert_through_new_join(source, others, position);
                        if accepted {
                            join.inner_source = Some(source);
                        }
                        accepted
                    }
                }
            } else if refused.get(&bound.join).is_some_and(|reached| reached.get(source) == Some(&true)) {
                false
            } else {
                let (from, to) = position.arc(source, join.vertex);
                let accepted = acyclic.insert(from, to);
                if !accepted {
                    refused.insert(bound.join, acyclic.reach(join.vertex, position));
                }
                accepted
            };
            if !accepted {
                dropped.push(bound.id);
            }
        }
        self.arcs = acyclic.into_arcs();
        dropped
    }
}

#[cfg(test)]
mod tests;
