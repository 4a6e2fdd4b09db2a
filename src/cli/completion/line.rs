//! The command line that is being typed, as a shell hands it over: its words, and which of them is to be completed.

use std::ffi::{OsStr, OsString};

/// A command line without the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Words, the program first.
    pub(super) words: Vec<OsString>,
    /// The one that is completed.
    pub(super) index: usize,
    /// What bash leaves alone at the start of that word.
    pub(super) kept: OsString,
}

impl Line {
    /// The line as other shells than bash give it.
    pub(super) fn plain(words: Vec<OsString>, index: Option<usize>) -> Self {
        let last = words.len().saturating_sub(1);
        Self { index: index.unwrap_or(last).min(last), words, kept: OsString::new() }
    }

    /// The line as bash gives it: it takes `=` and `:` for words of their own, and replaces only what follows the last of them.
    pub(super) fn of_bash(pieces: Vec<OsString>, index: usize) -> Self {
        let mut line = Self::default();
        let mut joins = false;
        for (at, piece) in pieces.into_iter().enumerate() {
            let separates =
                !piece.is_empty() && piece.as_encoded_bytes().iter().all(|byte| matches!(byte, b'=' | b':'));
            let continues = (separates || joins) && line.words.len() > 1;
            // What follows the cursor is another word: only what is before it is completed.
            if continues
                && at <= index
                && let Some(word) = line.words.last_mut()
            {
                if at == index {
                    line.kept.clone_from(word);
                }
                word.push(&piece);
            } else {
                line.words.push(piece);
            }
            if at == index {
                line.index = line.words.len() - 1;
            }
            joins = separates;
        }
        line
    }

    /// The words without the one that is completed, and without the option whose value it is: neither can be read yet.
    pub(super) fn complete_words(&self) -> Vec<OsString> {
        let is_option =
            |word: &OsStr| word.as_encoded_bytes().starts_with(b"-") && !word.as_encoded_bytes().contains(&b'=');
        let of_value = (self.index > 1 && is_option(&self.words[self.index - 1])).then(|| self.index - 1);
        let words = self.words.iter().enumerate();
        words.filter(|(at, _)| *at != self.index && Some(*at) != of_value).map(|(_, word)| word.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[test]
    fn words_that_bash_has_cut_are_whole_again() {
        let line = Line::of_bash(words(&["pushback", "check", "--cluster", "dir", ":", "live", "-a", "sh"]), 7);
        assert_eq!(line.words, words(&["pushback", "check", "--cluster", "dir:live", "-a", "sh"]));
        assert_eq!((line.index, line.kept.to_str()), (5, Some("")));
        let line = Line::of_bash(words(&["pushback", "check", "--app", "=", "sh"]), 4);
        assert_eq!(line.words, words(&["pushback", "check", "--app=sh"]));
        assert_eq!((line.index, line.kept.to_str()), (2, Some("--app=")));
        assert_eq!(Line::of_bash(words(&["pushback", ""]), 1).index, 1);
        assert_eq!(Line::of_bash(words(&[":", "="]), 1).words.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_yet_is_left_out() {
        let line = Line::plain(words(&["pushback", "-y", "inspect", "-a", ""]), None);
        assert_eq!(line.complete_words(), words(&["pushback", "-y", "inspect"]));
        let line = Line::plain(words(&["pushback", "rules", "Re"]), Some(9));
        assert_eq!(line.complete_words(), words(&["pushback", "rules"]));
    }
}
