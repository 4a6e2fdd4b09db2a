//! How a run is shown: the user's choices, and defaults that suit the streams. Resolved before the first event.

use crate::theme::{Look, Theme};

/// Format of a run's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a person at a terminal: rows that move.
    Tty,
    /// For a log: a line for each change of state.
    Plain,
    /// For a program: one JSON object per line.
    Json,
}

impl Format {
    /// The default format for the progress stream: moving rows only on a capable terminal that somebody watches. `ci`
    /// and `term` are the environment variables `CI` and `TERM`.
    #[must_use]
    pub fn detect(is_terminal: bool, ci: Option<&str>, term: Option<&str>) -> Self {
        let in_ci = ci.is_some_and(|value| !matches!(value, "" | "0" | "false"));
        if in_ci { Self::Plain } else { Self::tty_where_possible(is_terminal, term) }
    }

    /// Moving rows as requested, or lines if the stream cannot show them.
    #[must_use]
    pub fn tty_where_possible(is_terminal: bool, term: Option<&str>) -> Self {
        let dumb = matches!(term, None | Some("" | "dumb"));
        if is_terminal && !dumb { Self::Tty } else { Self::Plain }
    }
}

/// How changes within objects are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffStyle {
    /// One line per field.
    #[default]
    Fields,
    /// As a unified diff, if the plan has one.
    Text,
    /// Not at all.
    None,
}

/// The user's output options. Secrets are masked before they reach an event, so there is no option for that.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// Colours and glyphs for progress.
    pub theme: Theme,
    /// Colours and glyphs for data, which may go to a file while progress goes to a terminal.
    pub data_theme: Theme,
    /// Whether to print values in full, and messages that are normally hidden.
    pub verbose: bool,
    /// How changes within objects are shown.
    pub diff: DiffStyle,
    /// Rows and columns of the terminal; `None`: query it each time, since it may be resized.
    pub size: Option<(u16, u16)>,
    /// Columns of the terminal that data goes to, or those that the user has set; `None` if it goes elsewhere.
    pub data_columns: Option<u16>,
}

/// Columns of data that goes to no terminal.
pub const WIDTH: u16 = 100;

impl RenderOptions {
    /// Columns of data.
    #[must_use]
    pub fn data_width(&self) -> u16 {
        self.data_columns.unwrap_or(WIDTH)
    }

    /// Columns that names are shortened to; `None` if they stay whole: a log is searched for them.
    #[must_use]
    pub fn names_fit(&self) -> Option<usize> {
        self.data_columns.filter(|_| !self.verbose).map(usize::from)
    }

    /// How findings are shown.
    #[must_use]
    pub fn look(&self) -> Look {
        Look { theme: self.data_theme, width: self.data_width(), verbose: self.verbose }
    }
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
