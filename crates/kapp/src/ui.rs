//! Where kapp's voice writes: lines, blocks, tables and one error, with blank lines between them as kapp sets them; for
//! scripts without lines, or all of it as one JSON object at the end.

use std::io;

use serde::Serialize as _;
use serde_json::{Value, json};

use super::style::Style;
use super::table::{Table, UnknownColumn};
use pushback_terminal::escape::{terminal_safe_json, terminal_safe_lines};
use pushback_terminal::output::Output;

/// What was printed last, which decides about a blank line before the next thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    /// A line, a table, an error: a blank line follows.
    Apart,
    /// Progress and blocks, which follow each other without one.
    Running,
}

/// The output of one command.
#[derive(Debug)]
pub struct Ui {
    style: Style,
    output: Output,
    last: Last,
    tables: Vec<Value>,
    blocks: Vec<String>,
    lines: Vec<String>,
}

impl Default for Ui {
    fn default() -> Self {
        Self::new(Style::default(), Output::standard())
    }
}

impl Ui {
    /// Writes to these streams.
    #[must_use]
    pub fn new(style: Style, output: Output) -> Self {
        let (tables, blocks, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { style, output, last: Last::Nothing, tables, blocks, lines }
    }

    /// The user's choices.
    #[must_use]
    pub fn style(&self) -> &Style {
        &self.style
    }

    /// A line by itself; not for scripts.
    pub fn line(&mut self, text: &str) {
        if self.style.json {
            self.lines.push(text.to_owned());
        } else if self.style.tty {
            self.data(Last::Apart, &format!("{text}\n"));
        }
    }

    /// A line of progress; not for scripts.
    pub fn progress(&mut self, text: &str) {
        if self.style.json {
            self.lines.push(format!("{text}\n"));
        } else if self.style.tty {
            self.data(Last::Running, &format!("{text}\n"));
        }
    }

    /// A block of text.
    pub fn block(&mut self, text: &str) {
        if self.style.json {
            self.blocks.push(text.to_owned());
        } else {
            self.data(Last::Running, text);
        }
    }

    /// A table.
    ///
    /// # Errors
    /// It has no such column.
    pub fn table(&mut self, table: &Table) -> Result<(), UnknownColumn> {
        let table = table.only(&self.style.columns)?;
        if self.style.json {
            self.tables.push(table.to_json());
            return Ok(());
        }
        self.pad(Last::Apart);
        // Its cells are made safe one by one: tabs and line breaks between them are its own.
        let text = if self.style.tty { table.for_people() } else { table.for_scripts() };
        self.output.data(&text);
        Ok(())
    }

    /// The error that ended the command, to standard error; in JSON it is the last line.
    pub fn error(&mut self, text: &str) {
        let text = format!("kapp: Error: {text}");
        if self.style.json {
            self.lines.push(text);
        } else {
            self.pad(Last::Apart);
            self.output.progress(&format!("{}\n", terminal_safe_lines(&text)));
        }
    }

    /// What kapp does not tell, to standard error.
    pub fn note(&mut self, text: &str) {
        self.output.progress(text);
    }

    /// Ends the output.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        if self.style.json {
            let list = |texts: &[String]| if texts.is_empty() { Value::Null } else { json!(texts) };
            let tables = if self.tables.is_empty() { Value::Null } else { json!(self.tables) };
            let whole = json!({"Tables": tables, "Blocks": list(&self.blocks), "Lines": list(&self.lines)});
            self.output.data(&indented(&whole));
        }
        self.output.finish()
    }

    fn data(&mut self, kind: Last, text: &str) {
        self.pad(kind);
        self.output.data(&terminal_safe_lines(text));
    }

    fn pad(&mut self, next: Last) {
        if self.last != Last::Nothing && (self.last, next) != (Last::Running, Last::Running) {
            self.output.data("\n");
        }
        self.last = next;
    }
}

/// JSON as Go prints it: four blanks a level, and no character that HTML would act on.
fn indented(value: &Value) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Writing to memory cannot fail, and what is written is UTF-8.
    let _ = value.serialize(&mut serializer);
    let text = terminal_safe_json(&String::from_utf8_lossy(&bytes));
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
