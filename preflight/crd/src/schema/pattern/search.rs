//! Looks for strings: a breadth-first walk through the product of automata, so that the shortest come first. Which
//! states can be reached by so many code points repeats at some point; that is how long strings are decided without
//! walking to them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::automaton::{Alphabet, Automaton, Exhausted, Ranges, StateId, spend};
use super::{Budget, Language};

/// Longer strings are not written.
const LONGEST: u64 = 100_000;

/// What a new state of the product costs beyond the step to it.
const STATE: u64 = 10;

const OVER_BUDGET: &str = "the patterns are too complex to be compared";

impl From<Exhausted> for String {
    fn from(_: Exhausted) -> Self {
        OVER_BUDGET.to_owned()
    }
}

/// What to look for beside the language itself.
pub(super) struct Search {
    /// So many strings.
    pub(super) count: usize,
    /// Classes that are to be told apart beyond need.
    pub(super) apart: Vec<Ranges>,
    /// Only so many states of each length are followed. Reaches far where there are many, and proves nothing.
    pub(super) width: Option<usize>,
}

/// Puts strings of the language into `strings`, the shortest first; there are no more where fewer come, nothing is
/// wrong and the width is not limited.
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
    // The depth that is being reached, and how many nodes it has.
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

/// What the walk beyond the least length has reached.
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

/// The states that are reached by exactly so many code points, up to the least length.
struct Layers {
    layers: Vec<Vec<Step>>,
    least: u64,
    /// From the first layer on, the layers repeat after the second.
    cycle: Option<(usize, usize)>,
}

/// A state, and one way to it from the layer before.
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

    /// The layer of that number: an equal set of states, and ways from the layer before.
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

    /// A way back to the start from a state of the last layer.
    fn path(&self, mut state: StateId, blocks: &mut Vec<usize>) {
        for number in (1..=self.least).rev() {
            let layer = self.layer(number);
            let Ok(index) = layer.binary_search_by_key(&state, |step| step.state) else { return };
            blocks.push(layer[index].block);
            state = layer[index].before;
        }
    }
}

/// Strings that are not wanted, by their blocks.
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

/// All patterns at once.
struct Product<'p> {
    matching: Vec<Automaton<'p>>,
    avoiding: Vec<Automaton<'p>>,
    trie: Trie,
    blocks: usize,
    /// States of the automata in their order, and the node of the trie.
    states: Vec<Box<[u32]>>,
    ids: HashMap<Box<[u32]>, StateId>,
    /// Whether a string of the language goes on from a state, where that is known for all.
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
            live: None,
        })
    }

    /// Finds out from which states a string of the language goes on, if a quarter of the budget is enough to see all:
    /// a walk of some length would visit the others once for each length.
    fn prune(&mut self, budget: &mut Budget) -> Result<bool, Exhausted> {
        let share = budget.left() / 4;
        let mut own = Budget::new(share);
        self.live = self.find_live(&mut own).ok();
        spend(budget, share - own.left())?;
        Ok(self.live.is_some())
    }

    fn find_live(&mut self, budget: &mut Budget) -> Result<Vec<bool>, Exhausted> {
        // Every state so far was reached from the start, and so is every one that is added.
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
        let mut start = vec![Automaton::START; self.matching.len() + self.avoiding.len()];
        start.push(Trie::ROOT);
        self.state(start.into(), budget)
    }

    /// None where no string of the language goes on from there.
    fn state(&mut self, states: Box<[u32]>, budget: &mut Budget) -> Result<Option<StateId>, Exhausted> {
        let (matching, avoiding) = states.split_at(self.matching.len());
        let lost = self.matching.iter().zip(matching).any(|(automaton, state)| automaton.is_hopeless(*state))
            || self.avoiding.iter().zip(avoiding).any(|(automaton, state)| automaton.is_found(*state));
        if lost {
            return Ok(None);
        }
        if let Some(id) = self.ids.get(&states) {
            return Ok(Some(*id).filter(|id| self.is_live(*id)));
        }
        // For the memory that is kept.
        spend(budget, STATE)?;
        let id = StateId::try_from(self.states.len()).map_err(|_| Exhausted)?;
        self.ids.insert(states.clone(), id);
        self.states.push(states);
        Ok(Some(id))
    }

    fn step(&mut self, state: StateId, block: usize, budget: &mut Budget) -> Result<Option<StateId>, Exhausted> {
        let mut states = self.states[state as usize].clone();
        spend(budget, 1 + states.len() as u64)?;
        for (automaton, state) in self.matching.iter_mut().chain(&mut self.avoiding).zip(&mut states) {
            *state = automaton.step(*state, block, budget)?;
        }
        if let Some(node) = states.last_mut() {
            *node = self.trie.step(*node, block);
        }
        self.state(states, budget)
    }

    fn accepts(&self, state: StateId) -> bool {
        let states = &self.states[state as usize];
        let (matching, rest) = states.split_at(self.matching.len());
        self.matching.iter().zip(matching).all(|(automaton, state)| automaton.ends(*state))
            && !self.avoiding.iter().zip(rest).any(|(automaton, state)| automaton.ends(*state))
            && !states.last().is_some_and(|node| self.trie.ends.contains(node))
    }
}
