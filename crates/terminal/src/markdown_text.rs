//! Markdown of our own, such as the page of a rule, as text: headings, lists, tables within the terminal's width. It is for
//! trusted text: nothing is escaped.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::table::Table;
use crate::theme::{Role, Theme};
use crate::words::wrap_within;

/// The text, in lines of at most this width; code stays as it is.
#[must_use]
pub fn markdown_text(markdown: &str, theme: Theme, columns: usize) -> String {
    let mut page = Page { theme, columns, ..Page::default() };
    Parser::new_ext(markdown, Options::ENABLE_TABLES).for_each(|event| page.event(event));
    page.text
}

#[derive(Default)]
struct Page {
    theme: Theme,
    columns: usize,
    text: String,
    /// Text of the block that is open, in runs of one style.
    runs: Vec<(Option<Role>, String)>,
    /// Style of bold text that is open.
    style: Option<Role>,
    /// Lists that are open, with the next number of those that count.
    lists: Vec<Option<u64>>,
    /// What stands before the first line of an item.
    bullet: Option<String>,
    /// Rows of the table that is open.
    rows: Vec<Vec<String>>,
    is_code: bool,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.text.push_str(format!("    {line}").trim_end());
                    self.text.push('\n');
                }
            }
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.runs.push((self.style, text.into_string()));
            }
            // A colour marks code, and so do the lines of a table; in other text without colours it keeps its quotes.
            Event::Code(code) if !self.rows.is_empty() => self.runs.push((None, code.into_string())),
            Event::Code(code) if self.theme.color => self.runs.push((Some(Role::Pointer), code.into_string())),
            Event::Code(code) => self.runs.push((None, format!("`{code}`"))),
            Event::SoftBreak | Event::HardBreak => self.runs.push((None, " ".to_owned())),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Strong => self.style = Some(Role::Strong),
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(*first);
            }
            Tag::Item => {
                let number = self.lists.last_mut().and_then(Option::as_mut);
                let bullet = number.map_or_else(
                    || "- ".to_owned(),
                    |number| {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    },
                );
                self.bullet = Some(bullet);
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::CodeBlock(_) => {
                self.gap();
                self.is_code = true;
            }
            Tag::Paragraph | Tag::Heading { .. } if self.bullet.is_none() => self.gap(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong => self.style = None,
            TagEnd::Paragraph | TagEnd::Item => self.flush(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Heading(_) => {
                let heading = self.plain();
                self.text += &format!("{}\n", self.theme.paint(Role::Strong, &heading));
            }
            TagEnd::TableCell => {
                let cell = self.plain();
                self.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.table(),
            TagEnd::CodeBlock => self.is_code = false,
            _ => {}
        }
    }

    /// An empty line before a block that is not the first.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// The open text without styles.
    fn plain(&mut self) -> String {
        self.runs.drain(..).map(|(_, text)| text).collect()
    }

    /// Ends the open paragraph.
    fn flush(&mut self) {
        if self.runs.is_empty() {
            return;
        }
        let depth = 2 * self.lists.len().saturating_sub(1);
        let (first, rest) = match self.bullet.take() {
            Some(bullet) => (format!("{}{bullet}", " ".repeat(depth)), depth + bullet.len()),
            None => (String::new(), depth),
        };
        let width = self.columns.saturating_sub(rest);
        let widest = |runs: &[(Option<Role>, String)]| {
            runs.iter().flat_map(|(_, text)| text.split(' ')).map(str::len).max().unwrap_or_default()
        };
        // A word that must be broken is not painted: a break within the colour would stay visible.
        let theme = if widest(&self.runs) < width { self.theme } else { Theme { color: false, ..self.theme } };
        let paint = |(role, text): (Option<Role>, String)| match role {
            Some(role) => text.split(' ').map(|word| theme.paint(role, word)).collect::<Vec<_>>().join(" "),
            None => text,
        };
        let text: String = self.runs.drain(..).map(paint).collect();
        for (place, line) in wrap_within(&text, width).into_iter().enumerate() {
            let before = if place == 0 { first.clone() } else { " ".repeat(rest) };
            self.text.push_str(format!("{before}{line}").trim_end());
            self.text.push('\n');
        }
    }

    fn table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let upper = |cell: &String| cell.to_uppercase();
        let Some(head) = rows.first() else { return };
        let head: Vec<String> = head.iter().map(upper).collect();
        let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &rows[1..] {
            table.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        self.gap();
        self.text += &table.text_within(Some(self.columns));
    }
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;
    use pushback_preflight::{reference, registry};

    use super::*;

    #[test]
    fn every_page_of_a_rule_keeps_to_the_width_and_shows_no_markup() {
        for rule in registry::RULES {
            let page = reference::rule_markdown(*rule);
            for (columns, color) in [(60, true), (60, false), (80, true), (100, false), (200, true)] {
                let text = markdown_text(&page, Theme { color, unicode: true }, columns);
                let name = rule.meta().name;
                let verbatim = |line: &str| line.starts_with("    ");
                for line in text.lines().filter(|line| !verbatim(line)) {
                    assert!(measure_text_width(line) <= columns, "{name} at {columns}: {line}");
                    let markup = ["**", "](", "|-", "| `", "## "].into_iter().find(|markup| line.contains(markup));
                    assert_eq!(markup, None, "{name} at {columns}: {line}");
                }
                let words = |text: &str| text.split(|c: char| !c.is_alphanumeric()).map(str::len).sum::<usize>();
                let plain = console::strip_ansi_codes(&text).into_owned();
                assert!(words(&plain) * 10 > words(&page) * 9, "{name} at {columns}: text is missing");
            }
        }
    }

    #[test]
    fn blocks_are_laid_out() {
        let page = "## Rule\n\nSome *text* with `code` and **weight**, [elsewhere](storage.md),\non two lines.\n\n\
                    - one item that is long enough to be broken\n- two\n\n| check | when |\n|---|---|\n| `a` | always \\| never |\n\n\
                    ```yaml\na: 1\n\nb: 2\n```\n\nThe end.\n";
        insta::assert_snapshot!(markdown_text(page, Theme::plain(), 40), @"
        Rule

        Some text with `code` and weight,
        elsewhere, on two lines.

        - one item that is long enough to be
          broken
        - two

        CHECK  WHEN
        a      always | never

            a: 1

            b: 2

        The end.
        ");
        let painted = markdown_text(page, Theme { color: true, unicode: true }, 40);
        assert!(painted.contains("\u{1b}[36mcode\u{1b}[0m") && !painted.contains('`'), "{painted:?}");
    }
}
