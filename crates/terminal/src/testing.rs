//! For tests of renderers, elsewhere too: captured streams, moments, and an event of a wait.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use pushback_events::{Awaited, Event, Millis};
use pushback_objects::ObjectRef;

use crate::live::renderer::Moment;

/// Two captured streams.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    data: Arc<Mutex<Vec<u8>>>,
    progress: Arc<Mutex<Vec<u8>>>,
}

struct Capture(Arc<Mutex<Vec<u8>>>);

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("capture").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captured {
    /// Streams of which everything is kept.
    #[must_use]
    pub fn writers(&self) -> (Box<dyn Write + Send>, Box<dyn Write + Send>) {
        (Box::new(Capture(Arc::clone(&self.data))), Box::new(Capture(Arc::clone(&self.progress))))
    }

    /// Everything written to the first stream.
    ///
    /// # Panics
    /// It is not UTF-8.
    #[must_use]
    pub fn data(&self) -> String {
        String::from_utf8(self.data.lock().expect("capture").clone()).expect("utf-8")
    }

    /// Everything written to the second stream.
    ///
    /// # Panics
    /// It is not UTF-8.
    #[must_use]
    pub fn progress(&self) -> String {
        String::from_utf8(self.progress.lock().expect("capture").clone()).expect("utf-8")
    }
}

/// A moment, in seconds after 2026-11-21 12:04:10 UTC.
#[must_use]
pub fn at(seconds: u64) -> Moment {
    at_millis(seconds * 1_000)
}

/// A moment, in milliseconds after 2026-11-21 12:04:10 UTC.
///
/// # Panics
/// The moment is beyond all time.
#[must_use]
pub fn at_millis(millis: u64) -> Moment {
    let start: Timestamp = "2026-11-21T12:04:10Z".parse().expect("timestamp");
    let elapsed = Duration::from_millis(millis);
    Moment { wall: start.checked_add(elapsed).expect("in range"), elapsed }
}

/// An object that is waited for until it is ready, after so many milliseconds.
#[must_use]
pub fn wait_progress(object: &ObjectRef, message: &str, reasons: &[&str], elapsed: u64) -> Event {
    Event::WaitProgress {
        object: object.clone(),
        wanted: Awaited::Ready,
        message: message.to_owned(),
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        elapsed: Millis(elapsed),
    }
}
