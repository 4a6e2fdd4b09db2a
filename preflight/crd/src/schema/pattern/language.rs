//! Questions about sets of strings: is there one that matches these patterns and not those, so long at least and at
//! most? Answered by a string, by a proof that there is none, or not at all.

use super::automaton::Ranges;
use super::search::{Search, search};
use super::{Budget, Pattern};

/// All strings that match every one of `matching` and none of `avoiding`, are `least..=most` code points long, and are
/// none of `except`.
#[derive(Clone, Debug, Default)]
pub struct Language<'a> {
    /// What a string must match.
    pub matching: Vec<&'a Pattern>,
    /// What it must not match.
    pub avoiding: Vec<&'a Pattern>,
    /// The least length, in code points.
    pub least: u64,
    /// The greatest length, in code points.
    pub most: Option<u64>,
    /// Strings that do not count.
    pub except: Vec<&'a str>,
}

/// The greatest length that an example of it is made for.
const LONG: u64 = 4096;

/// How many states of each length are followed where all are too many.
const WIDTH: usize = 32;

/// What was found in a language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A string of it: of the shortest one that reads well, as a rule.
    String(String),
    /// Proof that it has none.
    Empty,
    /// Neither, and why.
    Undecided(String),
}

impl Language<'_> {
    /// A string of the language, if there is one.
    pub fn example(&self, budget: &mut Budget) -> Found {
        let mut strings = Vec::new();
        let searched = self.search(1, Vec::new(), &mut strings, budget);
        match (strings.pop(), searched) {
            (Some(string), _) => self.checked(string),
            (None, Ok(())) => Found::Empty,
            (None, Err(reason)) => Found::Undecided(reason),
        }
    }

    /// Up to `count` different strings of the language, for trying out. Short ones of different kinds of characters
    /// come first; the last is a long one if there is any.
    pub fn examples(&self, count: usize, budget: &mut Budget) -> Vec<String> {
        let apart = vec![vec![('a', 'z')], vec![('A', 'Z')], vec![('0', '9')], vec![('\0', '\x7f')]];
        let mut strings = Vec::new();
        // What was found before the budget ended is good all the same.
        let _ = self.search(count, apart, &mut strings, budget);
        let longest = strings.last().map(|string| string.chars().count() as u64);
        let least = self.most.filter(|most| *most <= LONG).or(longest.map(|length| length + 8));
        if let Some(least) = least.filter(|least| longest.is_some_and(|longest| longest < *least)) {
            let mut long = Vec::new();
            let _ = Self { least, ..self.clone() }.search(1, Vec::new(), &mut long, budget);
            if strings.len() == count && !long.is_empty() {
                strings.pop();
            }
            strings.append(&mut long);
        }
        strings
    }

    /// Searches all there is, and where that is too much for three quarters of the budget, a part of it.
    fn search(
        &self,
        count: usize,
        apart: Vec<Ranges>,
        strings: &mut Vec<String>,
        budget: &mut Budget,
    ) -> Result<(), String> {
        let share = budget.left() - budget.left() / 4;
        let mut exact = Budget::new(share);
        let searched = search(self, Search { count, apart, width: None }, strings, &mut exact);
        budget.spend(share - exact.left());
        if searched.is_err() && strings.is_empty() {
            // Whatever it comes to, the reason stays that of the whole search.
            let _ = search(self, Search { count, apart: Vec::new(), width: Some(WIDTH) }, strings, budget);
        }
        searched
    }

    /// The string if the patterns themselves say so too.
    fn checked(&self, string: String) -> Found {
        let all = |patterns: &[&Pattern], wanted| patterns.iter().all(|one| one.try_match(&string) == Some(wanted));
        if all(&self.matching, true) && all(&self.avoiding, false) {
            Found::String(string)
        } else {
            Found::Undecided("the strings that are left are too long to be checked".to_owned())
        }
    }
}
