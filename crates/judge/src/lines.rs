//! The protocol: one request per line, one response per line, in the same order.

use std::io::{self, BufRead, Write};

use crate::judge;
use crate::request::JudgeRequest;
use crate::response::{ErrorKind, ErrorPosition, JudgeError, JudgeResponse};

/// Most bytes of a line.
pub const LONGEST_LINE: usize = 16 << 20;

/// The stream that failed.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The input cannot be read.
    #[error("requests could not be read: {0}")]
    Input(io::Error),
    /// The output cannot be written.
    #[error("responses could not be written: {0}")]
    Output(io::Error),
}

/// Answers each line of the input with a line of the output, and flushes it. An empty line is skipped. Returns the number
/// of lines that could not be judged.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub fn judge_lines(input: &mut impl BufRead, output: &mut impl Write) -> Result<u64, StreamError> {
    let (mut number, mut failed) = (0, 0);
    let mut line = Vec::new();
    loop {
        number += 1;
        let length = match read_line(input, &mut line).map_err(StreamError::Input)? {
            LineEnd::Input if line.is_empty() => return Ok(failed),
            LineEnd::Input | LineEnd::Line => Ok(()),
            LineEnd::TooLong => Err(()),
        };
        let response = match length {
            Ok(()) if line.trim_ascii().is_empty() => continue,
            Ok(()) => judge_line(&line, number),
            Err(()) => JudgeResponse {
                error: Some(JudgeError {
                    kind: ErrorKind::TooLong,
                    message: format!("the line is longer than {} MiB", LONGEST_LINE >> 20),
                    position: ErrorPosition { line: number, column: 0 },
                }),
                ..JudgeResponse::default()
            },
        };
        failed += u64::from(response.error.is_some());
        write_line(&response, output).map_err(StreamError::Output)?;
    }
}

fn write_line(response: &JudgeResponse, output: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *output, response)?;
    output.write_all(b"\n")?;
    output.flush()
}

fn judge_line(line: &[u8], number: u64) -> JudgeResponse {
    let parsed = JudgeRequest::parse(line);
    let judged = parsed.and_then(|request| {
        let id = request.id.clone();
        judge(request).map_err(|error| (id, error))
    });
    judged.unwrap_or_else(|(id, mut error)| {
        error.position.line = number;
        JudgeResponse { id, error: Some(error), ..JudgeResponse::default() }
    })
}

/// The reason why a line ends.
enum LineEnd {
    Line,
    Input,
    /// The line has more bytes than are kept.
    TooLong,
}

/// Reads a line without its end. Of a line that is too long, nothing is kept.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineEnd> {
    line.clear();
    let mut is_too_long = false;
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        is_too_long |= line.len() + part.len() > LONGEST_LINE;
        if is_too_long {
            *line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let (used, is_over) = (end.map_or(bytes.len(), |end| end + 1), bytes.is_empty());
        input.consume(used);
        match (end.is_some(), is_over) {
            (false, false) => {}
            _ if is_too_long => return Ok(LineEnd::TooLong),
            (true, _) => return Ok(LineEnd::Line),
            (false, true) => return Ok(LineEnd::Input),
        }
    }
}

#[cfg(test)]
mod tests;
