//! Finds a match in a string: the leftmost one and, among those, the one that a backtracking search would prefer.
//! Programs keep that preference for greedy repetitions only, so patterns with lazy ones are unsupported.

use super::Budget;
use super::program::{Address, Instruction, Kind, Program, contains, holds_between};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFound {
    /// The matches of this kind of pattern are unknown here.
    Unsupported,
    /// The budget is exhausted.
    Budget,
}

/// The byte range of the first match at or after `from`, or `None`.
pub(super) fn find(
    program: &Program,
    text: &str,
    from: usize,
    budget: &mut Budget,
) -> Result<Option<(usize, usize)>, NotFound> {
    let mut finder = Finder { program, stamps: vec![0; program.instructions.len()], stamp: 0, waiting: Vec::new() };
    let mut before = text.get(..from).and_then(|text| text.chars().next_back()).map_or(Kind::Edge, Kind::of);
    let mut threads: Vec<(Address, usize)> = Vec::new();
    let mut found = None;
    let rest = text.get(from..).unwrap_or_default();
    let places = rest.char_indices().map(|(offset, character)| (from + offset, Some(character)));
    for (place, character) in places.chain([(text.len(), None)]) {
        if !budget.spend(1 + 2 * threads.len() as u64) {
            return Err(NotFound::Budget);
        }
        let ahead = character.map_or(Kind::Edge, Kind::of);
        if found.is_none() {
            threads.push((program.start, place));
        }
        if threads.is_empty() {
            break;
        }
        if let Some(start) = finder.settle(&threads, before, ahead, budget)? {
            found = Some((start, place));
        }
        let Some(character) = character else { break };
        threads.clear();
        for (address, start) in &finder.waiting {
            if let Some(Instruction::Class { class, next }) = program.instructions.get(*address as usize)
                && program.classes.get(*class as usize).is_some_and(|class| contains(class, character))
            {
                threads.push((*next, *start));
            }
        }
        before = ahead;
    }
    Ok(found)
}

/// Whether a repetition can iterate without consuming anything; what it then matches depends on how it is compiled.
pub(super) fn has_empty_round(program: &Program) -> bool {
    // Depth-first search: an address that is still open is on the current path.
    let mut state = vec![Visit::New; program.instructions.len()];
    let mut stack = Vec::new();
    for start in 0..program.instructions.len() {
        stack.push((start, false));
        while let Some((address, leaving)) = stack.pop() {
            if leaving {
                state[address] = Visit::Done;
                continue;
            }
            match state[address] {
                Visit::Done => continue,
                Visit::Open => return true,
                Visit::New => {}
            }
            state[address] = Visit::Open;
            stack.push((address, true));
            let next = match program.instructions[address] {
                Instruction::Split { first, second } => [Some(first), Some(second)],
                Instruction::Look { next, .. } => [Some(next), None],
                Instruction::Class { .. } | Instruction::Match => [None, None],
            };
            for next in next.into_iter().flatten() {
                match state[next as usize] {
                    Visit::Open => return true,
                    Visit::New => stack.push((next as usize, false)),
                    Visit::Done => {}
                }
            }
        }
    }
    false
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
}

struct Finder<'p> {
    program: &'p Program,
    stamps: Vec<u32>,
    stamp: u32,
    /// The threads waiting for a character, preferred ones first.
    waiting: Vec<(Address, usize)>,
}

impl Finder<'_> {
    /// Advances the threads until they wait; when one matches, drops those of lower preference and returns its start.
    fn settle(
        &mut self,
        threads: &[(Address, usize)],
        before: Kind,
        ahead: Kind,
        budget: &mut Budget,
    ) -> Result<Option<usize>, NotFound> {
        self.waiting.clear();
        self.stamp += 1;
        let mut stack = Vec::new();
        for (address, start) in threads {
            stack.push(*address);
            while let Some(address) = stack.pop() {
                let stamp = &mut self.stamps[address as usize];
                if *stamp == self.stamp {
                    continue;
                }
                *stamp = self.stamp;
                if !budget.spend(1) {
                    return Err(NotFound::Budget);
                }
                match self.program.instructions[address as usize] {
                    Instruction::Class { .. } => self.waiting.push((address, *start)),
                    Instruction::Split { first, second } => stack.extend([second, first]),
                    Instruction::Look { look, next } => {
                        if holds_between(look, before, ahead) {
                            stack.push(next);
                        }
                    }
                    Instruction::Match => return Ok(Some(*start)),
                }
            }
        }
        Ok(None)
    }
}
