//! Errors, warnings and hints as text: `error: …` in lower case, with the position in front and hints below.

use pushback_manifest::InputError;
use pushback_objects::Position;

use crate::escape::{terminal_safe, terminal_safe_lines};
use crate::theme::{Role, Theme};

/// `error: message` with further lines indented, then one `hint: …` line each.
#[must_use]
pub fn error_text(message: &str, hints: &[String], theme: Theme) -> String {
    labelled("error", Role::Bad, message, theme) + &hints_text(hints, theme)
}

/// All errors of an input, each with its position. A hint that several share is printed once, at the end.
#[must_use]
pub fn input_errors_text(errors: &[InputError], theme: Theme) -> String {
    let mut text = String::new();
    for (index, error) in errors.iter().enumerate() {
        text += &labelled("error", Role::Bad, &error.to_string(), theme);
        let said_later = |hint: &&String| errors[index + 1..].iter().any(|later| later.hints.contains(hint));
        let hints: Vec<String> = error.hints.iter().filter(|hint| !said_later(hint)).cloned().collect();
        text += &hints_text(&hints, theme);
    }
    text
}

/// `warning: file:line:column: message`.
#[must_use]
pub fn warning_text(message: &str, position: Option<&Position>, theme: Theme) -> String {
    let message = match position {
        Some(position) => format!("{position}: {message}"),
        None => message.to_owned(),
    };
    labelled("warning", Role::Caution, &message, theme)
}

/// `note: …`.
#[must_use]
pub fn note_text(message: &str, theme: Theme) -> String {
    labelled("note", Role::Quiet, message, theme)
}

/// One `hint: …` line each.
#[must_use]
pub fn hints_text(hints: &[String], theme: Theme) -> String {
    hints.iter().map(|hint| labelled("hint", Role::Pointer, hint, theme)).collect()
}

/// `label: text`; further lines are indented, so that none passes for a message of its own.
#[must_use]
pub fn labelled(label: &str, role: Role, text: &str, theme: Theme) -> String {
    let safe = terminal_safe_lines(text.trim_end());
    let mut lines = safe.lines();
    let mut result = format!("{} {}\n", theme.paint(role, &format!("{label}:")), lines.next().unwrap_or_default());
    for line in lines {
        result += &format!("  {line}\n");
    }
    result
}

/// A position, safe to print.
#[must_use]
pub fn place(position: &Position) -> String {
    terminal_safe(&position.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn input_error(line: u32, message: &str, hint: &str) -> InputError {
        InputError {
            message: message.to_owned(),
            position: Position { file: "shop/web.yaml".to_owned(), line, column: 5 },
            hints: vec![hint.to_owned()],
        }
    }

    #[test]
    fn every_input_error_has_its_place_and_a_shared_hint_is_said_once() {
        let errors = [
            input_error(3, "metadata.name is missing", "every object needs kind, apiVersion and metadata.name"),
            input_error(12, "tab used for indentation", "use blanks"),
            input_error(30, "kind is missing", "every object needs kind, apiVersion and metadata.name"),
        ];
        assert_snapshot!(input_errors_text(&errors, Theme::plain()), @"
        error: shop/web.yaml:3:5: metadata.name is missing
        error: shop/web.yaml:12:5: tab used for indentation
        hint: use blanks
        error: shop/web.yaml:30:5: kind is missing
        hint: every object needs kind, apiVersion and metadata.name
        ");
    }

    #[test]
    fn a_message_cannot_fake_a_line_of_its_own() {
        let text = error_text(
            "cannot apply: the server said\nerror: all is well\n\u{1b}[2Jhint: trust me",
            &[],
            Theme::plain(),
        );
        assert_snapshot!(text, @r"
        error: cannot apply: the server said
          error: all is well
          \u{1b}[2Jhint: trust me
        ");
    }

    #[test]
    fn a_warning_names_its_place() {
        let position = Position { file: "a.yaml".to_owned(), line: 17, column: 22 };
        assert_eq!(
            warning_text("0644 is read as 420", Some(&position), Theme::plain()),
            "warning: a.yaml:17:22: 0644 is read as 420\n"
        );
    }
}
