//! The renderers' trait, and the clocks passed to them. A renderer receives events and never calls back.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use pushback_events::Event;
use pushback_system::environment::wall_clock;

/// A point in time, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Wall-clock time.
    pub wall: Timestamp,
    /// Time since the clock was created; monotonic.
    pub elapsed: Duration,
}

/// Source of time for renderers.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// The system clock, counting from now.
#[must_use]
pub fn system_clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Moment { wall: wall_clock(), elapsed: start.elapsed() })
}

/// Shows events in one format. Never calls back into the engine.
pub trait Renderer: Send {
    /// Shows an event.
    fn event(&mut self, event: &Event, now: Moment);

    /// Called when time has passed without an event.
    fn tick(&mut self, _now: Moment) {}

    /// Interval without events after which [`Renderer::tick`] is called.
    fn tick_every(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Ends the output.
    ///
    /// # Errors
    /// The error if data could not be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
