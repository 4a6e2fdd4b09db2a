//! How kapp's voice shows things: its flags, resolved.

/// Choices of the user that concern all output.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// Titles, headers and progress, as for a person; without it only data.
    pub tty: bool,
    /// One JSON object at the end.
    pub json: bool,
    /// Columns of tables to show; empty: all.
    pub columns: Vec<String>,
    /// The run waits for nothing.
    pub no_wait: bool,
    /// All writes that failed are told, not the first one alone.
    pub all_errors: bool,
    /// Leave out warnings of the server.
    pub no_warnings: bool,
    /// How changes are shown.
    pub diff: DiffLook,
}

/// How the changes of a run are shown.
#[derive(Clone, Copy, Debug)]
pub struct DiffLook {
    /// Show the table of changes.
    pub summary: bool,
    /// Show the changes within objects.
    pub changes: bool,
    /// Unchanged lines around a change; `None`: all.
    pub context: Option<usize>,
    /// Show line numbers.
    pub line_numbers: bool,
    /// Show what is applied as YAML.
    pub yaml: bool,
}

impl Default for DiffLook {
    fn default() -> Self {
        Self { summary: true, changes: false, context: Some(2), line_numbers: true, yaml: false }
    }
}
