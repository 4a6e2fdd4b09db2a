//! What is told of the logs of containers. Its JSON form names the container, and has a line or says why there is none.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A container of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogSource {
    /// Name of the Pod.
    pub pod: String,
    /// Namespace of the Pod.
    pub namespace: String,
    /// Name of the container.
    pub container: String,
    /// How often it was restarted before.
    pub restarts: u64,
}

/// One thing about the log of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// The container.
    pub source: LogSource,
    /// What it is.
    pub part: LogPart,
}

/// What can be told of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Its container has not begun yet.
    Awaited,
    /// Its lines follow.
    Begun,
    /// One line. Values of the app's Secrets are masked.
    Line(String),
    /// There is none to read, with the reason.
    Missing(String),
    /// There is no more of it.
    Ended,
}

impl LogEvent {
    /// The same with its text changed.
    #[must_use]
    pub fn map(self, change: impl FnOnce(&str) -> String) -> Self {
        let part = match self.part {
            LogPart::Line(line) => LogPart::Line(change(&line)),
            LogPart::Missing(reason) => LogPart::Missing(change(&reason)),
            other => other,
        };
        Self { part, ..self }
    }

    /// Whether it is part of the JSON form.
    #[must_use]
    pub fn is_public(&self) -> bool {
        matches!(self.part, LogPart::Line(_) | LogPart::Missing(_))
    }
}

impl Serialize for LogEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("namespace", &self.source.namespace)?;
        map.serialize_entry("pod", &self.source.pod)?;
        map.serialize_entry("container", &self.source.container)?;
        match &self.part {
            LogPart::Line(line) => map.serialize_entry("line", line)?,
            LogPart::Missing(reason) => map.serialize_entry("missing", reason)?,
            LogPart::Awaited | LogPart::Begun | LogPart::Ended => {}
        }
        map.end()
    }
}

/// A container that keeps an object from becoming ready, with the end of its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedContainer {
    /// Namespace of its Pod.
    pub namespace: String,
    /// Name of its Pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
    /// Why it is not up: `CrashLoopBackOff`, `OOMKilled`, `not ready`.
    pub reason: String,
    /// How it ended; absent if it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether the lines are from before its last restart.
    pub previous: bool,
    /// The last lines of its log. Values of the app's Secrets are masked.
    pub lines: Vec<String>,
    /// Why there are no lines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub missing: String,
}
