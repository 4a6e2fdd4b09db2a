//! Parses a watch: one JSON event per line, however the connection splits them.

use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use http_body_util::{BodyDataStream, BodyExt};
use kube::client::Body;
use pushback_objects::object::ObjectExt;
use serde::Deserialize;

use super::error;
use crate::compact::Compact;
use crate::{ClusterError, ErrorKind, WatchEvent};

/// A server sends a bookmark about every minute. After this long without any data, the connection is dead without
/// notice, and the caller should list again.
const SILENCE: Duration = Duration::from_secs(100);

/// Maximum length of a line: several times etcd's limit for one object.
const MAX_LINE: usize = 64 << 20;

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: Compact,
}

/// The events in a watch's body. Ends with the connection, after a long silence, and after an error.
pub(super) fn events(body: Body) -> BoxStream<'static, Result<WatchEvent, ClusterError>> {
    let reader = Reader { chunks: body.into_data_stream(), lines: Lines::default(), ended: false };
    stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        reader.ended = event.is_err();
        Some((event, reader))
    })
    .boxed()
}

struct Reader {
    chunks: BodyDataStream<Body>,
    lines: Lines,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<WatchEvent, ClusterError>> {
        if self.ended {
            return None;
        }
        loop {
            while let Some(line) = self.lines.next() {
                if let Some(event) = read_line(&line).transpose() {
                    return Some(event);
                }
            }
            match tokio::time::timeout(SILENCE, self.chunks.next()).await {
                Ok(Some(Ok(chunk))) => self.lines.push(&chunk),
                Ok(Some(Err(error))) => {
                    tracing::debug!(%error, "a watch broke");
                    return None;
                }
                // A rest without a line break is a truncated event.
                Ok(None) | Err(_) => return None,
            }
            if self.lines.rest() > MAX_LINE {
                return Some(Err(ClusterError::new(ErrorKind::Protocol, "an event of a watch is too long")));
            }
        }
    }
}

/// Parses one event; `None` for unknown types.
pub(super) fn read_line(line: &[u8]) -> Result<Option<WatchEvent>, ClusterError> {
    let event: Event = super::transport::parse(line)?;
    match event.r#type.as_str() {
        "ADDED" | "MODIFIED" => Ok(Some(WatchEvent::Applied(event.object.kept()))),
        "DELETED" => Ok(Some(WatchEvent::Deleted(event.object.kept()))),
        "BOOKMARK" => Ok(Some(WatchEvent::Bookmark(event.object.0.resource_version().to_owned()))),
        "ERROR" => Err(error::watch_error(&event.object.0)),
        _ => Ok(None),
    }
}

/// Splits the received data into lines.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    /// Start of the first unread line.
    start: usize,
    /// Position up to which there is no line break.
    searched: usize,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole line that is not blank.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let unsearched = self.buffer.get(self.searched..)?;
            let Some(length) = unsearched.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let end = self.searched + length;
            let line = self.buffer.get(self.start..end).unwrap_or_default().trim_ascii().to_vec();
            self.start = end + 1;
            self.searched = self.start;
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    /// Bytes of the incomplete line.
    fn rest(&self) -> usize {
        self.buffer.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, size: usize) -> Vec<String> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            lines.push(chunk);
            while let Some(line) = lines.next() {
                found.push(String::from_utf8(line).unwrap());
            }
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = "{\"ä\":1}\r\n\n{\"b\":2}\n  \n{\"c\":3}\n{\"half";
        for size in 1..text.len() {
            assert_eq!(cut(text, size), ["{\"ä\":1}", "{\"b\":2}", "{\"c\":3}"], "chunks of {size}");
        }
    }

    #[test]
    fn an_error_event_of_a_version_too_old_is_expired() {
        let line = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert_eq!(read_line(line).unwrap_err().kind, ErrorKind::Expired);
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error_that_does_not_quote_it() {
        let error = read_line(br#"{"type":"ADDED","object":hunter2}"#).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
        assert!(!error.message.contains("hunter2"));
    }
}
