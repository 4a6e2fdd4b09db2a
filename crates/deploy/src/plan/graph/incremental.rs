//! A directed graph that stays acyclic: arcs are added one by one, and one that would close a cycle is refused.
//! Levels bound the searches (Bender, Fineman, Gilbert and Tarjan, "A new approach to incremental cycle detection
//! and related problems"), so that m arcs cost O(m·√m) instead of a full search for each.

use super::rule::Position;

#[derive(Debug)]
pub(super) struct Acyclic {
    outgoing: Vec<Vec<usize>>,
    /// Arcs into a vertex from its own level only; entries may be stale, so check the source's level.
    incoming: Vec<Vec<usize>>,
    /// Never decreases along an arc.
    level: Vec<usize>,
    /// Maximum number of arcs in a backward search.
    budget: usize,
    /// Number of the last backward search that visited each vertex.
    mark: Vec<usize>,
    search: usize,
}

impl Acyclic {
    /// Wraps a graph without cycles.
    pub(super) fn new(outgoing: Vec<Vec<usize>>) -> Self {
        let mut incoming = vec![Vec::new(); outgoing.len()];
        for (from, targets) in outgoing.iter().enumerate() {
            for &to in targets {
                incoming[to].push(from);
            }
        }
        let arcs: usize = outgoing.iter().map(Vec::len).sum();
        let count = outgoing.len();
        Self {
            incoming,
            level: vec![1; count],
            budget: arcs.isqrt().max(16),
            mark: vec![0; count],
            search: 0,
            outgoing,
        }
    }

    pub(super) fn into_arcs(self) -> Vec<Vec<usize>> {
        self.outgoing
    }

    /// Adds an arc; returns false, with no change, if it would close a cycle.
    pub(super) fn insert(&mut self, from: usize, to: usize) -> bool {
        if from == to {
            return false;
        }
        if self.level[from] >= self.level[to] {
            self.search += 1;
            let goal = match self.search_backward(from, to) {
                Backward::Found => return false,
                Backward::Exhausted if self.level[from] == self.level[to] => None,
                Backward::Exhausted => Some(self.level[from]),
                Backward::OutOfBudget => {
                    // The marks cover only part of the level; because the level rises by one, `from` alone is
                    // sufficient.
                    self.search += 1;
                    self.mark[from] = self.search;
                    Some(self.level[from] + 1)
                }
            };
            if goal.is_some_and(|goal| !self.raise(to, goal)) {
                return false;
            }
        }
        self.outgoing[from].push(to);
        if self.level[from] == self.level[to] {
            self.incoming[to].push(from);
        }
        true
    }

    /// Puts `own` before or after all of `others`, through a new join.
    pub(super) fn insert_through_new_join(
        &mut self,
        own: usize,
        others: impl Iterator<Item = usize>,
        position: Position,
    ) -> bool {
        let join = self.outgoing.len();
        self.outgoing.push(Vec::new());
        self.incoming.push(Vec::new());
        self.level.push(1);
        self.mark.push(0);
        // A new join has arcs on one side only, so these close no cycle.
        for other in others {
            let (from, to) = position.arc(join, other);
            self.insert(from, to);
        }
        let (from, to) = position.arc(own, join);
        self.insert(from, to)
    }

    /// Everything that must not be on the other side of `join`: what waits for it, or what it waits for.
    pub(super) fn reach(&self, join: usize, position: Position) -> Vec<bool> {
        let reversed;
        let arcs = match position {
            Position::Before => &self.outgoing,
            Position::After => {
                let mut incoming = vec![Vec::new(); self.outgoing.len()];
                for (from, targets) in self.outgoing.iter().enumerate() {
                    for &to in targets {
                        incoming[to].push(from);
                    }
                }
                reversed = incoming;
                &reversed
            }
        };
        let mut seen = vec![false; arcs.len()];
        let mut stack = vec![join];
        while let Some(vertex) = stack.pop() {
            for &next in &arcs[vertex] {
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push(next);
                }
            }
        }
        seen
    }

    /// Searches backwards from `from` on its level for `to`, and marks the vertices visited.
    fn search_backward(&mut self, from: usize, to: usize) -> Backward {
        let level = self.level[from];
        let mut left = self.budget;
        self.mark[from] = self.search;
        let mut stack = vec![from];
        while let Some(vertex) = stack.pop() {
            for position in 0..self.incoming[vertex].len() {
                let next = self.incoming[vertex][position];
                if left == 0 {
                    return Backward::OutOfBudget;
                }
                left -= 1;
                if next == to {
                    return Backward::Found;
                }
                if self.level[next] == level && self.mark[next] != self.search {
                    self.mark[next] = self.search;
                    stack.push(next);
                }
            }
        }
        Backward::Exhausted
    }

    /// Raises `start` and its successors to `goal`; returns false, with all levels restored, if it meets a mark.
    fn raise(&mut self, start: usize, goal: usize) -> bool {
        let mut undo = vec![(start, self.level[start])];
        self.level[start] = goal;
        let mut position = 0;
        while let Some(&(vertex, _)) = undo.get(position) {
            position += 1;
            for index in 0..self.outgoing[vertex].len() {
                let next = self.outgoing[vertex][index];
                if self.mark[next] == self.search {
                    for (vertex, level) in undo {
                        self.level[vertex] = level;
                    }
                    return false;
                }
                if self.level[next] < goal {
                    undo.push((next, self.level[next]));
                    self.level[next] = goal;
                }
            }
        }
        // The levels are final only now, so the lists of arcs within a level are rebuilt for the raised vertices.
        for &(vertex, _) in &undo {
            self.incoming[vertex].clear();
        }
        for &(vertex, _) in &undo {
            for index in 0..self.outgoing[vertex].len() {
                let next = self.outgoing[vertex][index];
                if self.level[next] == goal {
                    self.incoming[next].push(vertex);
                }
            }
        }
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backward {
    Found,
    Exhausted,
    OutOfBudget,
}
