//! Untrusted text in Markdown: it creates no markup, link or mention.

use super::escape::terminal_safe;
use super::words::shorten;

/// Most bytes of a comment: safe for hosts that count characters and for those that count bytes.
pub const LIMIT: usize = 65_536;

/// Text in a code span, in which no host interprets markup, `@user`, `#1` or addresses.
#[must_use]
pub fn code(text: &str, limit: usize) -> String {
    span(&shorten(&terminal_safe(text), limit, "…"))
}

/// One line of text: words that a host could interpret stand in code spans.
#[must_use]
pub fn prose(text: &str, limit: usize) -> String {
    let text = shorten(&terminal_safe(text), limit, "…");
    quoted_prose(&text).unwrap_or_else(|| words_in_spans(&text))
}

/// Prose whose quotations between single backticks become code spans; `None` if its backticks are no such pairs.
fn quoted_prose(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('`').collect();
    let is_quotation = |part: &&str| !part.is_empty() && part.trim() == *part;
    if parts.len() < 3 || parts.len().is_multiple_of(2) || !parts.iter().skip(1).step_by(2).all(is_quotation) {
        return None;
    }
    let shown = parts.iter().enumerate().map(|(number, part)| match number % 2 {
        1 => span(part),
        _ => words_in_spans(part),
    });
    let shown: Vec<String> = shown.collect();
    // Two spans side by side would be read as one.
    let touches = shown.windows(2).any(|pair| pair[0].ends_with('`') && pair[1].starts_with('`'));
    (!touches).then(|| shown.concat())
}

fn words_in_spans(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let runs = words.chunk_by(|one, next| is_plain(one) == is_plain(next));
    let shown = runs.map(|run| if is_plain(run[0]) { run.join(" ") } else { span(&run.join(" ")) });
    shown.collect::<Vec<_>>().join(" ")
}

/// Code spans and prose as a cell of a table, in which a bar would end the cell even within a code span.
#[must_use]
pub fn cell(markdown: &str) -> String {
    markdown.replace('|', "\\|")
}

fn span(text: &str) -> String {
    // A span cannot be empty.
    let text = if text.is_empty() { " " } else { text };
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A reader removes one blank from both ends.
    let is_padded = text.starts_with('`')
        || text.ends_with('`')
        || (text.starts_with(' ') && text.ends_with(' ') && !text.trim_matches(' ').is_empty());
    let pad = if is_padded { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Returns whether no host interprets a word: it has no markup, no `:` but at its end, and starts no `www.` or `GH-1`.
fn is_plain(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_harmless = |c: char| !c.is_ascii_punctuation() || ",.-/\"'();%?=".contains(c);
    let letters = word.strip_suffix(':').unwrap_or(word);
    word == "->" || (letters.chars().all(is_harmless) && !lower.contains("www.") && !lower.contains("gh-"))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    use super::*;
    use crate::escape::is_hidden;
    use crate::fixture::every_character;

    const EVIL: &str =
        "| a | `b` <img src=x> @octocat #1 [x](http://evil.example) ![y](z) **b** www.evil.example \\| $x$";

    /// The text of Markdown, as a parser reads it; `None` if there is any markup but code spans and one table.
    fn read(markdown: &str) -> Option<String> {
        let mut read = String::new();
        let options =
            Options::ENABLE_GFM | Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH;
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Text(text) | Event::Code(text) => read += &text,
                Event::End(TagEnd::TableCell) => read += "|",
                Event::Start(Tag::Paragraph | Tag::Table(_) | Tag::TableHead | Tag::TableRow | Tag::TableCell)
                | Event::End(TagEnd::Paragraph | TagEnd::Table | TagEnd::TableHead | TagEnd::TableRow) => {}
                _ => return None,
            }
        }
        Some(read)
    }

    /// Text in a sentence, and in a cell between others.
    fn is_shown(text: &str) -> bool {
        let safe = terminal_safe(text);
        let (shown, quoted) = (prose(text, 100_000), code(text, 100_000));
        let table = format!("| a | b | c |\n|---|---|---|\n| x {} x | {} | y |\n", cell(&shown), cell(&quoted));
        let quoted_text = if safe.is_empty() { " " } else { &safe };
        // Quotations lose their backticks: they are code spans.
        let without = |text: &str| text.replace('`', "");
        let reads = |markdown: &str, text: &str| {
            read(markdown).is_some_and(|read| read == text || (safe.contains('`') && without(&read) == without(text)))
        };
        reads(&format!("x {shown} x"), &format!("x {safe} x"))
            && read(&format!("x {quoted} x")) == Some(format!("x {quoted_text} x"))
            && reads(&table, &format!("a|b|c|x {safe} x|{quoted_text}|y|"))
    }

    #[test]
    fn words_that_a_host_interprets_stand_in_code_spans() {
        assert_snapshot!(prose(EVIL, 200), @r"`|` a `|` `b` `<img src=x> @octocat #1 [x](http://evil.example) ![y](z) **b** www.evil.example \| $x$`");
        assert_snapshot!(prose("field \"f\": enum added: [\"A\"]; a: b -> c, GH-1 mailto:x", 200), @r#"field "f": enum added: `["A"];` a: b -> c, `GH-1 mailto:x`"#);
        assert_snapshot!(prose("two`` ticks: ``", 200), @"``` two`` ``` ticks: ``` `` ```");
        assert_snapshot!(prose("keep `storage: false`, then run `pushback check`", 200), @"keep `storage: false`, then run `pushback check`");
        assert_snapshot!(code("crds/new.yaml:41:15", 200), @"`crds/new.yaml:41:15`");
        assert_snapshot!(code("`", 200), @"`` ` ``");
        assert_eq!((read("a **b**"), read("a <b>")), (None, None));
    }

    #[test]
    fn every_character_reads_back() {
        for part in every_character(512) {
            assert!(is_shown(&part), "{}", prose(&part, 100_000));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn hostile_text_reads_back(
            text in prop_oneof![any::<String>(), "[ `|\\\\*_<>&:@#$!~a\\[\\]()-]{0,12}"],
        ) {
            prop_assert!(is_shown(&text), "{:?}", prose(&text, 100_000));
            prop_assert!(!prose(&text, 100_000).chars().any(is_hidden));
        }
    }
}
