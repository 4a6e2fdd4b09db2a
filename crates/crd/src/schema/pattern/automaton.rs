//! Partitions code points into blocks that none of the given patterns distinguishes, and builds a deterministic
//! automaton over the blocks, whose states are created on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Budget;
use super::program::{Kind, Program, Progress, Runner};

/// The budget is exhausted.
#[derive(Debug)]
pub(super) struct Exhausted;

pub(super) type Ranges = Vec<(char, char)>;

/// A set of code points that no pattern distinguishes.
#[derive(Debug)]
pub(super) struct Block {
    /// Its most readable member.
    pub(super) character: char,
    /// Indices of the classes that contain the block.
    classes: BTreeSet<u32>,
}

/// All code points as blocks, the most readable first.
#[derive(Debug)]
pub(super) struct Alphabet {
    pub(super) blocks: Vec<Block>,
    ids: BTreeMap<Ranges, u32>,
}

impl Alphabet {
    /// The coarsest partition that distinguishes these classes.
    pub(super) fn new(classes: impl IntoIterator<Item = Ranges>, budget: &mut Budget) -> Result<Self, Exhausted> {
        let mut ids: BTreeMap<Ranges, u32> = BTreeMap::new();
        // Where classes begin and end.
        let mut edges: BTreeMap<u32, Vec<u32>> = BTreeMap::from([(0, Vec::new())]);
        for class in classes {
            spend(budget, 1 + class.len() as u64)?;
            let next = u32::try_from(ids.len()).map_err(|_| Exhausted)?;
            if ids.contains_key(&class) {
                continue;
            }
            for (first, last) in &class {
                edges.entry(u32::from(*first)).or_default().push(next);
                edges.entry(u32::from(*last) + 1).or_default().push(next);
            }
            ids.insert(class, next);
        }
        let mut blocks: BTreeMap<Vec<u32>, char> = BTreeMap::new();
        let mut open = BTreeSet::new();
        let ends: Vec<u32> = edges.keys().skip(1).copied().chain([u32::from(char::MAX) + 1]).collect();
        for ((first, classes), end) in edges.into_iter().zip(ends) {
            for class in classes {
                if !open.remove(&class) {
                    open.insert(class);
                }
            }
            spend(budget, 1 + open.len() as u64)?;
            let Some(character) = best(first, end) else { continue };
            let shown = blocks.entry(open.iter().copied().collect()).or_insert(character);
            *shown = std::cmp::min_by_key(*shown, character, |character| rank(*character));
        }
        let mut blocks: Vec<Block> = blocks
            .into_iter()
            .map(|(classes, character)| Block { character, classes: classes.into_iter().collect() })
            .collect();
        blocks.sort_by_key(|block| rank(block.character));
        Ok(Self { blocks, ids })
    }

    /// The block of a code point that forms a class of its own.
    pub(super) fn block_of(&self, character: char) -> Option<usize> {
        let id = self.ids.get(&vec![(character, character)])?;
        self.blocks.iter().position(|block| block.classes.contains(id))
    }

    /// For each block, whether the class contains it.
    fn holds(&self, class: &Ranges) -> Vec<bool> {
        let id = self.ids.get(class);
        self.blocks.iter().map(|block| id.is_some_and(|id| block.classes.contains(id))).collect()
    }
}

/// A lower rank reads better in a message.
fn rank(character: char) -> (u8, char) {
    let group = match character {
        'a'..='z' => 0,
        '0'..='9' => 1,
        'A'..='Z' => 2,
        '-' | '.' | '_' | '/' | ':' => 3,
        '!'..='~' => 4,
        ' ' => 5,
        _ if character.is_alphanumeric() => 6,
        _ if character.is_control() => 8,
        _ => 7,
    };
    (group, character)
}

/// The most readable code point from `first` up to, not including, `end`; `None` if all are surrogates.
fn best(first: u32, end: u32) -> Option<char> {
    // ASCII, and some others that fonts contain.
    let shown = (first..end.min(0x80)).chain(['é', 'ß', 'λ', 'я', '中', '€', '😀'].map(u32::from));
    let from = |first: u32| first..end.min(first.saturating_add(32));
    shown
        .filter(|code| (first..end).contains(code))
        .chain(from(first))
        .chain(from(first.max(0xe000)))
        .filter_map(char::from_u32)
        .min_by_key(|character| rank(*character))
}

pub(super) fn spend(budget: &mut Budget, steps: u64) -> Result<(), Exhausted> {
    if budget.spend(steps) { Ok(()) } else { Err(Exhausted) }
}

pub(super) type StateId = u32;

const UNKNOWN: StateId = StateId::MAX;

#[derive(Debug)]
struct State {
    place: Progress,
    /// Whether a string that ends here matches.
    ends: bool,
}

/// A deterministic automaton of a pattern over the blocks of an alphabet.
#[derive(Debug)]
pub(super) struct Automaton<'p> {
    runner: Runner<'p>,
    /// Whether a class contains a block, by class and block.
    holds: Vec<Vec<bool>>,
    kinds: Vec<Kind>,
    states: Vec<State>,
    /// Transitions: a row per state, a column per block.
    next: Vec<StateId>,
    /// Numbers of the states, found by their place in the program.
    ids: HashTable<StateId>,
    hasher: DefaultHashBuilder,
    /// Whether a match may begin after the start of the string.
    begins_later: bool,
}

impl<'p> Automaton<'p> {
    pub(super) const START: StateId = 0;

    pub(super) fn new(program: &'p Program, alphabet: &Alphabet, budget: &mut Budget) -> Result<Self, Exhausted> {
        spend(budget, (program.classes.len() * alphabet.blocks.len() + program.instructions.len()) as u64)?;
        let mut runner = Runner::new(program);
        let start = runner.start();
        let mut automaton = Self {
            begins_later: runner.begins_later(),
            runner,
            holds: program.classes.iter().map(|class| alphabet.holds(class)).collect(),
            kinds: alphabet.blocks.iter().map(|block| Kind::of(block.character)).collect(),
            states: Vec::new(),
            next: Vec::new(),
            ids: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        automaton.state(start, budget)?;
        Ok(automaton)
    }

    fn state(&mut self, place: Progress, budget: &mut Budget) -> Result<StateId, Exhausted> {
        let Self { states, ids, hasher, .. } = self;
        let hash = hasher.hash_one(&place);
        if let Some(id) = ids.find(hash, |id| states[*id as usize].place == place) {
            return Ok(*id);
        }
        spend(budget, self.kinds.len() as u64)?;
        let id = StateId::try_from(states.len()).map_err(|_| Exhausted)?;
        let ends = self.runner.ends(&place);
        states.push(State { place, ends });
        ids.insert_unique(hash, id, |id| hasher.hash_one(&states[*id as usize].place));
        self.next.resize(self.next.len() + self.kinds.len(), UNKNOWN);
        Ok(id)
    }

    /// Whether a string that ends in this state matches.
    pub(super) fn ends(&self, state: StateId) -> bool {
        self.states[state as usize].ends
    }

    /// Whether every continuation from this state matches.
    pub(super) fn is_found(&self, state: StateId) -> bool {
        self.states[state as usize].place == Progress::Found
    }

    /// Whether no continuation from this state matches.
    pub(super) fn is_hopeless(&self, state: StateId) -> bool {
        !self.begins_later
            && matches!(&self.states[state as usize].place, Progress::Waiting(waiting, _) if waiting.is_empty())
    }

    pub(super) fn step(&mut self, state: StateId, block: usize, budget: &mut Budget) -> Result<StateId, Exhausted> {
        let index = state as usize * self.kinds.len() + block;
        if self.next[index] != UNKNOWN {
            return Ok(self.next[index]);
        }
        let from = &self.states[state as usize];
        let holds = &self.holds;
        let place = self.runner.step(&from.place, self.kinds[block], |class| holds[class as usize][block]);
        spend(budget, 1 + self.runner.take_work())?;
        let next = self.state(place, budget)?;
        self.next[index] = next;
        Ok(next)
    }
}
