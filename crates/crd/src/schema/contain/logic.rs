//! Constraints combined by `and` and `or`, some on terms known only by their text: split into alternatives, dropping
//! contradictory ones, and turned into a formula for the search.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::formula::Formula;
use super::outcome::Outcome;
use super::solve::Solver;
use super::types::Types;
use crate::schema::cel::Order;

/// Maximum number of alternatives examined for one question.
const MOST_WAYS: usize = 200;
/// Maximum number of steps to find them.
const MOST_STEPS: usize = 5_000;
/// Maximum number of constraints that are copied or examined in these steps.
const MOST_COPIES: u64 = 200_000;
/// Maximum depth of nested lists that is examined.
const MOST_DEPTH: usize = 4;

/// Constraints on one value, combined by `and` and `or`.
#[derive(Clone, Debug)]
pub(super) enum Logic<'f> {
    All(Vec<Logic<'f>>),
    Any(Vec<Logic<'f>>),
    Plain(Formula<'f>),
    /// The first of two terms known by their texts is less than the second; or equal, unless that is ruled out.
    Ordered(String, String, bool),
    /// A term known only by its text passes the test.
    Held(String, Test),
    /// Some or all items of the list at this path, or keys of the map, satisfy the inner constraints.
    Items {
        path: &'f [String],
        keys: bool,
        some: bool,
        inner: Box<Logic<'f>>,
    },
}

/// A constraint on a term known by its text: how it compares with a number, or that it is an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) order: Order,
    pub(super) number: f64,
    pub(super) holds: bool,
    pub(super) or_error: bool,
    pub(super) range: Range,
}

/// Which numbers a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    Real,
    /// Includes NaN, for which no comparison except `!=` is true.
    Any,
}

/// The formula of a value at a path, present and not null.
pub(super) fn at<'f>(path: &[String], formula: Formula<'f>) -> Formula<'f> {
    path.iter()
        .rev()
        .fold(formula, |inner, name| Formula::has(name, Formula::All(vec![Formula::Types(Types::NULL.not()), inner])))
}

impl<'f> Logic<'f> {
    pub(super) fn anything() -> Self {
        Self::All(Vec::new())
    }

    pub(super) fn nothing() -> Self {
        Self::Any(Vec::new())
    }

    /// The formula of these constraints, if they concern only fields.
    fn plain(&self) -> Option<Formula<'f>> {
        match self {
            Self::Plain(formula) => Some(formula.clone()),
            Self::All(parts) => parts.iter().map(Self::plain).collect::<Option<Vec<_>>>().map(Formula::All),
            Self::Any(parts) => any_plain(parts),
            Self::Held(..) | Self::Ordered(..) | Self::Items { .. } => None,
        }
    }

    /// The number of its parts.
    fn size(&self) -> u64 {
        match self {
            Self::All(parts) | Self::Any(parts) => 1 + parts.iter().map(Self::size).sum::<u64>(),
            Self::Plain(formula) => formula.weight(),
            Self::Held(..) | Self::Ordered(..) => 1,
            Self::Items { inner, .. } => 1 + inner.size(),
        }
    }

    /// The subjects that it concerns: the first fields of paths, and texts.
    pub(super) fn subjects(&self, into: &mut BTreeSet<String>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.subjects(into)),
            Self::Plain(formula) => formula_subjects(formula, &mut String::new(), into),
            Self::Held(text, _) => {
                into.insert(text.clone());
            }
            Self::Ordered(lesser, greater, _) => into.extend([lesser.clone(), greater.clone()]),
            Self::Items { path, .. } => {
                into.insert(path.iter().fold(String::new(), |text, name| format!("{text}/{name}")));
            }
        }
    }

    /// A formula that every value satisfying this also satisfies; `None` if finding one takes too long. If there are no
    /// alternatives, no such value exists.
    pub(super) fn formula(self, solver: &mut Solver) -> Option<Formula<'f>> {
        let mut budget = Budget { ways: MOST_WAYS, steps: MOST_STEPS, copies: MOST_COPIES, solver };
        let formula = formula_of(self, &mut budget, 0);
        let copied = MOST_COPIES - budget.copies;
        solver.spend_outside(copied).then_some(formula).flatten()
    }
}

/// The formula that one of these constraints holds, if all concern only fields.
fn any_plain<'f>(parts: &[Logic<'f>]) -> Option<Formula<'f>> {
    parts.iter().map(Logic::plain).collect::<Option<Vec<_>>>().map(Formula::Any)
}

fn formula_subjects(formula: &Formula<'_>, path: &mut String, into: &mut BTreeSet<String>) {
    match formula {
        Formula::All(inner) | Formula::Any(inner) => {
            inner.iter().for_each(|formula| formula_subjects(formula, path, into));
        }
        Formula::Has(name, inner) => {
            let length = path.len();
            path.push('/');
            path.push_str(name);
            into.insert(path.clone());
            formula_subjects(inner, path, into);
            path.truncate(length);
        }
        Formula::Lacks(name) => {
            into.insert(format!("{path}/{name}"));
        }
        _ => {
            into.insert(path.clone());
        }
    }
}

struct Budget<'b> {
    ways: usize,
    steps: usize,
    copies: u64,
    solver: &'b mut Solver,
}

/// One alternative, as far as it has been chosen.
#[derive(Clone, Default)]
struct Way<'f> {
    formulas: Vec<Formula<'f>>,
    held: BTreeMap<String, Vec<Test>>,
    ordered: Vec<(String, String, bool)>,
    /// By list or map: constraints on some item or key, one each, and those on all.
    items: BTreeMap<(&'f [String], bool), [Vec<Logic<'f>>; 2]>,
}

impl Way<'_> {
    fn size(&self) -> u64 {
        let items = self.items.values().flatten().flatten().map(Logic::size).sum::<u64>();
        let others = self.held.values().map(Vec::len).sum::<usize>() + self.ordered.len();
        self.formulas.iter().map(Formula::weight).sum::<u64>() + items + others as u64
    }
}

fn formula_of<'f>(logic: Logic<'f>, budget: &mut Budget<'_>, depth: usize) -> Option<Formula<'f>> {
    let mut found = Vec::new();
    ways(vec![logic], Way::default(), &mut found, budget, depth)?;
    Some(Formula::Any(found))
}

/// All alternatives without an obvious contradiction.
fn ways<'f>(
    mut open: Vec<Logic<'f>>,
    mut way: Way<'f>,
    found: &mut Vec<Formula<'f>>,
    budget: &mut Budget<'_>,
    depth: usize,
) -> Option<()> {
    budget.steps = budget.steps.checked_sub(1)?;
    let mut choices = Vec::new();
    while let Some(logic) = open.pop() {
        match logic {
            Logic::All(parts) => open.extend(parts),
            Logic::Plain(formula) => way.formulas.push(formula),
            Logic::Ordered(lesser, greater, strict) => {
                way.ordered.push((lesser, greater, strict));
                if is_circular(&way.ordered) {
                    return Some(());
                }
            }
            Logic::Held(text, test) => {
                let tests = way.held.entry(text).or_default();
                tests.push(test);
                if !can_hold(tests) {
                    return Some(());
                }
            }
            Logic::Items { path, keys, some, inner } => {
                let [wanted, always] = way.items.entry((path, keys)).or_default();
                if some { wanted.push(*inner) } else { always.push(*inner) }
            }
            Logic::Any(parts) if parts.len() == 1 => open.extend(parts),
            Logic::Any(parts) => {
                budget.copies = budget.copies.checked_sub(parts.iter().map(Logic::size).sum())?;
                match any_plain(&parts) {
                    Some(formula) => way.formulas.push(formula),
                    None => choices.push(parts),
                }
            }
        }
    }
    let Some(choice) = choices.pop() else {
        budget.ways = budget.ways.checked_sub(1)?;
        found.extend(settled(way, budget, depth)?);
        return Some(());
    };
    let rest: Vec<Logic<'f>> = choices.into_iter().map(Logic::Any).collect();
    let size = rest.iter().map(Logic::size).sum::<u64>() + way.size();
    for part in choice {
        budget.copies = budget.copies.checked_sub(size)?;
        let open = rest.iter().cloned().chain([part]).collect();
        ways(open, way.clone(), found, budget, depth)?;
    }
    Some(())
}

/// The formula of a fully chosen alternative; `Some(None)` if its lists are contradictory.
#[expect(clippy::option_option, reason = "nothing to be found is not the same as no answer")]
fn settled<'f>(way: Way<'f>, budget: &mut Budget<'_>, depth: usize) -> Option<Option<Formula<'f>>> {
    let mut formulas = way.formulas;
    for ((path, keys), [wanted, always]) in way.items {
        if depth == MOST_DEPTH {
            continue;
        }
        for some in wanted {
            // Constraints on all items hold for this one too.
            let item = Logic::All(always.iter().cloned().chain([some]).collect());
            match formula_of(item, budget, depth + 1)? {
                Formula::Any(ways) if ways.is_empty() => return Some(None),
                key if keys => match keyed(key, budget) {
                    Some(map) => formulas.push(at(path, map)),
                    None => return Some(None),
                },
                item => formulas.push(at(path, Formula::HasItem(Box::new(item)))),
            }
        }
    }
    Some(Some(Formula::All(formulas)))
}

/// A map with a matching key, given by example or any; `None` if no text matches.
fn keyed<'f>(key: Formula<'f>, budget: &mut Budget<'_>) -> Option<Formula<'f>> {
    match budget.solver.search(vec![Formula::Types(Types::STRING), key]) {
        Outcome::Empty => None,
        Outcome::Found(Value::String(key)) => {
            Some(Formula::Any(vec![Formula::has(&key, Formula::anything()), Formula::HasAtLeast(1)]))
        }
        _ => Some(Formula::HasAtLeast(1)),
    }
}

/// Most orders that are examined together.
const MOST_ORDERS: usize = 32;

/// Whether something would have to be less than itself.
fn is_circular(ordered: &[(String, String, bool)]) -> bool {
    if ordered.len() > MOST_ORDERS {
        return false;
    }
    // What is at least as great as a term, and whether it is greater.
    let reached = |start: &str| {
        let mut found: BTreeMap<&str, bool> = BTreeMap::new();
        let mut open = vec![(start, false)];
        while let Some((term, is_greater)) = open.pop() {
            for (_, greater, strict) in ordered.iter().filter(|(lesser, ..)| lesser == term) {
                let is_greater = is_greater || *strict;
                if found.get(greater.as_str()).is_none_or(|known| is_greater && !known) {
                    found.insert(greater, is_greater);
                    open.push((greater, is_greater));
                }
            }
        }
        found
    };
    ordered.iter().any(|(lesser, ..)| reached(lesser).get(lesser.as_str()) == Some(&true))
}

/// Whether some value, or an error, passes all tests. It suffices to try the numbers they name, and some between and
/// beyond them.
fn can_hold(tests: &[Test]) -> bool {
    if tests.iter().all(|test| test.or_error) {
        return true;
    }
    let mut numbers: Vec<f64> = tests.iter().map(|test| test.number).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let is = |range: Range| tests.iter().any(|test| test.range == range);
    let whole = is(Range::Whole) && numbers.iter().all(|number| number.fract() == 0.0);
    let between = numbers.windows(2).map(|pair| pair[0] / 2.0 + pair[1] / 2.0).filter(|_| !whole);
    let beside = numbers.iter().flat_map(|number| {
        // One apart, and far enough apart to differ among large numbers.
        let far = 1.0 + number.abs();
        [number - 1.0, number + 1.0, number - far, number + far]
    });
    let no_number = std::iter::once(f64::NAN).filter(|_| !is(Range::Whole) && !is(Range::Real));
    let mut samples = numbers.iter().copied().chain(between).chain(beside).chain(no_number);
    samples.any(|sample| tests.iter().all(|test| test.order.holds(sample, test.number) == test.holds))
}
