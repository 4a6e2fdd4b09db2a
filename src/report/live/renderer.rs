//! What shows events one way, and the clocks that it is told.
//! A renderer takes events and never calls back.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::environment::wall_clock;
use crate::event::Event;

/// A point in time, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// What the calendar says.
    pub wall: Timestamp,
    /// Since the process started to count; never goes back.
    pub elapsed: Duration,
}

/// Where renderers get the time from.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// The clock of the machine, counting from now.
#[must_use]
pub fn system_clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Moment { wall: wall_clock(), elapsed: start.elapsed() })
}

/// Shows events one way. It never calls back into the engine.
pub trait Renderer: Send {
    /// Shows an event.
    fn event(&mut self, event: &Event, now: Moment);

    /// Time has passed without an event.
    fn tick(&mut self, _now: Moment) {}

    /// How much time may pass without an event before [`Renderer::tick`] is called.
    fn tick_every(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Data that could not be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
