//! kapp's words for objects, ages, times and durations.

use std::time::Duration;

use console::measure_text_width;
use jiff::Timestamp;
use pushback_cluster::server_message;
use pushback_events::Awaited;
use pushback_manifest::yaml::go;
use pushback_objects::ObjectRef;
use pushback_preflight::Operation;
use serde_json::Value;

/// What kapp says of an object that somebody else is to create.
pub const ABSENT: &str = "External resource doesn't exists";

/// The server's reason where something it calls fails.
pub const INTERNAL_ERROR: &str = "InternalError";

/// Whether the server says that a webhook does not answer: kapp tries such a write again.
#[must_use]
pub fn is_of_webhook(message: &str) -> bool {
    message.contains("failed calling webhook") || server_message::is_of_conversion(message)
}

/// An object as YAML; empty for none.
#[must_use]
pub fn yaml(object: Option<&Value>) -> String {
    object.map(go::document).unwrap_or_default()
}

/// `deployment/web (apps/v1) namespace: shop`, or `namespace/shop (v1) cluster`.
#[must_use]
pub fn described(object: &ObjectRef) -> String {
    let place =
        if object.namespace.is_empty() { "cluster".to_owned() } else { format!("namespace: {}", object.namespace) };
    format!("{}/{} ({}) {place}", object.kind.to_lowercase(), object.name, object.api_version())
}

/// The operation as its table and its progress name it.
#[must_use]
pub fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update | Operation::Replace => "update",
        Operation::Delete => "delete",
        Operation::Noop => "noop",
        Operation::Exists => "exists",
    }
}

/// The state that an object is waited for, as the progress names it.
#[must_use]
pub fn awaited(state: Awaited) -> &'static str {
    match state {
        Awaited::Ready => "reconcile",
        Awaited::Deleted => "delete",
    }
}

/// A text with a capital at its start.
#[must_use]
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Information about a state, broken into lines as kapp's tables do.
#[must_use]
pub fn information(text: &str) -> String {
    const WIDTH: usize = 35;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if measure_text_width(line) + 1 + measure_text_width(word) <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// `8:03:27AM`, in UTC.
#[must_use]
pub fn clock(now: Timestamp) -> String {
    let text = now.strftime("%I:%M:%S%p").to_string();
    text.strip_prefix('0').map(str::to_owned).unwrap_or(text)
}

/// The age of something created then: `4s`, `12m`, `3h`, `5d`, `2y`; empty if the time cannot be read.
#[must_use]
pub fn age(created: &str, now: Timestamp) -> String {
    let Ok(created) = created.parse::<Timestamp>() else { return String::new() };
    let seconds = now.as_second().saturating_sub(created.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..31_536_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// A duration as Go writes it: `5s`, `1m30s`, `15m0s`, `1h0m0s`, `500ms`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fraction = duration.subsec_millis();
    if seconds == 0 && fraction > 0 {
        return format!("{fraction}ms");
    }
    let rest = match fraction {
        0 => format!("{}s", seconds % 60),
        _ => format!("{}.{}s", seconds % 60, format!("{fraction:03}").trim_end_matches('0')),
    };
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => rest,
        (0, minutes) => format!("{minutes}m{rest}"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn times_and_ages_read_as_kapp_writes_them() {
        assert_eq!(clock(at("2026-11-21T07:57:27Z")), "7:57:27AM");
        assert_eq!(clock(at("2026-11-21T16:24:44Z")), "4:24:44PM");
        assert_eq!(clock(at("2026-11-21T00:00:01Z")), "12:00:01AM");
        let now = at("2026-11-21T12:00:00Z");
        let ages = ["2026-11-21T11:59:56Z", "2026-11-21T11:58:30Z", "2026-11-21T09:00:00Z", "2026-11-01T12:00:00Z"];
        assert_eq!(ages.map(|created| age(created, now)), ["4s", "1m", "3h", "20d"]);
        assert_eq!(age("", now), "");
    }

    #[test]
    fn durations_read_as_go_writes_them() {
        let durations = [5, 90, 900, 3600].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(durations, ["5s", "1m30s", "15m0s", "1h0m0s"]);
        assert_eq!(duration(Duration::from_millis(500)), "500ms");
        assert_eq!(duration(Duration::from_millis(1500)), "1.5s");
    }
}
