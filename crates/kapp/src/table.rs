//! kapp's tables: padded columns for people, tab-separated rows for scripts, keyed rows in JSON.

use console::measure_text_width;
use serde_json::{Map, Value, json};

use pushback_terminal::escape::terminal_safe;

/// A table with its title and notes.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Title above it, for people.
    pub title: String,
    /// What its rows are, in the plural; empty: they are not counted.
    pub content: String,
    /// Titles of the columns; a key is made of the title unless one is given.
    pub columns: Vec<Column>,
    /// Cells, empty where there is nothing to say.
    pub rows: Vec<Vec<String>>,
    /// Notes below it, for people and in JSON.
    pub notes: Vec<String>,
    /// Whether a first cell equal to the one above is shown as `^`.
    pub fills_first: bool,
    /// Whether each cell has lines of its own.
    pub is_transposed: bool,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Title.
    pub title: &'static str,
    /// Key in JSON.
    pub key: &'static str,
    /// Whether it is shown only when it is asked for.
    pub is_hidden: bool,
}

impl Column {
    /// A column that is shown.
    #[must_use]
    pub const fn new(title: &'static str, key: &'static str) -> Self {
        Self { title, key, is_hidden: false }
    }

    /// A column that is shown only when it is asked for.
    #[must_use]
    pub const fn hidden(title: &'static str, key: &'static str) -> Self {
        Self { title, key, is_hidden: true }
    }

    /// Whether this is its title or its key.
    fn is(&self, name: &str) -> bool {
        self.key == name || self.title.eq_ignore_ascii_case(name)
    }
}

/// A column that is to be shown, and that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Failed to find header: {0}")]
pub struct UnknownColumn(String);

/// Whether the columns have all these names.
///
/// # Errors
/// The first name that none of them has.
pub fn check(columns: &[Column], names: &[String]) -> Result<(), UnknownColumn> {
    let unknown = names.iter().find(|name| !columns.iter().any(|column| column.is(name)));
    unknown.map_or(Ok(()), |name| Err(UnknownColumn(name.clone())))
}

impl Table {
    /// The table with these columns only, by title or key; all but the hidden ones if none is named.
    ///
    /// # Errors
    /// A column that it does not have.
    pub fn only(&self, names: &[String]) -> Result<Self, UnknownColumn> {
        check(&self.columns, names)?;
        let is_kept = |column: &Column| match names {
            [] => !column.is_hidden,
            names => names.iter().any(|name| column.is(name)),
        };
        let kept: Vec<bool> = self.columns.iter().map(is_kept).collect();
        let keep = |cells: &[String]| {
            cells.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(cell, _)| cell.clone()).collect()
        };
        Ok(Self {
            columns: self.columns.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(column, _)| *column).collect(),
            rows: self.rows.iter().map(|row| keep(row)).collect(),
            fills_first: self.fills_first && kept.first() == Some(&true),
            ..self.clone()
        })
    }

    /// For people: title, header, rows, notes, count. A cell can have several lines.
    #[must_use]
    pub fn for_people(&self) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &format!("{}\n\n", terminal_safe(&self.title));
        }
        if self.is_transposed {
            text += &self.transposed(true);
            text += &self.count();
            return text;
        }
        let header: Vec<String> = self.columns.iter().map(|column| column.title.to_owned()).collect();
        let mut rows = vec![header];
        let mut above = None;
        for row in &self.rows {
            let mut cells = shown(row);
            let first = cells.first().cloned();
            if self.fills_first && first == above && !cells.is_empty() {
                cells[0] = "^".to_owned();
            }
            above = first;
            rows.push(cells);
        }
        text += &lines(&rows, "  ");
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("{}\n", terminal_safe(note));
        }
        text + &self.count()
    }

    fn count(&self) -> String {
        if self.content.is_empty() { String::new() } else { format!("\n{} {}\n", self.rows.len(), self.content) }
    }

    /// The rows one below the other, with a blank line between them; a cell can have several lines.
    fn transposed(&self, for_people: bool) -> String {
        let width = self.columns.iter().map(|column| column.title.len()).max().unwrap_or_default();
        let row = |cells: &Vec<String>| {
            let mut text = String::new();
            for (column, cell) in self.columns.iter().zip(cells) {
                let cell = if cell.is_empty() { "-" } else { cell.trim_end_matches('\n') };
                for (index, line) in cell.split('\n').enumerate() {
                    let title = if index == 0 { column.title } else { "" };
                    let line = terminal_safe(line);
                    text += &if for_people { format!("{title:width$}  {line}  \n") } else { format!("{line}\t\n") };
                }
            }
            text
        };
        self.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// For scripts: the rows alone.
    #[must_use]
    pub fn for_scripts(&self) -> String {
        if self.is_transposed {
            return self.transposed(false);
        }
        lines(&self.rows.iter().map(|row| shown(row)).collect::<Vec<_>>(), "\t")
    }

    /// In JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut columns: Vec<(usize, &Column)> = self.columns.iter().enumerate().collect();
        columns.sort_by_key(|(_, column)| column.key);
        let header: Map<String, Value> =
            columns.iter().map(|(_, column)| (column.key.to_owned(), column.title.into())).collect();
        let row = |cells: &Vec<String>| {
            let cell = |index: usize| cells.get(index).map_or("", String::as_str);
            Value::Object(columns.iter().map(|(index, column)| (column.key.to_owned(), cell(*index).into())).collect())
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        let notes = if self.notes.is_empty() { Value::Null } else { json!(self.notes) };
        json!({"Content": self.content, "Header": header, "Rows": rows, "Notes": notes})
    }
}

/// Cells as they are printed: `-` for nothing.
fn shown(row: &[String]) -> Vec<String> {
    let line = |line: &str| terminal_safe(line).into_owned();
    let cell = |cell: &String| match cell.as_str() {
        "" => "-".to_owned(),
        text => text.split('\n').map(line).collect::<Vec<_>>().join("\n"),
    };
    row.iter().map(cell).collect()
}

/// Nothing is padded behind the last column.
fn lines(rows: &[Vec<String>], separator: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).flat_map(|cell| cell.split('\n'));
        cells.map(measure_text_width).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let height = row.iter().map(|cell| cell.split('\n').count()).max().unwrap_or_default();
        for line in 0..height {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = cell.split('\n').nth(line).unwrap_or_default();
                text += cell;
                if index + 1 < row.len() {
                    text += &" ".repeat(width - measure_text_width(cell));
                }
                text += separator;
            }
            text.push('\n');
        }
    }
    text
}
