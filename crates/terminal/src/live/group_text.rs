//! What a run is to do with the apps of a group, as text.

use std::fmt::Write as _;

use pushback_events::GroupApp;
use pushback_objects::text::counted;
use pushback_preflight::Operation;

use super::options::RenderOptions;
use crate::escape::terminal_safe;
use crate::theme::{Role, operation_look};
use crate::words::{column_width, pad};

/// Widest name that others are aligned to.
const NAME_WIDTH: usize = 48;

/// A line for the group, and one for each app.
#[must_use]
pub fn group_text(
    command: &str,
    (group, namespace): (&str, &str),
    apps: &[GroupApp],
    options: &RenderOptions,
) -> String {
    let theme = options.data_theme;
    let names: Vec<String> = apps.iter().map(|app| terminal_safe(&app.app).into_owned()).collect();
    let width = column_width(names.iter().map(String::as_str), NAME_WIDTH);
    let mut text = format!(
        "{} {} in namespace {}: {}\n",
        theme.paint(Role::Strong, "Group"),
        terminal_safe(group),
        terminal_safe(namespace),
        counted(apps.len(), "app")
    );
    for (app, name) in apps.iter().zip(&names) {
        let (operation, why) = match (&app.directory, command) {
            (Some(directory), _) => (Operation::Update, directory.as_str()),
            (None, "delete") => (Operation::Delete, ""),
            (None, _) => (Operation::Delete, "its directory is gone"),
        };
        let (_, role) = operation_look(operation, theme);
        let word = if app.directory.is_some() { "apply" } else { "delete" };
        let line = format!("  {}  {}  {}", theme.paint(role, &pad(word, 6)), pad(name, width), terminal_safe(why));
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(later) = &app.later {
            let _ = writeln!(text, "          {} {}", theme.paint(Role::Pointer, "note:"), terminal_safe(later));
        }
    }
    text + "\n"
}
