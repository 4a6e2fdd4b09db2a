//! Patterns as the API server parses them: the RE2 grammar, and the sets of strings that patterns match.
//!
//! The grammar is that of Go's `regexp/syntax` with Perl flags (Go 1.26, Unicode 15.0), not that of the `regex` crate:
//! each accepts patterns that the other rejects. Matching is unanchored, so `b` matches `abc`. Strings are sequences of
//! code points.

mod automaton;
mod budget;
mod classes;
mod error;
mod find;
mod formats;
mod language;
mod parser;
mod program;
mod search;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use error::PatternError;
pub use find::NotFound;
pub use formats::of_format;
pub use language::{Found, Language};

use std::rc::Rc;

use super::shared::Shared;
use program::{Program, Runner};

/// Maximum number of steps of one match: several for each character of the largest string that an object can hold.
const MATCH: u64 = 20_000_000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    program: Program,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If the API server would reject it, or if it is too large; `PatternError::refused` tells which.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let program = Program::compile(&parser::parse(text)?);
        Ok(Self { text: text.to_owned(), program })
    }

    /// Like `parse`, but caches parsed patterns per thread.
    ///
    /// # Errors
    /// As for `parse`.
    pub fn shared(text: &str) -> Result<Rc<Self>, PatternError> {
        thread_local! {
            static READ: Shared<String, Result<Rc<Pattern>, PatternError>> = Shared::new();
        }
        READ.with(|read| read.get(text.to_owned(), |text| Self::parse(text).map(Rc::new)))
    }

    /// The source text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches a short string. Memory depends only on the pattern; the time is at most proportional
    /// to the length of the string times the size of the pattern.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.is_match_within(text, &mut Budget::unlimited()).unwrap_or(false)
    }

    /// The first match at or after byte `from`, as Go finds it.
    ///
    /// # Errors
    /// If the budget is exhausted, or the first match is unknown because the pattern contains a lazy repetition or
    /// repeats something that may be empty.
    pub fn find_within(
        &self,
        text: &str,
        from: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>, NotFound> {
        if may_be_lazy(&self.text) || find::has_empty_round(&self.program) {
            return Err(NotFound::Unsupported);
        }
        find::find(&self.program, text, from, budget)
    }

    /// Like `is_match`, for a string of any length; `None` if it takes too long.
    #[must_use]
    pub fn try_match(&self, text: &str) -> Option<bool> {
        self.is_match_within(text, &mut Budget::new(MATCH))
    }

    /// Like `try_match`, with a budget; `None` if it is exhausted.
    pub fn is_match_within(&self, text: &str, budget: &mut Budget) -> Option<bool> {
        Runner::new(&self.program).is_match(text, budget)
    }
}

/// Whether the pattern seems to contain a lazy repetition, or the flag that makes all repetitions lazy.
fn may_be_lazy(pattern: &str) -> bool {
    let lazy = ["*?", "+?", "??", "}?"].iter().any(|repetition| pattern.contains(repetition));
    let mut groups = pattern.split("(?").skip(1);
    lazy || groups.any(|group| group.split([':', ')']).next().is_some_and(|flags| flags.contains('U')))
}
