//! The logs of an app's Pods as they come: lines for people, one JSON object each for programs.

use std::io;
use std::ops::ControlFlow;

use pushback_events::{FailedContainer, LogEvent, LogPart, LogSource};
use serde_json::{Value, json};

use super::escape::{terminal_safe, terminal_safe_json};
use super::output::Output;

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines, each with its Pod and container in front of it.
    Tagged,
    /// Lines as the containers have written them.
    Plain,
    /// JSON.
    Json,
}

/// Writes logs.
#[derive(Debug)]
pub struct LogWriter {
    format: LogFormat,
    output: Output,
}

impl LogWriter {
    /// Writes to this output.
    #[must_use]
    pub fn new(format: LogFormat, output: Output) -> Self {
        Self { format, output }
    }

    /// Writes one event; says whether anybody still reads.
    pub fn tell(&mut self, event: &LogEvent) -> ControlFlow<()> {
        let text = match self.format {
            LogFormat::Json => json_line(event),
            LogFormat::Tagged => Some(tagged(event)),
            LogFormat::Plain => Some(match &event.part {
                LogPart::Line(line) => terminal_safe(line).into_owned(),
                _ => tagged(event),
            }),
        };
        if let Some(text) = text {
            self.output.data(&(text + "\n"));
        }
        if self.output.has_reader() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Writes that there was nothing to read.
    pub fn tell_none(&mut self) {
        if self.format != LogFormat::Json {
            self.output.data("The app has no Pods.\n");
        }
    }

    /// Ends the output.
    ///
    /// # Errors
    /// It could not be written; a reader that went away is no failure.
    pub fn finish(self) -> io::Result<()> {
        self.output.finish()
    }
}

/// A line with its Pod and container, or a remark about a log.
#[must_use]
pub fn tagged(event: &LogEvent) -> String {
    let LogSource { pod, container, .. } = &event.source;
    let tag = terminal_safe(&format!("{pod} > {container}")).into_owned();
    match &event.part {
        LogPart::Awaited => format!("# waiting for '{tag}' logs to become available..."),
        LogPart::Begun => format!("# starting tailing '{tag}' logs"),
        LogPart::Line(line) => format!("{tag} | {}", terminal_safe(line)),
        LogPart::Missing(reason) => format!("# no logs of '{tag}': {}", terminal_safe(reason)),
        LogPart::Ended => format!("# ending tailing '{tag}' logs"),
    }
}

/// Containers that fail with the ends of their logs, each line after this indentation.
#[must_use]
pub fn failed_containers(containers: &[FailedContainer], indent: &str) -> String {
    let mut text = String::new();
    for failed in containers {
        let FailedContainer { pod, container, reason, exit_code, previous, lines, missing, .. } = failed;
        let exit = exit_code.map(|code| format!("exit {code}")).unwrap_or_default();
        let before = if *previous { "before its last restart" } else { "" };
        let details: Vec<&str> = [reason.as_str(), &exit, before].into_iter().filter(|word| !word.is_empty()).collect();
        let what = terminal_safe(&format!("pod {pod}, container {container} ({})", details.join(", "))).into_owned();
        let ending = match (missing.is_empty(), lines.is_empty()) {
            (false, _) => format!(" is not known: {}", terminal_safe(missing)),
            (true, true) => " is empty".to_owned(),
            (true, false) => ":".to_owned(),
        };
        text += &format!("{indent}log of {what}{ending}\n");
        for line in lines {
            text += &format!("{indent}  | {}\n", terminal_safe(line));
        }
    }
    text
}

fn json_line(event: &LogEvent) -> Option<String> {
    let mut object = serde_json::to_value(event).ok().filter(|_| event.is_public())?;
    if let Value::Object(fields) = &mut object {
        fields.insert("schemaVersion".to_owned(), json!(1));
    }
    Some(terminal_safe_json(&object.to_string()))
}
