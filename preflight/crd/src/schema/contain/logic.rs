//! Constraints under `and` and `or`, some of them on what is known by its text only: taken apart way by way, without those ways
//! that contradict themselves, into a formula for the search.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::formula::Formula;
use super::outcome::Outcome;
use super::solve::Solver;
use super::types::Types;
use crate::schema::cel::Order;

/// Ways to hold all claims of one question that are looked at.
const MOST_WAYS: usize = 200;
/// Steps that it may take to look for them.
const MOST_STEPS: usize = 5_000;
/// How deep lists in lists are looked into.
const MOST_DEPTH: usize = 4;

/// Constraints on one value under `and` and `or`.
#[derive(Clone, Debug)]
pub(super) enum Logic<'f> {
    All(Vec<Logic<'f>>),
    Any(Vec<Logic<'f>>),
    Plain(Formula<'f>),
    /// Something that is known by its text only.
    Held(String, Test),
    /// Of the items of the list at this path, or the keys of the map, some are like this, or all.
    Items {
        path: &'f [String],
        keys: bool,
        some: bool,
        inner: Box<Logic<'f>>,
    },
}

/// A constraint on a value that is known by its text: whether it compares so with a number, or is an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) order: Order,
    pub(super) number: f64,
    pub(super) holds: bool,
    pub(super) or_error: bool,
    pub(super) range: Range,
}

/// What numbers a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    Real,
    /// Not-a-number too, with which no comparison but `!=` is true.
    Any,
}

/// A value at a path, which is there and not null.
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

    /// As a formula, where it is about fields alone.
    fn plain(&self) -> Option<Formula<'f>> {
        let each = |parts: &[Self]| parts.iter().map(Self::plain).collect::<Option<Vec<_>>>();
        match self {
            Self::Plain(formula) => Some(formula.clone()),
            Self::All(parts) => each(parts).map(Formula::All),
            Self::Any(parts) => each(parts).map(Formula::Any),
            Self::Held(..) | Self::Items { .. } => None,
        }
    }

    /// What it looks at: the first fields of paths, and texts.
    pub(super) fn subjects(&self, into: &mut BTreeSet<String>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.subjects(into)),
            Self::Plain(formula) => formula_subjects(formula, &mut String::new(), into),
            Self::Held(text, _) => {
                into.insert(text.clone());
            }
            Self::Items { path, .. } => {
                into.insert(path.iter().fold(String::new(), |text, name| format!("{text}/{name}")));
            }
        }
    }

    /// A formula that every value meets which meets this; `None` where it takes too long to find one. No ways at all are
    /// the proof that there is no such value.
    pub(super) fn formula(self, solver: &mut Solver) -> Option<Formula<'f>> {
        formula_of(self, &mut Budget { ways: MOST_WAYS, steps: MOST_STEPS, solver }, 0)
    }
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
    solver: &'b mut Solver,
}

/// One way to meet some logic, as far as it is chosen.
#[derive(Clone, Default)]
struct Way<'f> {
    formulas: Vec<Formula<'f>>,
    held: BTreeMap<String, Vec<Test>>,
    /// By list or map: what some item or key is like, each, and what all are.
    items: BTreeMap<(&'f [String], bool), [Vec<Logic<'f>>; 2]>,
}

fn formula_of<'f>(logic: Logic<'f>, budget: &mut Budget<'_>, depth: usize) -> Option<Formula<'f>> {
    let mut found = Vec::new();
    ways(vec![logic], Way::default(), &mut found, budget, depth)?;
    Some(Formula::Any(found))
}

/// All ways without a contradiction that shows.
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
            Logic::Any(parts) => match Logic::Any(parts.clone()).plain() {
                Some(formula) => way.formulas.push(formula),
                None => choices.push(parts),
            },
        }
    }
    let Some(choice) = choices.pop() else {
        budget.ways = budget.ways.checked_sub(1)?;
        found.extend(settled(way, budget, depth)?);
        return Some(());
    };
    let rest: Vec<Logic<'f>> = choices.into_iter().map(Logic::Any).collect();
    for part in choice {
        let open = rest.iter().cloned().chain([part]).collect();
        ways(open, way.clone(), found, budget, depth)?;
    }
    Some(())
}

/// The formula of a way in which everything is chosen; nothing where lists contradict themselves.
#[expect(clippy::option_option, reason = "nothing to be found is not the same as no answer")]
fn settled<'f>(way: Way<'f>, budget: &mut Budget<'_>, depth: usize) -> Option<Option<Formula<'f>>> {
    let mut formulas = way.formulas;
    for ((path, keys), [wanted, always]) in way.items {
        if depth == MOST_DEPTH {
            continue;
        }
        for some in wanted {
            // What all items are like, this one is like too.
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

/// A map with such a key, by an example, or with any; `None` where no text is like this.
fn keyed<'f>(key: Formula<'f>, budget: &mut Budget<'_>) -> Option<Formula<'f>> {
    match budget.solver.search(vec![Formula::Types(Types::STRING), key]) {
        Outcome::Empty => None,
        Outcome::Found(Value::String(key)) => {
            Some(Formula::Any(vec![Formula::has(&key, Formula::anything()), Formula::HasAtLeast(1)]))
        }
        _ => Some(Formula::HasAtLeast(1)),
    }
}

/// Whether some value, or an error, passes all tests. It is enough to try the numbers they name and some between and
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
        // One by one, and as far away as makes a difference among large numbers.
        let far = 1.0 + number.abs();
        [number - 1.0, number + 1.0, number - far, number + far]
    });
    let no_number = std::iter::once(f64::NAN).filter(|_| !is(Range::Whole) && !is(Range::Real));
    let mut samples = numbers.iter().copied().chain(between).chain(beside).chain(no_number);
    samples.any(|sample| tests.iter().all(|test| test.order.holds(sample, test.number) == test.holds))
}
