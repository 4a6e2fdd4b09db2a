//! A pattern as a program over code points (a nondeterministic automaton), and the walk through it that matching and
//! language questions share.

use super::parser::{ClassId, Look, Node, NodeId, Tree};
use super::{Budget, classes};

pub(super) type Address = u32;

#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// Consumes one code point of the class.
    Class {
        class: ClassId,
        next: Address,
    },
    Split {
        first: Address,
        second: Address,
    },
    Look {
        look: Look,
        next: Address,
    },
    Match,
}

/// The kind of character before a position, as far as `^`, `$` and `\b` distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The start of the text or, for the next character, its end.
    Edge,
    Newline,
    Word,
    Other,
}

impl Kind {
    pub(super) fn of(character: char) -> Self {
        match character {
            '\n' => Self::Newline,
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => Self::Word,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) start: Address,
    pub(super) classes: Vec<Vec<(char, char)>>,
    /// Which kinds matter to the program.
    asks_start: bool,
    asks_newline: bool,
    asks_word: bool,
}

impl Program {
    pub(super) fn compile(tree: &Tree) -> Self {
        let mut compiler = Compiler { tree, instructions: Vec::new() };
        let end = compiler.push(Instruction::Match);
        let start = compiler.emit(tree.root, end);
        let instructions = compiler.instructions;
        let asks = |looks: &[Look]| {
            instructions.iter().any(|one| matches!(one, Instruction::Look { look, .. } if looks.contains(look)))
        };
        Self {
            start,
            classes: tree.classes.clone(),
            asks_start: asks(&[Look::TextStart, Look::LineStart]),
            asks_newline: asks(&[Look::LineStart, Look::LineEnd]),
            asks_word: asks(&[Look::WordBoundary, Look::NoWordBoundary]),
            instructions,
        }
    }

    /// The classes of the pattern, and those that its assertions distinguish.
    pub(super) fn distinctions(&self) -> Vec<Vec<(char, char)>> {
        let mut classes = self.classes.clone();
        if self.asks_newline {
            classes.push(vec![('\n', '\n')]);
        }
        if self.asks_word {
            classes.push(classes::word().iter().map(|range| (range.start(), range.end())).collect());
        }
        classes
    }
}

struct Compiler<'t> {
    tree: &'t Tree,
    instructions: Vec<Instruction>,
}

impl Compiler<'_> {
    fn push(&mut self, instruction: Instruction) -> Address {
        self.instructions.push(instruction);
        // The parser's size limit is far below this.
        Address::try_from(self.instructions.len() - 1).unwrap_or(Address::MAX)
    }

    /// Emits code for a node that continues at `next` and returns its first address. Recurses to the height of the
    /// tree, which the parser limits.
    fn emit(&mut self, node: NodeId, next: Address) -> Address {
        match &self.tree.nodes[node] {
            Node::Empty => next,
            Node::Group(node) => self.emit(*node, next),
            Node::Class(class) => self.push(Instruction::Class { class: *class, next }),
            Node::Look(look) => self.push(Instruction::Look { look: *look, next }),
            Node::Concatenation(nodes) => nodes.iter().rev().fold(next, |next, node| self.emit(*node, next)),
            Node::Alternation(nodes) => {
                let entries: Vec<_> = nodes.iter().map(|node| self.emit(*node, next)).collect();
                let split = |second, first| self.push(Instruction::Split { first, second });
                entries.into_iter().rev().reduce(split).unwrap_or(next)
            }
            Node::Repetition { node, least, most } => {
                let mut entry = next;
                match most {
                    None => {
                        entry = self.push(Instruction::Split { first: next, second: next });
                        let body = self.emit(*node, entry);
                        self.instructions[entry as usize] = Instruction::Split { first: body, second: next };
                    }
                    Some(most) => {
                        for _ in *least..*most {
                            let body = self.emit(*node, entry);
                            entry = self.push(Instruction::Split { first: body, second: next });
                        }
                    }
                }
                (0..*least).fold(entry, |next, _| self.emit(*node, next))
            }
        }
    }
}

/// The state of a search between two code points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Progress {
    /// The pattern has matched, whatever follows.
    Found,
    /// The instructions waiting for the next code point, sorted, and the kind of the previous one.
    Waiting(Vec<Address>, Kind),
}

/// What is known about the next code point when a walk reaches `$` or `\b`.
#[derive(Clone, Copy)]
enum Ahead {
    Unknown,
    Known(Kind),
}

/// Walks through a program; owns the buffers for it.
#[derive(Debug)]
pub(super) struct Runner<'p> {
    program: &'p Program,
    stamp: u32,
    stamps: Vec<u32>,
    stack: Vec<Address>,
    /// Instructions at which the last walk waits for the next code point. Its memory is reused.
    waiting: Vec<Address>,
    /// Number of executed instructions.
    work: u64,
}

impl<'p> Runner<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        Self {
            program,
            stamp: 0,
            stamps: vec![0; program.instructions.len()],
            stack: Vec::new(),
            waiting: Vec::new(),
            work: 0,
        }
    }

    /// The work since the last call.
    pub(super) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    /// The state at the start of a text.
    pub(super) fn start(&mut self) -> Progress {
        self.stack.push(self.program.start);
        self.settle(Kind::Edge)
    }

    /// Whether a match may begin after the start of a text.
    pub(super) fn begins_later(&mut self) -> bool {
        [Kind::Newline, Kind::Word, Kind::Other].into_iter().any(|before| {
            self.stack.push(self.program.start);
            !matches!(self.settle(before), Progress::Waiting(waiting, _) if waiting.is_empty())
        })
    }

    /// Whether a text that ends here matches.
    pub(super) fn ends(&mut self, place: &Progress) -> bool {
        match place {
            Progress::Found => true,
            Progress::Waiting(addresses, before) => {
                self.stack.extend(addresses);
                self.walk(*before, Ahead::Known(Kind::Edge))
            }
        }
    }

    /// The state after one more code point; `holds` tells which classes contain it.
    pub(super) fn step(&mut self, place: &Progress, next: Kind, mut holds: impl FnMut(ClassId) -> bool) -> Progress {
        let Progress::Waiting(addresses, before) = place else { return Progress::Found };
        self.stack.extend(addresses);
        if self.walk(*before, Ahead::Known(next)) {
            return Progress::Found;
        }
        for address in &self.waiting {
            if let Instruction::Class { class, next } = self.program.instructions[*address as usize]
                && holds(class)
            {
                self.stack.push(next);
            }
        }
        // A match may begin anywhere.
        self.stack.push(self.program.start);
        self.settle(next)
    }

    /// Follows the instructions on the stack as far as possible without knowing the next code point.
    fn settle(&mut self, before: Kind) -> Progress {
        if self.walk(before, Ahead::Unknown) {
            return Progress::Found;
        }
        self.waiting.sort_unstable();
        let pending = self
            .waiting
            .iter()
            .any(|address| matches!(self.program.instructions[*address as usize], Instruction::Look { .. }));
        Progress::Waiting(self.waiting.clone(), if pending { self.matters(before) } else { Kind::Other })
    }

    /// The kind, or a neutral one if it does not matter to this pattern.
    fn matters(&self, kind: Kind) -> Kind {
        let asked = match kind {
            Kind::Edge => self.program.asks_start,
            Kind::Newline => self.program.asks_newline,
            Kind::Word => self.program.asks_word,
            Kind::Other => true,
        };
        if asked { kind } else { Kind::Other }
    }

    /// Follows splits and assertions from the stack to the waiting instructions. Returns whether the end of the pattern
    /// is reached.
    fn walk(&mut self, before: Kind, ahead: Ahead) -> bool {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.stamps.fill(0);
            self.stamp = 1;
        }
        self.waiting.clear();
        let mut found = false;
        while let Some(address) = self.stack.pop() {
            let stamp = &mut self.stamps[address as usize];
            if *stamp == self.stamp {
                continue;
            }
            *stamp = self.stamp;
            self.work += 1;
            match self.program.instructions[address as usize] {
                Instruction::Class { .. } => self.waiting.push(address),
                Instruction::Split { first, second } => self.stack.extend([second, first]),
                Instruction::Match => found = true,
                Instruction::Look { look, next } => match holds(look, before, ahead) {
                    Some(true) => self.stack.push(next),
                    Some(false) => {}
                    None => self.waiting.push(address),
                },
            }
        }
        found
    }

    pub(super) fn is_match(&mut self, text: &str, budget: &mut Budget) -> Option<bool> {
        let mut place = self.start();
        let classes = &self.program.classes;
        // For each class, the number of the last code point tested, and the result.
        let mut known = vec![(usize::MAX, false); classes.len()];
        for (number, character) in text.chars().enumerate() {
            if place == Progress::Found {
                return Some(true);
            }
            if !budget.spend(1 + self.take_work()) {
                return None;
            }
            place = self.step(&place, Kind::of(character), |class| {
                let answer = &mut known[class as usize];
                if answer.0 != number {
                    *answer = (number, contains(&classes[class as usize], character));
                }
                answer.1
            });
        }
        Some(self.ends(&place))
    }
}

/// Whether an assertion holds; `None` if that depends on an unknown next code point.
fn holds(look: Look, before: Kind, ahead: Ahead) -> Option<bool> {
    match (look, ahead) {
        (Look::TextStart, _) => Some(before == Kind::Edge),
        (Look::LineStart, _) => Some(matches!(before, Kind::Edge | Kind::Newline)),
        (_, Ahead::Unknown) => None,
        (Look::TextEnd, Ahead::Known(next)) => Some(next == Kind::Edge),
        (Look::LineEnd, Ahead::Known(next)) => Some(matches!(next, Kind::Edge | Kind::Newline)),
        (Look::WordBoundary, Ahead::Known(next)) => Some((before == Kind::Word) != (next == Kind::Word)),
        (Look::NoWordBoundary, Ahead::Known(next)) => Some((before == Kind::Word) == (next == Kind::Word)),
    }
}

/// Whether an assertion holds between two characters of these kinds.
pub(super) fn holds_between(look: Look, before: Kind, next: Kind) -> bool {
    holds(look, before, Ahead::Known(next)) == Some(true)
}

/// Whether sorted ranges contain the code point.
pub(super) fn contains(ranges: &[(char, char)], character: char) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= character);
    after > 0 && ranges[after - 1].1 >= character
}
