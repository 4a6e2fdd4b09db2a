//! Questions about sets of strings: is there one that matches these patterns and not those, so long at least and at
//! most? Answered by a string, by a proof that there is none, or not at all.

use super::automaton::Ranges;
use super::search::search;
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

/// What was found in a language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A string of it: of the shortest one that reads well.
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
        let searched = search(self, Vec::new(), 1, &mut strings, budget);
        match (strings.pop(), searched) {
            (Some(string), _) => self.checked(string),
            (None, Ok(())) => Found::Empty,
            (None, Err(reason)) => Found::Undecided(reason),
        }
    }

    /// Up to `count` different strings of the language, for trying out. Short ones of different kinds of characters
    /// come first; the last is a long one if there is any.
    pub fn examples(&self, count: usize, budget: &mut Budget) -> Vec<String> {
        let apart: Vec<Ranges> = vec![vec![('a', 'z')], vec![('A', 'Z')], vec![('0', '9')], vec![('\0', '\x7f')]];
        let mut strings = Vec::new();
        // What was found before the budget ended is good all the same.
        let _ = search(self, apart, count, &mut strings, budget);
        let longest = strings.last().map(|string| string.chars().count() as u64);
        let least = self.most.filter(|most| *most <= LONG).or(longest.map(|length| length + 8));
        if let Some(least) = least.filter(|least| longest.is_some_and(|longest| longest < *least)) {
            let mut long = Vec::new();
            let _ = search(&Self { least, ..self.clone() }, Vec::new(), 1, &mut long, budget);
            if strings.len() == count && !long.is_empty() {
                strings.pop();
            }
            strings.append(&mut long);
        }
        strings
    }

    /// The string if the patterns themselves say so too.
    fn checked(&self, string: String) -> Found {
        let matches = |pattern: &&Pattern| pattern.is_match(&string);
        if self.matching.iter().all(matches) && !self.avoiding.iter().any(matches) {
            Found::String(string)
        } else {
            Found::Undecided("the comparison of the patterns contradicts itself".to_owned())
        }
    }
}
