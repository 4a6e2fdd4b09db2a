//! Decides questions about sets of strings: is there one that matches these patterns and not those, with a length
//! within bounds? The answer is a string, the proof that there is none, or undecided.

use super::automaton::Ranges;
use super::search::{Search, search};
use super::{Budget, Pattern};

/// All strings that match every pattern in `matching` and none in `avoiding`, are `least..=most` code points long, and
/// are not in `except`.
#[derive(Clone, Debug, Default)]
pub struct Language<'a> {
    /// Patterns that a string must match.
    pub matching: Vec<&'a Pattern>,
    /// Patterns that it must not match.
    pub avoiding: Vec<&'a Pattern>,
    /// Minimum length, in code points.
    pub least: u64,
    /// Maximum length, in code points.
    pub most: Option<u64>,
    /// Excluded strings.
    pub except: Vec<&'a str>,
}

/// Maximum length of a generated example.
const LONG: u64 = 4096;

/// Number of states followed per length if there are too many to follow all.
const WIDTH: usize = 32;

/// The result of a search in a language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A string of the language, usually the most readable of the shortest.
    String(String),
    /// Proved: the language is empty.
    Empty,
    /// Neither, with the reason.
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

    /// Up to `count` distinct strings of the language to try. Short ones with different kinds of characters come first;
    /// the last is a long one, if there is any.
    pub fn examples(&self, count: usize, budget: &mut Budget) -> Vec<String> {
        let apart = vec![vec![('a', 'z')], vec![('A', 'Z')], vec![('0', '9')], vec![('\0', '\x7f')]];
        let mut strings = Vec::new();
        // Strings found before the budget was exhausted remain valid.
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

    /// Searches the whole language; if that takes more than three quarters of the budget, only a part of it.
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
            // The reported reason remains that of the full search.
            let _ = search(self, Search { count, apart: Vec::new(), width: Some(WIDTH) }, strings, budget);
        }
        searched
    }

    /// The string, if the patterns themselves confirm it.
    fn checked(&self, string: String) -> Found {
        let all = |patterns: &[&Pattern], wanted| patterns.iter().all(|one| one.try_match(&string) == Some(wanted));
        if all(&self.matching, true) && all(&self.avoiding, false) {
            Found::String(string)
        } else {
            Found::Undecided("the strings that are left are too long to be checked".to_owned())
        }
    }
}
