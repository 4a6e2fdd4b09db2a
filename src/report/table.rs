//! A plain-text table, escaped for terminals.

use console::measure_text_width;

use crate::report::escape::terminal_safe;

/// Rows under a header; each column is as wide as its widest cell.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with this header.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// Adds a row; an empty cell is shown as `-`.
    pub fn row(&mut self, cells: &[&str]) {
        let safe = |cell: &&str| if cell.is_empty() { "-".to_owned() } else { terminal_safe(cell).into_owned() };
        self.rows.push(cells.iter().map(safe).collect());
    }

    /// The table as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| measure_text_width(cell)).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, &width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - measure_text_width(cell) + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
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
}
