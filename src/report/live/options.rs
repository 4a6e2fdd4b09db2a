//! How a run is shown: what the user chose, and what suits where it goes.
//! Resolved before the first event.

use crate::report::theme::Theme;

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A person at a terminal: rows that move.
    Tty,
    /// A log: a line for each change of state.
    Plain,
    /// A program: one JSON object a line.
    Json,
}

impl Format {
    /// What suits where progress goes: rows that move only on a terminal that can do that and that somebody watches.
    /// `ci` and `term` are the environment variables `CI` and `TERM`.
    #[must_use]
    pub fn detect(is_terminal: bool, ci: Option<&str>, term: Option<&str>) -> Self {
        let in_ci = ci.is_some_and(|value| !matches!(value, "" | "0" | "false"));
        if in_ci { Self::Plain } else { Self::tty_where_possible(is_terminal, term) }
    }

    /// Rows that move, as asked for; lines where there is nothing on which they could.
    #[must_use]
    pub fn tty_where_possible(is_terminal: bool, term: Option<&str>) -> Self {
        let dumb = matches!(term, None | Some("" | "dumb"));
        if is_terminal && !dumb { Self::Tty } else { Self::Plain }
    }
}

/// How changes inside objects are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffStyle {
    /// A line a field.
    #[default]
    Fields,
    /// As unified text, where the plan carries it.
    Text,
    /// Not at all.
    None,
}

/// What the user chose about the output. Secrets are masked before they reach an event, so there is no choice here.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// Colours and glyphs of progress.
    pub theme: Theme,
    /// Colours and glyphs of data, which may go to a file while progress goes to a terminal.
    pub data_theme: Theme,
    /// Nothing is cut, and what is normally passed over is told.
    pub verbose: bool,
    /// Changes inside objects.
    pub diff: DiffStyle,
    /// Rows and columns of the terminal; `None` asks it each time, so that it may be resized.
    pub size: Option<(u16, u16)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_move_only_on_a_watched_terminal_that_can() {
        let cases = [
            (true, None, Some("xterm-256color"), Format::Tty),
            (true, Some("false"), Some("xterm"), Format::Tty),
            (true, Some("true"), Some("xterm"), Format::Plain),
            (true, None, Some("dumb"), Format::Plain),
            (true, None, None, Format::Plain),
            (false, None, Some("xterm"), Format::Plain),
        ];
        for (is_terminal, ci, term, expected) in cases {
            assert_eq!(Format::detect(is_terminal, ci, term), expected, "{is_terminal} {ci:?} {term:?}");
        }
    }

    #[test]
    fn rows_that_were_asked_for_become_lines_where_they_cannot_move() {
        assert_eq!(Format::tty_where_possible(true, Some("xterm")), Format::Tty);
        assert_eq!(Format::tty_where_possible(false, Some("xterm")), Format::Plain);
        assert_eq!(Format::tty_where_possible(true, Some("dumb")), Format::Plain);
    }
}
