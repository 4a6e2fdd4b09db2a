//! Patterns as the API server reads them: the grammar of RE2, and the sets of strings that they name.
//!
//! The grammar is that of Go's `regexp/syntax` with Perl flags (Go 1.26, Unicode 15.0), not that of the `regex` crate:
//! the two differ in both directions. A pattern is searched for, so `b` matches `abc`. Strings are sequences of code
//! points.

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

/// Steps of one match: several for each character of the largest text that an object may hold.
const MATCH: u64 = 20_000_000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    program: Program,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The API server would refuse it, or it is too large; `PatternError::refused` says which.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let program = Program::compile(&parser::parse(text)?);
        Ok(Self { text: text.to_owned(), program })
    }

    /// As `parse`; what was read before on this thread is not read again.
    ///
    /// # Errors
    /// As `parse`.
    pub fn shared(text: &str) -> Result<Rc<Self>, PatternError> {
        thread_local! {
            static READ: Shared<String, Result<Rc<Pattern>, PatternError>> = Shared::new();
        }
        READ.with(|read| read.get(text.to_owned(), |text| Self::parse(text).map(Rc::new)))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern occurs in a short text. Takes memory for the pattern only; time is at worst the length of
    /// the text times the size of the pattern.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.is_match_within(text, &mut Budget::unlimited()).unwrap_or(false)
    }

    /// Where the pattern first matches at or behind a byte of the text, as Go finds it.
    ///
    /// # Errors
    /// The budget ends first, or the pattern is one whose first match is not known here: one that repeats lazily, or
    /// that repeats what may be empty.
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

    /// As `is_match` for a text of any length; `None` where the answer would take too long.
    #[must_use]
    pub fn try_match(&self, text: &str) -> Option<bool> {
        self.is_match_within(text, &mut Budget::new(MATCH))
    }

    /// As `try_match`; `None` where the budget ends before the answer is known.
    pub fn is_match_within(&self, text: &str, budget: &mut Budget) -> Option<bool> {
        Runner::new(&self.program).is_match(text, budget)
    }
}

/// Whether something in the pattern looks like a lazy repetition or the flag that makes all of them lazy.
fn may_be_lazy(pattern: &str) -> bool {
    let lazy = ["*?", "+?", "??", "}?"].iter().any(|repetition| pattern.contains(repetition));
    let mut groups = pattern.split("(?").skip(1);
    lazy || groups.any(|group| group.split([':', ')']).next().is_some_and(|flags| flags.contains('U')))
}
