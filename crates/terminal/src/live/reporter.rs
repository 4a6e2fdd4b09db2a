//! The thread that shows a run: receives events, drives one renderer, and makes sure that every run has an end. The
//! engine never waits for it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use pushback_events::exit::ExitCode;
use pushback_events::{Counts, Event, Events, RunOutcome};

use super::json::JsonRenderer;
use super::options::{Format, RenderOptions};
use super::plain::PlainRenderer;
use super::renderer::{Clock, Moment, Renderer};
use super::tty::TtyRenderer;
use crate::output::Output;

/// Creates the renderer for a format.
#[must_use]
pub fn renderer(format: Format, options: RenderOptions, output: Output) -> Box<dyn Renderer> {
    match format {
        Format::Tty => Box::new(TtyRenderer::new(options, output)),
        Format::Plain => Box::new(PlainRenderer::new(options, output)),
        Format::Json => Box::new(JsonRenderer::new(options, output)),
    }
}

/// A renderer on its own thread.
#[derive(Debug)]
pub struct Reporter {
    thread: JoinHandle<io::Result<()>>,
    shown: Arc<DisplayState>,
}

/// Number of events shown, and whether the thread still runs.
#[derive(Debug, Default)]
struct DisplayState {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Reporter {
    /// Starts the thread. It ends with the first [`Event::RunEnd`]; if the engine disappears without one, it shows one
    /// with [`ExitCode::Defect`], so that there is always an end.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(renderer: Box<dyn Renderer>, receiver: Receiver<Event>, clock: Clock) -> io::Result<Self> {
        let shown = Arc::new(DisplayState::default());
        let counter = EndsWithThread(Arc::clone(&shown));
        let thread = std::thread::Builder::new()
            .name("report".to_owned())
            .spawn(move || show(&receiver, renderer, &clock, &counter))?;
        Ok(Self { thread, shown })
    }

    /// Waits until everything sent so far is shown, as before a question.
    pub fn settle(&self, events: &Events) {
        let sent = events.sent();
        let mut state = self.shown.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.0 < sent && !state.1 {
            state = self.shown.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until the end of the run is shown.
    ///
    /// # Errors
    /// Data could not be written, other than to a reader that went away.
    pub fn join(self) -> io::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the output stopped on a defect in pushback")))
    }
}

/// Wakes waiting threads when the renderer's thread ends for any reason.
struct EndsWithThread(Arc<DisplayState>);

impl EndsWithThread {
    fn update(&self, change: impl FnOnce(&mut (u64, bool))) {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_all();
    }
}

impl Drop for EndsWithThread {
    fn drop(&mut self) {
        self.update(|state| state.1 = true);
    }
}

fn show(
    receiver: &Receiver<Event>,
    mut renderer: Box<dyn Renderer>,
    clock: &Clock,
    counter: &EndsWithThread,
) -> io::Result<()> {
    loop {
        match receiver.recv_timeout(renderer.tick_every()) {
            Ok(event) => {
                renderer.event(&event, clock());
                counter.update(|state| state.0 += 1);
                if matches!(event, Event::RunEnd { .. }) {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => renderer.tick(clock()),
            Err(RecvTimeoutError::Disconnected) => {
                let now = clock();
                renderer.event(&end_without_result(now), now);
                break;
            }
        }
    }
    renderer.finish()
}

fn end_without_result(now: Moment) -> Event {
    Event::RunEnd {
        outcome: RunOutcome::Failed,
        exit_code: ExitCode::Defect.code(),
        done: Counts::default(),
        error: "the run ended without a result".to_owned(),
        hints: vec!["look at the cluster before running again: what was written is not known".to_owned()],
        unfinished: Vec::new(),
        failure: None,
        requests: 0,
        elapsed: now.elapsed.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::fixture::{Captured, diagnostic, fake_clock};

    fn started(receiver: Receiver<Event>, captured: &Captured) -> Reporter {
        let clock = fake_clock(Duration::from_secs(3));
        let (data, progress) = captured.writers();
        let renderer = renderer(Format::Json, RenderOptions::default(), Output::new(data, progress));
        Reporter::start(renderer, receiver, clock).expect("thread")
    }

    #[test]
    fn a_run_whose_engine_dies_still_ends_and_says_so() {
        let captured = Captured::default();
        let (events, receiver) = Events::channel();
        events.send(diagnostic("a"));
        drop(events);
        started(receiver, &captured).join().expect("written");
        let lines: Vec<serde_json::Value> =
            captured.data().lines().map(|line| serde_json::from_str(line).expect("json")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["type"], "run.end");
        assert_eq!(lines[1]["exitCode"], 70);
    }

    #[test]
    fn nothing_follows_the_end_of_a_run_and_late_senders_do_not_hold_it_open() {
        let captured = Captured::default();
        let (events, receiver) = Events::channel();
        events.send(end_without_result(Moment { wall: Timestamp::UNIX_EPOCH, elapsed: Duration::ZERO }));
        events.send(diagnostic("too late"));
        started(receiver, &captured).join().expect("written");
        assert_eq!(captured.data().lines().count(), 1);
        events.send(diagnostic("much too late"));
    }

    #[test]
    fn everything_sent_is_shown_before_a_question_is_asked() {
        let captured = Captured::default();
        let (events, receiver) = Events::channel();
        let reporter = started(receiver, &captured);
        for index in 0..100 {
            events.send(diagnostic(&index.to_string()));
        }
        reporter.settle(&events);
        assert_eq!(captured.data().lines().count(), 100);
        drop(events);
        reporter.join().expect("written");
    }

    #[test]
    fn settling_does_not_hang_when_the_run_is_over() {
        let (events, receiver) = Events::channel();
        let reporter = started(receiver, &Captured::default());
        events.send(end_without_result(Moment { wall: Timestamp::UNIX_EPOCH, elapsed: Duration::ZERO }));
        events.send(diagnostic("never shown"));
        reporter.settle(&events);
        reporter.join().expect("written");
    }
}
