//! A plain-text table, escaped for terminals. Where it is wider than the terminal, messages stand below their row, names
//! are shortened in the middle, other cells are wrapped in their columns, and where even that is too wide, below each
//! other.

use console::measure_text_width;

use crate::escape::terminal_safe;
use crate::live::options::WIDTH;
use crate::shorten::{NARROWEST_NAME, shorten_name};
use crate::words::{hang, pad, wrap_within};

/// Between two columns.
const GAP: usize = 2;
/// Narrowest column that is wrapped: what is shorter stays whole.
const NARROWEST: usize = 16;
/// Indentation of wide cells that stand below the short ones of their row.
const BELOW: usize = 4;

/// Rows under a header; each column is as wide as its widest cell.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns with names, which are shortened rather than wrapped.
    names: Vec<usize>,
    /// Set if the last column holds messages, which may stand below their row.
    ends_with_message: bool,
}

impl Table {
    /// An empty table with this header.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        let head = head.iter().map(|&cell| cell.to_owned()).collect();
        Self { rows: vec![head], names: Vec::new(), ends_with_message: false }
    }

    /// Declares columns that hold names.
    #[must_use]
    pub fn with_names(self, names: &[usize]) -> Self {
        Self { names: names.to_vec(), ..self }
    }

    /// Declares that the last column holds messages.
    #[must_use]
    pub fn with_message(self) -> Self {
        Self { ends_with_message: true, ..self }
    }

    /// Adds a row; an empty cell is shown as `-`.
    pub fn row(&mut self, cells: &[&str]) {
        let safe = |cell: &&str| if cell.is_empty() { "-".to_owned() } else { terminal_safe(cell).into_owned() };
        self.rows.push(cells.iter().map(safe).collect());
    }

    /// The table as text, a line a row.
    #[must_use]
    pub fn text(&self) -> String {
        self.in_columns(&self.widths())
    }

    /// The table as text in lines of at most this width; none: a line a row.
    #[must_use]
    pub fn text_within(&self, columns: Option<usize>) -> String {
        let widths = self.widths();
        match columns {
            Some(columns) => match narrowed(&widths, columns) {
                Some(widths) => self.in_columns(&widths),
                None => self.below_each_other(&widths, columns),
            },
            None => self.in_columns(&widths),
        }
    }

    /// The table for the columns of a terminal, or that the user has set. Without, names stay whole: a log is searched
    /// for them.
    #[must_use]
    pub fn text_for(&self, columns: Option<u16>, ellipsis: &str) -> String {
        let width = usize::from(columns.unwrap_or(WIDTH));
        let widths = self.widths();
        if total(&widths) <= width {
            return self.in_columns(&widths);
        }
        if self.ends_with_message {
            let (table, messages) = self.without_messages();
            let above = table.text_for(columns, ellipsis);
            let used = above.lines().map(measure_text_width).max().unwrap_or_default();
            let mut text = String::new();
            for (number, (row, message)) in above.lines().zip(messages).enumerate() {
                let beside = format!("{}{:GAP$}{message}", pad(row, used), "");
                match () {
                    () if measure_text_width(&beside) <= width => text += &format!("{}\n", beside.trim_end()),
                    () if number == 0 || message.is_empty() || message == "-" => text += &format!("{row}\n"),
                    () => {
                        let below = hang(&format!("{:BELOW$}{message}\n", ""), columns.unwrap_or(WIDTH));
                        text += &format!("{row}\n{below}");
                    }
                }
            }
            return text;
        }
        if columns.is_none() {
            return self.in_columns(&widths);
        }
        let narrow = self.narrowed_names(&widths, width);
        let shorten = |row: &Vec<String>| {
            let cell = |(at, cell): (usize, &String)| {
                if self.names.contains(&at) { shorten_name(cell, narrow[at], ellipsis) } else { cell.clone() }
            };
            row.iter().enumerate().map(cell).collect()
        };
        let table = Self { rows: self.rows.iter().map(shorten).collect(), names: Vec::new(), ..*self };
        table.text_within(Some(width))
    }

    /// The table without its last column, and that column.
    fn without_messages(&self) -> (Self, Vec<String>) {
        let (mut rows, mut messages) = (self.rows.clone(), Vec::new());
        for row in &mut rows {
            messages.push(row.pop().unwrap_or_default());
        }
        (Self { rows, names: self.names.clone(), ends_with_message: false }, messages)
    }

    /// Widths with names as narrow as they have to be, the widest first.
    fn narrowed_names(&self, widths: &[usize], columns: usize) -> Vec<usize> {
        let mut narrow = widths.to_vec();
        let mut excess = total(widths).saturating_sub(columns);
        while excess > 0 {
            let widest =
                self.names.iter().copied().filter(|name| narrow.get(*name).is_some_and(|it| *it > NARROWEST_NAME));
            let Some(widest) = widest.max_by_key(|name| narrow[*name]) else { break };
            narrow[widest] -= 1;
            excess -= 1;
        }
        narrow
    }

    /// Width of the widest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| measure_text_width(cell)).max().unwrap_or_default()
        };
        (0..columns).map(width).collect()
    }

    fn in_columns(&self, widths: &[usize]) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<Vec<String>> =
                row.iter().zip(widths).map(|(cell, width)| wrap_within(cell, *width)).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let part =
                    |(cell, width): (&Vec<String>, &usize)| pad(cell.get(line).map_or("", String::as_str), width + GAP);
                text.push_str(cells.iter().zip(widths).map(part).collect::<String>().trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// The short cells of a row in one line, the wide ones below it.
    fn below_each_other(&self, widths: &[usize], columns: usize) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let (short, wide): (Vec<_>, Vec<_>) = row.iter().zip(widths).partition(|(_, width)| **width <= NARROWEST);
            let short: Vec<String> = short.into_iter().map(|(cell, width)| pad(cell, *width)).collect();
            let first = wrap_within(short.join("  ").trim_end(), columns);
            let below = wide.iter().flat_map(|(cell, _)| wrap_within(cell.trim(), columns.saturating_sub(BELOW)));
            let below = below.map(|line| format!("{}{line}", " ".repeat(BELOW)));
            for line in first.into_iter().chain(below) {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// Width of a row with these columns.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Widths of columns that fit side by side: short ones keep theirs, the others share what is left.
fn narrowed(widths: &[usize], columns: usize) -> Option<Vec<usize>> {
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut narrow = widths.to_vec();
    let mut left = columns.checked_sub(gaps)?;
    // The narrowest first: what one does not need is left for wider ones.
    let mut order: Vec<usize> = (0..widths.len()).collect();
    order.sort_by_key(|column| widths[*column]);
    for (done, column) in order.iter().enumerate() {
        let share = left / (order.len() - done);
        let width = widths[*column];
        narrow[*column] = if width <= NARROWEST { width } else { width.min(share) };
        if narrow[*column] < width.min(NARROWEST) {
            return None;
        }
        left = left.checked_sub(narrow[*column])?;
    }
    Some(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_escapes() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(&["a\u{1b}[31m", ""]);
        table.row(&["longer-name", "ok"]);
        let text = table.text();
        assert!(!text.contains('\u{1b}'));
        let columns: Vec<_> = text.lines().map(|line| line.rfind(' ').map(|at| at + 1)).collect();
        assert_eq!(columns[0], columns[2]);
    }

    fn changes() -> Table {
        let mut table = Table::new(&["  SEVERITY", "WHERE", "WHAT"]);
        table.row(&["  breaking", "v1 spec.template.spec.sourceHydrator", "the field is gone, with what it holds"]);
        table.row(&["  info", "v1 spec.size", "a new field"]);
        table
    }

    #[test]
    fn a_table_that_is_too_wide_is_wrapped_in_its_columns() {
        assert_eq!(changes().text_within(Some(200)), changes().text());
        assert_eq!(changes().text_within(None), changes().text());
        insta::assert_snapshot!(changes().text_within(Some(60)), @"
          SEVERITY  WHERE                    WHAT
          breaking  v1                       the field is gone, with
                    spec.template.spec.      what it holds
                    sourceHydrator
          info      v1 spec.size             a new field
        ");
    }

    #[test]
    fn wide_cells_stand_below_the_short_ones_where_columns_do_not_fit() {
        insta::assert_snapshot!(changes().text_within(Some(40)), @"
          SEVERITY
            WHERE
            WHAT
          breaking
            v1 spec.template.spec.sourceHydrator
            the field is gone, with what it
            holds
          info
            v1 spec.size
            a new field
        ");
    }

    #[test]
    fn names_are_shortened_in_the_middle_and_messages_stand_below() {
        let mut table = Table::new(&["NAME", "KIND", "STATE", "MESSAGE"]).with_names(&[0, 1]).with_message();
        table.row(&["ingress-nginx-controller-admission", "Service", "waiting", "no load balancer address yet"]);
        table.row(&["web", "ValidatingWebhookConfiguration", "ready", ""]);
        assert_eq!(table.text_for(Some(200), "…"), table.text());
        insta::assert_snapshot!(table.text_for(Some(60), "…"), @"
        NAME                       KIND                      STATE
        ingress-ngin…er-admission  Service                   waiting
            no load balancer address yet
        web                        ValidatingWe…nfiguration  ready
        ");
        insta::assert_snapshot!(table.text_for(None, "…"), @"
        NAME                                KIND                            STATE    MESSAGE
        ingress-nginx-controller-admission  Service                         waiting
            no load balancer address yet
        web                                 ValidatingWebhookConfiguration  ready    -
        ");
    }

    #[test]
    fn no_width_is_exceeded() {
        for columns in 20..120 {
            let text = changes().text_within(Some(columns));
            assert!(text.lines().all(|line| measure_text_width(line) <= columns), "{columns}:\n{text}");
            let squeezed = |text: &str| text.split_whitespace().collect::<String>().len();
            assert_eq!(squeezed(&text), squeezed(&changes().text()), "nothing is lost at {columns}");
        }
    }
}
