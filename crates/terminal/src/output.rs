//! The process' two streams: data and progress. A reader that goes away (`| head`) never ends a run; any other failure
//! to write data is kept and reported at the end.

use std::fmt;
use std::io::{self, Write};

use crate::escape::without_commands;

/// Output of the renderers.
pub struct Output {
    data: Stream,
    progress: Stream,
}

/// One stream; nothing is written after its first failure.
struct Stream {
    writer: Box<dyn Write + Send>,
    failure: Option<io::Error>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("data", &self.data.failure).field("progress", &self.progress.failure).finish()
    }
}

impl Output {
    /// Output to these streams, normally standard output and standard error.
    #[must_use]
    pub fn new(data: Box<dyn Write + Send>, progress: Box<dyn Write + Send>) -> Self {
        Self { data: Stream::new(data), progress: Stream::new(progress) }
    }

    /// Standard output and standard error.
    #[must_use]
    pub fn standard() -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Writes and flushes data: whole lines, with workflow commands defused.
    pub fn data(&mut self, text: &str) {
        self.data.write(&without_commands(text));
    }

    /// Writes and flushes progress: whole lines, with workflow commands defused.
    pub fn progress(&mut self, text: &str) {
        self.progress.write(&without_commands(text));
    }

    /// Writes our own workflow commands as data.
    pub fn commands(&mut self, text: &str) {
        self.data.write(text);
    }

    /// Whether data still reaches somebody.
    #[must_use]
    pub fn has_reader(&self) -> bool {
        self.data.failure.is_none()
    }

    /// Checks that all data was written; a reader that went away is no failure.
    ///
    /// # Errors
    /// The failure that ended the data stream, such as a full disk.
    pub fn finish(self) -> io::Result<()> {
        match self.data.failure {
            Some(failure) if failure.kind() != io::ErrorKind::BrokenPipe => Err(failure),
            _ => Ok(()),
        }
    }
}

impl Stream {
    fn new(writer: Box<dyn Write + Send>) -> Self {
        Self { writer, failure: None }
    }

    fn write(&mut self, text: &str) {
        if self.failure.is_none() && !text.is_empty() {
            self.failure = self.writer.write_all(text.as_bytes()).and_then(|()| self.writer.flush()).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written_to(kind: io::ErrorKind) -> io::Result<()> {
        let mut output = Output::new(Box::new(Failing(kind)), Box::new(Failing(kind)));
        output.data("a\n");
        output.progress("b\n");
        output.data("c\n");
        output.finish()
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        assert!(written_to(io::ErrorKind::BrokenPipe).is_ok());
    }

    #[test]
    fn a_full_disk_is_told() {
        assert_eq!(
            written_to(io::ErrorKind::StorageFull).map_err(|error| error.kind()),
            Err(io::ErrorKind::StorageFull)
        );
    }
}
