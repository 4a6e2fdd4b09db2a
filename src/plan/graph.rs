//! The change graph: which change waits for which, from groups and rules, in time linear in memberships and rules.
//! Every (group, operation, side) has one join node between members and rules, so no edge is drawn pair by pair.

mod cycle;
mod incremental;
mod order;
mod rule;

use std::collections::HashMap;
use std::fmt;

use self::incremental::Acyclic;
pub use self::order::Order;
pub use self::rule::{NodeOperation, Position, Rule, parse_rule};

/// One change. Its index in the input is its identity everywhere in this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeNode {
    /// How messages call it.
    pub name: String,
    /// What it does.
    pub operation: NodeOperation,
    /// Change groups that it belongs to.
    pub groups: Vec<String>,
    /// Rules of its own; those for another operation than its own are ignored.
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

/// The graph. Vertices below `node_count` are changes, the others are joins.
#[derive(Clone, Debug)]
pub struct Graph {
    node_count: usize,
    /// For every vertex, those that wait for it.
    dependents: Vec<Vec<usize>>,
    /// For every vertex, those that it waits for.
    dependencies: Vec<Vec<usize>>,
    dropped: Vec<DroppedRule>,
}

/// Which join a rule goes through.
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
    /// Sorted by index.
    members: Vec<usize>,
    /// A member with a rule about its own group. There can be only one: two of them would wait for each other.
    inner_source: Option<usize>,
}

/// One rule of one node, bound to its join.
#[derive(Clone, Copy, Debug)]
struct Use {
    id: DroppedRule,
    /// Index of the join.
    join: usize,
}

/// The changes of each group, by what they do; sorted by index.
type Members<'a> = HashMap<(&'a str, NodeOperation), Vec<usize>>;

impl Graph {
    /// Builds the graph. Required rules all hold; the others are taken in node and rule order,
    /// and a rule that would close a cycle with what holds already is left out as a whole.
    ///
    /// # Errors
    /// The shortest cycle of required rules through its first node.
    pub fn build(nodes: &[ChangeNode]) -> Result<Self, CycleError> {
        // Neither map is ever walked through: what comes first in the input has the first number.
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
                let rule_use = Use { id: DroppedRule { node: node_index, rule: rule_index }, join };
                if rule.ignore_if_cyclical { &mut optional } else { &mut required }.push(rule_use);
            }
        }
        for rule_use in &required {
            builder.draw(rule_use);
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

    /// Rules that were left out, in node and rule order.
    #[must_use]
    pub fn dropped(&self) -> &[DroppedRule] {
        &self.dropped
    }

    /// Number of arcs, joins included.
    #[must_use]
    pub fn arc_count(&self) -> usize {
        self.dependents.iter().map(Vec::len).sum()
    }

    /// The nodes that `node` waits for directly, sorted.
    #[must_use]
    pub fn dependencies_of(&self, node: usize) -> Vec<usize> {
        self.reach(node, &self.dependencies, false)
    }

    /// All nodes that wait for `node`, directly or through others, sorted.
    #[must_use]
    pub fn dependents_of(&self, node: usize) -> Vec<usize> {
        self.reach(node, &self.dependents, true)
    }

    /// Follows arcs from `node`: through joins always, through nodes only where `transitively`.
    fn reach(&self, node: usize, arcs: &[Vec<usize>], transitively: bool) -> Vec<usize> {
        if node >= self.node_count {
            return Vec::new();
        }
        let mut seen = vec![false; arcs.len()];
        seen[node] = true;
        let mut stack = vec![node];
        let mut found = Vec::new();
        while let Some(vertex) = stack.pop() {
            for &next in &arcs[vertex] {
                if std::mem::replace(&mut seen[next], true) {
                    continue;
                }
                if next < self.node_count {
                    found.push(next);
                }
                if transitively || next >= self.node_count {
                    stack.push(next);
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// A fresh walk over the graph.
    #[must_use]
    pub fn order(&self) -> Order<'_> {
        Order::new(self)
    }

    /// The nodes by depth: what could run at the same time if every wave were waited for. For display.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let mut order = self.order();
        let mut wave = order.initial();
        let mut waves = Vec::new();
        while !wave.is_empty() {
            let mut next: Vec<usize> = wave.iter().flat_map(|&node| order.complete(node)).collect();
            next.sort_unstable();
            waves.push(std::mem::replace(&mut wave, next));
        }
        waves
    }
}

/// The graph while it is drawn: for every vertex, those that wait for it.
#[derive(Debug)]
struct Builder<'a> {
    arcs: Vec<Vec<usize>>,
    joins: Vec<Join>,
    by_key: HashMap<JoinKey<'a>, usize>,
}

impl<'a> Builder<'a> {
    /// The join, made with its arcs to all members where there was none; `None` where the group has no members.
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

    /// The arc of a rule, or the arcs where its node is itself a member and must not wait for itself.
    fn draw(&mut self, rule_use: &Use) {
        let source = rule_use.id.node;
        let join = &mut self.joins[rule_use.join];
        let position = join.position;
        if join.members.binary_search(&source).is_err() {
            let (from, to) = position.arc(source, join.vertex);
            self.arcs[from].push(to);
            return;
        }
        match join.inner_source {
            Some(first) if first == source => {}
            // Each waits for the other. One pair of arcs is enough to make the cycle known.
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

    /// Draws the optional rules that close no cycle, and returns the others.
    fn draw_optional(&mut self, optional: &[Use]) -> Vec<DroppedRule> {
        // Only a rule whose ends lie in one strongly connected component of everything together can ever be on a
        // cycle. All others are drawn at once, which in practice is nearly all of them.
        let mut everything = self.arcs.clone();
        for rule_use in optional {
            let join = &self.joins[rule_use.join];
            let (from, to) = join.position.arc(rule_use.id.node, join.vertex);
            everything[from].push(to);
        }
        let component = cycle::components(&everything);
        let (mut certain, mut doubtful) = (Vec::new(), Vec::new());
        for rule_use in optional {
            let join = &self.joins[rule_use.join];
            if component[rule_use.id.node] == component[join.vertex] { &mut doubtful } else { &mut certain }
                .push(rule_use);
        }
        for rule_use in certain {
            self.draw(rule_use);
        }
        if doubtful.is_empty() {
            return Vec::new();
        }
        let mut acyclic = Acyclic::new(std::mem::take(&mut self.arcs));
        let mut dropped = Vec::new();
        // Joins that have refused a rule, with all vertices on the wrong side of them at that time. Reachability
        // only grows, so whoever is in there is refused without a search.
        let mut refused: HashMap<usize, Vec<bool>> = HashMap::new();
        for rule_use in doubtful {
            let source = rule_use.id.node;
            let join = &mut self.joins[rule_use.join];
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
            } else if refused.get(&rule_use.join).is_some_and(|reached| reached.get(source) == Some(&true)) {
                false
            } else {
                let (from, to) = position.arc(source, join.vertex);
                let accepted = acyclic.insert(from, to);
                if !accepted {
                    refused.insert(rule_use.join, acyclic.reach(join.vertex, position));
                }
                accepted
            };
            if !accepted {
                dropped.push(rule_use.id);
            }
        }
        self.arcs = acyclic.into_arcs();
        dropped
    }
}

#[cfg(test)]
mod tests;
