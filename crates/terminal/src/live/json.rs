//! The run for programs: one JSON object per line on standard output; the last one is always `run.end`.

use std::io;

use pushback_events::{Event, SCHEMA_VERSION};
use serde::Serialize;

use super::options::RenderOptions;
use super::renderer::{Moment, Renderer};
use crate::error_text::error_text;
use crate::escape::terminal_safe_json;
use crate::output::Output;

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonRenderer {
    options: RenderOptions,
    output: Output,
    sequence: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    schema_version: u32,
    seq: u64,
    time: String,
    #[serde(flatten)]
    event: &'a Event,
}

impl JsonRenderer {
    /// Writes events to the data stream, and the error that ended the run to progress as well.
    #[must_use]
    pub fn new(options: RenderOptions, output: Output) -> Self {
        Self { options, output, sequence: 0 }
    }
}

impl Renderer for JsonRenderer {
    fn event(&mut self, event: &Event, now: Moment) {
        if !event.is_public() {
            return;
        }
        self.sequence += 1;
        let line = Line { schema_version: SCHEMA_VERSION, seq: self.sequence, time: format!("{:.3}", now.wall), event };
        // Events are plain data with string keys: serialisation cannot fail.
        if let Ok(json) = serde_json::to_string(&line) {
            self.output.data(&(terminal_safe_json(&json) + "\n"));
        }
        if let Event::RunEnd { error, hints, .. } = event
            && !error.is_empty()
        {
            self.output.progress(&error_text(error, hints, self.options.theme));
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::{Value, json};

    use super::*;
    use crate::escape::is_hidden;
    use crate::fixture::{Captured, at, deploy, hostile};

    fn rendered(events: &[(u64, Event)]) -> Captured {
        let captured = Captured::default();
        let (data, progress) = captured.writers();
        let mut renderer = Box::new(JsonRenderer::new(RenderOptions::default(), Output::new(data, progress)));
        for (second, event) in events {
            renderer.event(event, at(*second));
        }
        renderer.finish().expect("written");
        captured
    }

    #[test]
    fn every_line_is_an_object_with_version_sequence_time_and_type() {
        let text = rendered(&deploy()).data();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("json")).collect();
        assert_eq!(lines.len(), deploy().len());
        for (index, line) in lines.iter().enumerate() {
            assert_eq!((&line["schemaVersion"], &line["seq"]), (&json!(1), &json!(index + 1)));
        }
        assert_eq!(lines.last().expect("lines")["type"], "run.end");
        assert_snapshot!(text.lines().nth(13).expect("line"), @r#"{"schemaVersion":1,"seq":14,"time":"2026-11-21T12:04:22.000Z","type":"wait.progress","object":{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web"},"wanted":"ready","message":"2/4 ready","reasons":["pod web-6c9f: CrashLoopBackOff (exit 1)"],"elapsed":7000}"#);
        assert_snapshot!(text.lines().last().expect("line"), @r#"{"schemaVersion":1,"seq":20,"time":"2026-11-21T12:05:22.000Z","type":"run.end","outcome":"succeeded","exitCode":0,"done":{"create":1,"update":2,"replace":0,"delete":1,"noop":18,"exists":0},"hints":["do the next thing"],"requests":214,"elapsed":72000}"#);
    }

    #[test]
    fn hostile_text_reads_back_unchanged_and_never_reaches_a_terminal() {
        let events: Vec<(u64, Event)> = hostile().into_iter().map(|event| (0, event)).collect();
        let captured = rendered(&events);
        let (data, progress) = (captured.data(), captured.progress());
        for text in [&data, &progress] {
            assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
        }
        assert_eq!(data.lines().count(), events.len());
        for (line, (_, event)) in data.lines().zip(&events) {
            let read: Value = serde_json::from_str(line).expect("json");
            let written = serde_json::to_value(event).expect("json");
            for (key, value) in written.as_object().expect("object") {
                assert_eq!(&read[key], value);
            }
        }
    }

    #[test]
    fn characters_beyond_the_basic_plane_become_surrogate_pairs() {
        let safe = terminal_safe_json("\"\u{e0041}\"");
        assert_eq!(safe, "\"\\udb40\\udc41\"");
        assert_eq!(serde_json::from_str::<String>(&safe).expect("json"), "\u{e0041}");
    }
}
