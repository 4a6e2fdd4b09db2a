//! Traverses the change graph during a run: which changes may start, and which are released when one completes.
//! A join completes by itself as soon as everything before it has.

use std::collections::HashSet;

use super::Graph;

/// The state of one traversal.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    graph: &'a Graph,
    /// For each vertex, the number of its incomplete dependencies.
    waiting_for: Vec<usize>,
    complete: Vec<bool>,
    /// Arcs that were released before their first vertex was complete.
    released: HashSet<(usize, usize)>,
}

impl<'a> Order<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let waiting_for: Vec<usize> = graph.dependencies.iter().map(Vec::len).collect();
        let complete = vec![false; waiting_for.len()];
        Self { graph, waiting_for, complete, released: HashSet::new() }
    }

    /// The nodes without dependencies, sorted. Call once, at the start.
    pub fn initial(&mut self) -> Vec<usize> {
        let mut ready: Vec<usize> = (0..self.graph.node_count).filter(|&node| self.waiting_for[node] == 0).collect();
        let empty_joins: Vec<usize> =
            (self.graph.node_count..self.waiting_for.len()).filter(|&join| self.waiting_for[join] == 0).collect();
        for join in empty_joins {
            ready.extend(self.complete(join));
        }
        ready.sort_unstable();
        ready
    }

    /// Marks a node complete and returns the nodes that this releases, sorted.
    /// A node that is unknown or already complete releases nothing.
    pub fn complete(&mut self, node: usize) -> Vec<usize> {
        let mut ready = Vec::new();
        let mut stack = vec![node];
        while let Some(vertex) = stack.pop() {
            match self.complete.get_mut(vertex) {
                Some(complete) if !*complete => *complete = true,
                _ => continue,
            }
            for &next in &self.graph.dependents[vertex] {
                if !self.released.is_empty() && self.released.contains(&(vertex, next)) {
                    continue;
                }
                self.waiting_for[next] = self.waiting_for[next].saturating_sub(1);
                if self.waiting_for[next] > 0 {
                    continue;
                }
                if next < self.graph.node_count { &mut ready } else { &mut stack }.push(next);
            }
        }
        ready.sort_unstable();
        ready
    }

    /// Releases, of all that waits for a node which is not complete yet, what comes before any of `targets`. Returns the
    /// nodes that may start now, sorted.
    pub fn release_towards(&mut self, node: usize, targets: &[usize]) -> Vec<usize> {
        let mut leads = vec![false; self.graph.dependencies.len()];
        let mut stack: Vec<usize> = targets.iter().copied().filter(|&target| target != node).collect();
        while let Some(vertex) = stack.pop() {
            if !std::mem::replace(&mut leads[vertex], true) {
                stack.extend(self.graph.dependencies[vertex].iter().copied().filter(|&first| first != node));
            }
        }
        let mut ready = Vec::new();
        for &next in &self.graph.dependents[node] {
            if !leads[next] || !self.released.insert((node, next)) {
                continue;
            }
            self.waiting_for[next] = self.waiting_for[next].saturating_sub(1);
            match self.waiting_for[next] {
                0 if next < self.graph.node_count => ready.push(next),
                0 => ready.extend(self.complete(next)),
                _ => {}
            }
        }
        ready.sort_unstable();
        ready
    }

    /// All nodes that wait for `node`, directly or through others, sorted: what is skipped when it fails.
    #[must_use]
    pub fn dependents_of(&self, node: usize) -> Vec<usize> {
        self.graph.dependents_of(node)
    }
}
