//! Searches for strings by a breadth-first walk through the product of automata, shortest first. The sets of states
//! reachable at each length eventually repeat, which decides long strings without walking to them.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::automaton::{Alphabet, Automaton, Exhausted, Ranges, StateId, spend};
use super::{Budget, Language};

/// Maximum length of a generated string.
const LONGEST: u64 = 100_000;

/// Cost of a new product state, in addition to the step to it.
const STATE: u64 = 10;

const OVER_BUDGET: &str = "the patterns are too complex to be compared";

impl From<Exhausted> for String {
    fn from(_: Exhausted) -> Self {
        OVER_BUDGET.to_owned()
    }
}

/// Parameters of a search besides the language.
pub(super) struct Search {
    /// How many strings to find.
    pub(super) count: usize,
    /// Additional classes to distinguish, for variety.
    pub(super) apart: Vec<Ranges>,
    /// Maximum number of states followed per length. A limit reaches long strings quickly, but proves nothing.
    pub(super) width: Option<usize>,
}

/// Adds strings of the language to `strings`, shortest first. If there are fewer than requested, without an error or a
/// width limit, there are no more.
pub(super) fn search(
    language: &Language<'_>,
    Search { count, apart, width }: Search,
    strings: &mut Vec<String>,
    budget: &mut Budget,
) -> Result<(), String> {
    let width = width.unwrap_or(usize::MAX);
    if language.most.is_some_and(|most| most < language.least) {
        return Ok(());
    }
    let alphabet = alphabet(language, apart, budget)?;
    let mut product = Product::new(language, &alphabet, budget)?;
    let Some(start) = product.start(budget)? else { return Ok(()) };
    if language.least > 0 && width == usize::MAX && product.prune(budget)? && !product.is_live(start) {
        return Ok(());
    }
    let layers = Layers::walk(&mut product, start, language.least, width, budget)?;

    let mut nodes: Vec<Node> = layers.last().iter().map(|step| Node::root(step.state)).collect();
    let mut visits: HashMap<StateId, usize> = nodes.iter().map(|node| (node.state, 1)).collect();
    let mut index = 0;
    // The current depth, and its number of nodes.
    let mut deepest = (0, 0);
    while let Some(&Node { state, depth, .. }) = nodes.get(index) {
        if product.accepts(state) {
            if language.least + depth > LONGEST {
                return Err(format!("only strings of more than {LONGEST} characters are left"));
            }
            strings.push(write(&nodes, index, &layers, &alphabet));
            if strings.len() >= count {
                return Ok(());
            }
        }
        if language.most.is_none_or(|most| language.least + depth < most) {
            for block in 0..alphabet.blocks.len() {
                let Some(state) = product.step(state, block, budget)? else { continue };
                let visits = visits.entry(state).or_default();
                if deepest.0 <= depth {
                    deepest = (depth + 1, 0);
                }
                if *visits < count && deepest.1 < width {
                    *visits += 1;
                    deepest.1 += 1;
                    nodes.push(Node { state, depth: depth + 1, from: Some((index, block)) });
                }
            }
        }
        index += 1;
    }
    Ok(())
}

/// A node of the walk beyond the minimum length.
struct Node {
    state: StateId,
    depth: u64,
    from: Option<(usize, usize)>,
}

impl Node {
    fn root(state: StateId) -> Self {
        Self { state, depth: 0, from: None }
    }
}

fn write(nodes: &[Node], mut index: usize, layers: &Layers, alphabet: &Alphabet) -> String {
    let mut blocks = Vec::new();
    while let Some((from, block)) = nodes[index].from {
        blocks.push(block);
        index = from;
    }
    layers.path(nodes[index].state, &mut blocks);
    blocks.into_iter().rev().map(|block| alphabet.blocks[block].character).collect()
}

fn alphabet(language: &Language<'_>, apart: Vec<Ranges>, budget: &mut Budget) -> Result<Alphabet, Exhausted> {
    let mut classes = apart;
    for pattern in language.matching.iter().chain(&language.avoiding) {
        classes.extend(pattern.program.distinctions());
    }
    let characters: HashSet<char> = language.except.iter().flat_map(|text| text.chars()).collect();
    let mut characters: Vec<char> = characters.into_iter().collect();
    characters.sort_unstable();
    classes.extend(characters.into_iter().map(|character| vec![(character, character)]));
    Alphabet::new(classes, budget)
}

/// The states reachable by each exact length, up to the minimum length.
struct Layers {
    layers: Vec<Vec<Step>>,
    least: u64,
    /// From the first layer, the layers repeat after the second.
    cycle: Option<(usize, usize)>,
}

/// A state, with one transition to it from the previous layer.
struct Step {
    state: StateId,
    before: StateId,
    block: usize,
}

impl Layers {
    fn walk(
        product: &mut Product<'_>,
        start: StateId,
        least: u64,
        width: usize,
        budget: &mut Budget,
    ) -> Result<Self, Exhausted> {
        let mut layers = vec![vec![Step { state: start, before: start, block: 0 }]];
        let mut seen: HashMap<Vec<StateId>, usize> = HashMap::new();
        let mut cycle = None;
        for number in 0_usize.. {
            let layer = &layers[number];
            if number as u64 == least || layer.is_empty() {
                break;
            }
            spend(budget, layer.len() as u64)?;
            if let Some(first) = seen.insert(layer.iter().map(|step| step.state).collect(), number) {
                cycle = Some((first, number));
                break;
            }
            let mut next = BTreeMap::new();
            for step in layer {
                for block in 0..product.blocks {
                    if let Some(state) = product.step(step.state, block, budget)? {
                        next.entry(state).or_insert(Step { state, before: step.state, block });
                    }
                }
            }
            layers.push(next.into_values().take(width).collect());
        }
        Ok(Self { layers, least, cycle })
    }

    /// The layer for this length: the same set of states, with transitions from the previous layer.
    fn layer(&self, number: u64) -> &[Step] {
        let index = match self.cycle {
            Some((first, second)) if number > second as u64 => {
                let (first, second) = (first as u64, second as u64);
                first + 1 + (number - first - 1) % (second - first)
            }
            _ => number,
        };
        usize::try_from(index).ok().and_then(|index| self.layers.get(index)).map_or(&[], Vec::as_slice)
    }

    fn last(&self) -> &[Step] {
        self.layer(self.least)
    }

    /// The blocks on a path from the start to a state of the last layer, in reverse.
    fn path(&self, mut state: StateId, blocks: &mut Vec<usize>) {
        for number in (1..=self.least).rev() {
            let layer = self.layer(number);
            let Ok(index) = layer.binary_search_by_key(&state, |step| step.state) else { return };
            blocks.push(layer[index].block);
            state = layer[index].before;
        }
    }
}

/// The excluded strings as a trie over blocks.
#[derive(Default)]
struct Trie {
    children: HashMap<(u32, usize), u32>,
    ends: HashSet<u32>,
}

impl Trie {
    const ROOT: u32 = 0;
    const OFF: u32 = u32::MAX;

    fn new(texts: &[&str], alphabet: &Alphabet, budget: &mut Budget) -> Result<Self, Exhausted> {
        let mut trie = Self::default();
        let mut blocks: HashMap<char, usize> = HashMap::new();
        let mut size = 0;
        for text in texts {
            let mut node = Self::ROOT;
            for character in text.chars() {
                spend(budget, 1)?;
                let block = match blocks.get(&character) {
                    Some(block) => *block,
                    None => {
                        spend(budget, alphabet.blocks.len() as u64)?;
                        let block = alphabet.block_of(character).ok_or(Exhausted)?;
                        blocks.insert(character, block);
                        block
                    }
                };
                node = *trie.children.entry((node, block)).or_insert_with(|| {
                    size += 1;
                    size
                });
            }
            trie.ends.insert(node);
        }
        Ok(trie)
    }

    fn step(&self, node: u32, block: usize) -> u32 {
        self.children.get(&(node, block)).copied().unwrap_or(Self::OFF)
    }
}

/// The product automaton of all patterns.
struct Product<'p> {
    matching: Vec<Automaton<'p>>,
    avoiding: Vec<Automaton<'p>>,
    trie: Trie,
    blocks: usize,
    /// The state of each automaton, in order, and the node of the trie.
    states: Vec<Box<[u32]>>,
    ids: HashMap<Box<[u32]>, StateId>,
    /// The states that the last step reached, before they are looked up. Its memory is reused.
    reached: Vec<u32>,
    /// Whether a string of the language is reachable from each state, once known for all.
    live: Option<Vec<bool>>,
}

impl<'p> Product<'p> {
    fn new(language: &Language<'p>, alphabet: &Alphabet, budget: &mut Budget) -> Result<Self, Exhausted> {
        let mut automata = |patterns: &[&'p super::Pattern]| {
            patterns.iter().map(|pattern| Automaton::new(&pattern.program, alphabet, budget)).collect::<Result<_, _>>()
        };
        Ok(Self {
            matching: automata(&language.matching)?,
            avoiding: automata(&language.avoiding)?,
            trie: Trie::new(&language.except, alphabet, budget)?,
            blocks: alphabet.blocks.len(),
            states: Vec::new(),
            ids: HashMap::new(),
            reached: Vec::new(),
            live: None,
        })
    }

    /// Computes from which states a string of the language is reachable, if a quarter of the budget suffices to visit
    /// all: a bounded walk would visit dead states once per length.
    fn prune(&mut self, budget: &mut Budget) -> Result<bool, Exhausted> {
        let share = budget.left() / 4;
        let mut own = Budget::new(share);
        self.live = self.find_live(&mut own).ok();
        spend(budget, share - own.left())?;
        Ok(self.live.is_some())
    }

    fn find_live(&mut self, budget: &mut Budget) -> Result<Vec<bool>, Exhausted> {
        // Every state so far is reachable from the start, and so is every new one.
        let mut before: Vec<Vec<StateId>> = Vec::new();
        let mut state = 0;
        while (state as usize) < self.states.len() {
            for block in 0..self.blocks {
                if let Some(next) = self.step(state, block, budget)? {
                    before.resize_with(before.len().max(next as usize + 1), Vec::new);
                    before[next as usize].push(state);
                }
            }
            state += 1;
        }
        let mut live = vec![false; self.states.len()];
        let mut stack: Vec<StateId> = (0..state).filter(|state| self.accepts(*state)).collect();
        while let Some(state) = stack.pop() {
            if !std::mem::replace(&mut live[state as usize], true) {
                stack.extend(before.get(state as usize).into_iter().flatten());
            }
        }
        Ok(live)
    }

    fn is_live(&self, state: StateId) -> bool {
        self.live.as_ref().is_none_or(|live| live.get(state as usize).copied().unwrap_or(true))
    }

    fn start(&mut self, budget: &mut Budget) -> Result<Option<StateId>, Exhausted> {
        self.reached = vec![Automaton::START; self.matching.len() + self.avoiding.len()];
        self.reached.push(Trie::ROOT);
        self.state(budget)
    }

    /// The product state of the reached states; `None` if no string of the language is reachable from it.
    fn state(&mut self, budget: &mut Budget) -> Result<Option<StateId>, Exhausted> {
        let (matching, avoiding) = self.reached.split_at(self.matching.len());
        let lost = self.matching.iter().zip(matching).any(|(automaton, state)| automaton.is_hopeless(*state))
            || self.avoiding.iter().zip(avoiding).any(|(automaton, state)| automaton.is_found(*state));
        if lost {
            return Ok(None);
        }
        if let Some(id) = self.ids.get(self.reached.as_slice()) {
            return Ok(Some(*id).filter(|id| self.is_live(*id)));
        }
        // Charges for the memory.
        spend(budget, STATE)?;
        let id = StateId::try_from(self.states.len()).map_err(|_| Exhausted)?;
        let states: Box<[u32]> = self.reached.as_slice().into();
        self.ids.insert(states.clone(), id);
        self.states.push(states);
        Ok(Some(id))
    }

    fn step(&mut self, state: StateId, block: usize, budget: &mut Budget) -> Result<Option<StateId>, Exhausted> {
        let states = &self.states[state as usize];
        spend(budget, 1 + states.len() as u64)?;
        self.reached.clear();
        for (automaton, state) in self.matching.iter_mut().chain(&mut self.avoiding).zip(states) {
            self.reached.push(automaton.step(*state, block, budget)?);
        }
        if let Some(node) = states.last() {
            self.reached.push(self.trie.step(*node, block));
        }
        self.state(budget)
    }

    fn accepts(&self, state: StateId) -> bool {
        let states = &self.states[state as usize];
        let (matching, rest) = states.split_at(self.matching.len());
        self.matching.iter().zip(matching).all(|(automaton, state)| automaton.ends(*state))
            && !self.avoiding.iter().zip(rest).any(|(automaton, state)| automaton.ends(*state))
            && !states.last().is_some_and(|node| self.trie.ends.contains(node))
    }
}
