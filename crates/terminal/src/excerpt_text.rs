//! The input lines that a finding is about, with the field underlined.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use pushback_manifest::excerpt::Excerpt;
use pushback_objects::Severity;

use crate::escape::terminal_safe;
use crate::theme::Theme;

/// Blanks before the bar: the number of digits of the largest line number.
#[must_use]
pub fn margin(excerpt: &Excerpt) -> usize {
    (excerpt.first_line as usize + excerpt.lines.len()).saturating_sub(1).to_string().len()
}

/// The numbered lines with `label` at the field. The label must be safe to print.
#[must_use]
pub fn excerpt_text(excerpt: &Excerpt, label: Option<&str>, severity: Severity, theme: Theme, width: u16) -> String {
    let mut source = String::new();
    let mut span = 0..0;
    for (index, line) in excerpt.lines.iter().enumerate() {
        if index + 1 < excerpt.lines.len() {
            source += &safe(line);
            source.push('\n');
            continue;
        }
        // Escapes are longer than the original: measure the field as shown.
        let part = |skip: usize, take: usize| safe(&line.chars().skip(skip).take(take).collect::<String>());
        source += &part(0, excerpt.start);
        let start = source.len();
        source += &part(excerpt.start, excerpt.length);
        span = start..source.len();
        source += &part(excerpt.start + excerpt.length, usize::MAX);
    }
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let mut annotation = AnnotationKind::Primary.span(span);
    if let Some(label) = label {
        annotation = annotation.label(label);
    }
    let snippet = Snippet::source(source).line_start(excerpt.first_line as usize).fold(false).annotation(annotation);
    let renderer = if theme.color { Renderer::styled() } else { Renderer::plain() };
    let lines = renderer.term_width(usize::from(width)).render(&[Group::with_level(level).element(snippet)]);
    lines.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn safe(line: &str) -> String {
    terminal_safe(&line.replace('\t', "    ")).into_owned()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::escape::is_hidden;

    fn excerpt(lines: &[&str], start: usize, length: usize) -> Excerpt {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Excerpt { first_line: 99, lines, start, length }
    }

    #[test]
    fn the_field_is_underlined_also_behind_wide_and_hidden_characters() {
        let shown = |text: &str, start, length| {
            excerpt_text(&excerpt(&["spec:", text], start, length), None, Severity::Error, Theme::plain(), 120)
        };
        assert_snapshot!(shown("  scope: Cluster", 2, 14), @"
            |
         99 | spec:
        100 |   scope: Cluster
            |   ^^^^^^^^^^^^^^
        ");
        assert_snapshot!(shown("  \"画像\": x", 2, 7), @r#"
            |
         99 | spec:
        100 |   "画像": x
            |   ^^^^^^^^^
        "#);
        assert_snapshot!(shown("\t{\u{202e}a: \u{1b}[2J}", 3, 7), @r"
            |
         99 | spec:
        100 |     {\u{202e}a: \u{1b}[2J}
            |              ^^^^^^^^^^^^
        ");
        assert_eq!(margin(&excerpt(&["a", "b"], 0, 1)), 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn hostile_lines_neither_break_it_nor_get_through(
            lines in prop::collection::vec("[^\n]{0,60}", 1..4), start in 0_usize..70, length in 1_usize..70,
        ) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let text = excerpt_text(&excerpt(&lines, start, length), Some("a → b"), Severity::Warning, Theme::plain(), 120);
            prop_assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
        }
    }
}
