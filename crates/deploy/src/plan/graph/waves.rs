//! The graph as people see it: how early each change can come, and what waits for what once changes are put together.

use std::collections::BTreeSet;

use super::Graph;

impl Graph {
    /// For each node, how many of the nodes that count come before it on the longest way to it.
    #[must_use]
    pub fn wave_numbers(&self, counts: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut waves = vec![0; self.dependents.len()];
        for vertex in self.in_order() {
            let own = usize::from(vertex < self.node_count && counts(vertex));
            for &next in &self.dependents[vertex] {
                waves[next] = waves[next].max(waves[vertex] + own);
            }
        }
        waves.truncate(self.node_count);
        waves
    }

    /// Which sets wait for which, as pairs (first, waiting), where `set` says what set a node is put into. A node without
    /// one hands on what it waits for.
    #[must_use]
    pub fn arrows(&self, set: &[Option<usize>]) -> BTreeSet<(usize, usize)> {
        let set = |vertex: usize| set.get(vertex).copied().flatten();
        let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.dependents.len()];
        let mut arrows = BTreeSet::new();
        for vertex in self.in_order() {
            let waited_for = std::mem::take(&mut before[vertex]);
            let handed_on = match set(vertex) {
                Some(own) => {
                    arrows.extend(waited_for.into_iter().filter(|first| *first != own).map(|first| (first, own)));
                    BTreeSet::from([own])
                }
                None => waited_for,
            };
            for &next in &self.dependents[vertex] {
                before[next].extend(&handed_on);
            }
        }
        arrows
    }

    /// All vertices, each after those that it waits for.
    fn in_order(&self) -> Vec<usize> {
        let mut waiting_for: Vec<usize> = self.dependencies.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..waiting_for.len()).filter(|&vertex| waiting_for[vertex] == 0).collect();
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            for &next in &self.dependents[vertex] {
                waiting_for[next] -= 1;
                if waiting_for[next] == 0 {
                    order.push(next);
                }
            }
        }
        order
    }
}
