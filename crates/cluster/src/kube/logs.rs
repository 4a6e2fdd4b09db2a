//! Reads the log of a container line by line, however the connection splits it.

use std::fmt::Display;

use futures::stream::{self, BoxStream, Stream, StreamExt};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::{ClusterError, ErrorKind};

/// A longer line is told in parts: a program may write without any line breaks.
const MAX_LINE: usize = 64 << 10;

/// The lines of a log, without their ends. Bytes that are not UTF-8 are replaced.
pub(super) fn lines(body: Body) -> BoxStream<'static, Result<String, ClusterError>> {
    split(body.into_data_stream())
}

fn split<B, E>(
    chunks: impl Stream<Item = Result<B, E>> + Send + Unpin + 'static,
) -> BoxStream<'static, Result<String, ClusterError>>
where
    B: AsRef<[u8]> + Send + 'static,
    E: Display + Send + 'static,
{
    let reader = Reader { chunks, buffer: Vec::new(), ended: false };
    stream::unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) }).boxed()
}

struct Reader<C> {
    chunks: C,
    buffer: Vec<u8>,
    ended: bool,
}

impl<B: AsRef<[u8]>, E: Display, C: Stream<Item = Result<B, E>> + Unpin> Reader<C> {
    async fn next(&mut self) -> Option<Result<String, ClusterError>> {
        loop {
            if let Some(line) = self.line() {
                return Some(Ok(line));
            }
            if self.ended {
                let rest = std::mem::take(&mut self.buffer);
                return (!rest.is_empty()).then(|| Ok(text(&rest)));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.buffer.extend_from_slice(chunk.as_ref()),
                Some(Err(error)) => {
                    self.ended = true;
                    let error = ClusterError::new(ErrorKind::Unreachable, format!("the log broke off: {error}"));
                    return Some(Err(error));
                }
                None => self.ended = true,
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            return Some(text(line.strip_suffix(b"\n").unwrap_or(&line)));
        }
        (self.buffer.len() >= MAX_LINE).then(|| text(&self.buffer.drain(..MAX_LINE).collect::<Vec<_>>()))
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(chunks: &[&[u8]]) -> Vec<String> {
        let chunks: Vec<Result<Vec<u8>, std::io::Error>> = chunks.iter().map(|chunk| Ok(chunk.to_vec())).collect();
        split(stream::iter(chunks)).map(|line| line.expect("a line")).collect().await
    }

    #[tokio::test]
    async fn lines_are_those_of_the_program_however_they_arrive() {
        assert_eq!(read(&[b"one\n  tw", b"o\n\nthr", b"ee"]).await, ["one", "  two", "", "three"]);
        assert_eq!(read(&[b"a\r\nb\xff\n"]).await, ["a", "b\u{fffd}"]);
        assert_eq!(read(&[]).await, [""; 0]);
        let long = vec![b'x'; MAX_LINE + 3];
        let parts = read(&[&long, b"\n"]).await;
        assert_eq!(parts.iter().map(String::len).collect::<Vec<_>>(), [MAX_LINE, 3]);
    }
}
