//! Colours and glyphs, always next to a word: they carry no meaning alone. Text passed to a theme must be safe to
//! print.

use console::Style;
use pushback_objects::Severity;
use pushback_preflight::Operation;

/// Styling of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used.
    pub color: bool,
    /// Whether non-ASCII glyphs are used.
    pub unicode: bool,
}

/// Form of findings and causes in a text.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colours and glyphs.
    pub theme: Theme,
    /// Columns of the output.
    pub width: u16,
    /// Set if every finding is shown.
    pub verbose: bool,
}

/// Meaning of a piece of text; the theme decides on its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Created, added, done.
    Good,
    /// Updated, warned.
    Caution,
    /// Deleted, failed, refused.
    Bad,
    /// Replaced.
    Replaced,
    /// Hints, paths, positions.
    Pointer,
    /// Unchanged, secondary.
    Quiet,
    /// Headings.
    Strong,
}

/// The user's choice of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// If a terminal shows them and the environment does not disable them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Theme {
    /// The default for a stream: `NO_COLOR` and `CLICOLOR_FORCE` as their sites define them, glyphs in a UTF-8 locale.
    /// `environment` looks up a variable.
    #[must_use]
    pub fn detect(choice: ColorChoice, is_terminal: bool, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
                set("NO_COLOR").is_none() && (forced || (is_terminal && !matches!(term.as_str(), "" | "dumb")))
            }
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name));
        // Without a locale, use glyphs only on systems that are UTF-8 throughout.
        let utf8 = locale.map_or(cfg!(any(windows, target_os = "macos")), |locale| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        // The Linux console's font lacks them.
        Self { color, unicode: utf8 && term != "linux" }
    }

    /// Without colour, ASCII only.
    #[must_use]
    pub fn plain() -> Self {
        Self::default()
    }

    /// Styles text by its role.
    #[must_use]
    pub fn paint(self, role: Role, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let style = Style::new().force_styling(true);
        let style = match role {
            Role::Good => style.green(),
            Role::Caution => style.yellow(),
            Role::Bad => style.red(),
            Role::Replaced => style.magenta(),
            Role::Pointer => style.cyan(),
            Role::Quiet => style.dim(),
            Role::Strong => style.bold(),
        };
        style.apply_to(text).to_string()
    }

    /// Picks the glyph or its ASCII substitute.
    #[must_use]
    pub fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }

    /// `→` between old and new.
    #[must_use]
    pub fn arrow(self) -> &'static str {
        self.glyph("→", "->")
    }

    /// `…` in place of omitted text.
    #[must_use]
    pub fn ellipsis(self) -> &'static str {
        self.glyph("…", "...")
    }

    /// Branch in front of a line that belongs to the one above.
    #[must_use]
    pub fn branch(self) -> &'static str {
        self.glyph("└", "`-")
    }
}

/// Glyph and role of an operation.
#[must_use]
pub fn operation_look(operation: Operation, theme: Theme) -> (&'static str, Role) {
    match operation {
        Operation::Create => ("+", Role::Good),
        Operation::Update => ("~", Role::Caution),
        Operation::Replace => (theme.glyph("±", "-/+"), Role::Replaced),
        Operation::Delete => ("-", Role::Bad),
        Operation::Noop | Operation::Exists => ("=", Role::Quiet),
    }
}

/// Role of a severity.
#[must_use]
pub fn severity_role(severity: Severity) -> Role {
    match severity {
        Severity::Error => Role::Bad,
        Severity::Warning => Role::Caution,
        Severity::Info => Role::Pointer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables<'a> = &'a [(&'a str, &'a str)];

    fn detected(choice: ColorChoice, is_terminal: bool, variables: Variables<'_>) -> (bool, bool) {
        let environment =
            |name: &str| variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned());
        let theme = Theme::detect(choice, is_terminal, &environment);
        (theme.color, theme.unicode)
    }

    #[test]
    fn colours_follow_choice_then_environment_then_terminal() {
        let utf8 = ("LANG", "en_US.UTF-8");
        let xterm = ("TERM", "xterm");
        let cases: [(ColorChoice, bool, Variables<'_>, bool); 8] = [
            (ColorChoice::Auto, true, &[utf8, xterm], true),
            (ColorChoice::Auto, false, &[utf8, xterm], false),
            (ColorChoice::Auto, true, &[utf8, ("TERM", "dumb")], false),
            (ColorChoice::Auto, true, &[utf8, xterm, ("NO_COLOR", "1")], false),
            (ColorChoice::Auto, true, &[utf8, xterm, ("NO_COLOR", "")], true),
            (ColorChoice::Auto, false, &[utf8, ("CLICOLOR_FORCE", "1")], true),
            (ColorChoice::Always, false, &[utf8, ("NO_COLOR", "1")], true),
            (ColorChoice::Never, true, &[utf8, xterm, ("CLICOLOR_FORCE", "1")], false),
        ];
        for (choice, is_terminal, variables, color) in cases {
            assert_eq!(
                detected(choice, is_terminal, variables),
                (color, true),
                "{choice:?} {is_terminal} {variables:?}"
            );
        }
    }

    #[test]
    fn glyphs_follow_the_locale() {
        let unicode = |variables: Variables<'_>| detected(ColorChoice::Auto, true, variables).1;
        assert!(unicode(&[("LC_ALL", ""), ("LANG", "C.utf8")]));
        assert!(!unicode(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(!unicode(&[("TERM", "linux"), ("LANG", "en_US.UTF-8")]));
    }

    #[test]
    fn without_colour_nothing_is_added_to_text() {
        assert_eq!(Theme::plain().paint(Role::Bad, "error"), "error");
        assert_eq!(Theme { color: true, unicode: true }.paint(Role::Bad, "error"), "\u{1b}[31merror\u{1b}[0m");
    }
}
