//! A run as kapp tells it: the target, the changes, then applying and waiting in batches. The engine starts a change as
//! soon as what it waits for is done; what starts together is one batch here.

use std::io;

use pushback_preflight::{ObjectRef, Operation};

use super::style::Style;
use super::ui::Ui;
use super::{changes, errors, words};
use crate::event::{Awaited, ChangeOutcome, DiagnosticCode, Event, PlannedLine, Target, WaitOutcome};
use crate::report::live::renderer::{Moment, Renderer};
use crate::report::output::Output;

/// Shows a run in kapp's words.
#[derive(Debug)]
pub struct KappRenderer {
    ui: Ui,
    command: String,
    app: String,
    namespace: String,
    /// Changes of the plan, with what is only waited for.
    total: usize,
    done: usize,
    /// Changes that have been started since the last header.
    starting: Vec<(ObjectRef, Operation)>,
    /// Changes whose write has not been answered yet.
    writing: usize,
    /// Changes that are waited for.
    waiting: usize,
    /// Lines about waits, held back until everything of the batch is written.
    held: Vec<String>,
    /// The counts in the last header about waiting.
    told: Option<(usize, usize)>,
}

impl KappRenderer {
    /// Writes to these streams.
    #[must_use]
    pub fn new(style: Style, output: Output) -> Self {
        Self {
            ui: Ui::new(style, output),
            command: String::new(),
            app: String::new(),
            namespace: String::new(),
            total: 0,
            done: 0,
            starting: Vec::new(),
            writing: 0,
            waiting: 0,
            held: Vec::new(),
            told: None,
        }
    }

    fn timed(&mut self, now: Moment, text: &str) {
        self.ui.progress(&format!("{}: {text}", words::clock(now.wall)));
    }

    fn header(&mut self, now: Moment, what: &str) {
        let text = format!("---- {what} [{}/{} done] ----", self.done, self.total);
        self.timed(now, &text);
    }

    /// Prints what has started together.
    fn start_batch(&mut self, now: Moment) {
        let mut starting = std::mem::take(&mut self.starting);
        if starting.is_empty() {
            return;
        }
        starting.sort_by_key(|(_, operation)| *operation != Operation::Noop);
        self.header(now, &format!("applying {} changes", starting.len()));
        for (object, operation) in starting {
            let text = format!("{} {}", words::operation(operation), words::described(&object));
            self.timed(now, &text);
        }
        self.told = None;
    }

    /// Prints what is known of waits, once nothing is being written.
    fn tell_waits(&mut self, now: Moment) {
        if self.writing > 0 || (self.held.is_empty() && self.waiting == 0) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let finished = held.iter().filter(|line| line.starts_with("ok: ")).count();
        let before = (self.waiting + finished, self.done - finished);
        if !held.is_empty() || self.told.is_none() {
            if self.told != Some(before) {
                let (waiting, done) = before;
                let text = format!("---- waiting on {waiting} changes [{done}/{} done] ----", self.total);
                self.timed(now, &text);
            }
            held.iter().for_each(|line| self.timed(now, line));
            self.told = Some(before);
        }
    }

    /// Tells once more what is still waited for, after something else was done.
    fn tell_rest(&mut self, now: Moment) {
        let state = (self.waiting, self.done);
        if self.writing == 0 && self.starting.is_empty() && self.waiting > 0 && self.told != Some(state) {
            self.header(now, &format!("waiting on {} changes", self.waiting));
            self.told = Some(state);
        }
    }

    fn target(&mut self, target: &Target) {
        let nodes = match target.nodes.as_slice() {
            [] => String::new(),
            [node] => format!(" (nodes: {node})"),
            [oldest, others @ ..] => format!(" (nodes: {oldest}, {}+)", others.len()),
        };
        self.ui.line(&format!("Target cluster '{}'{nodes}", target.server));
    }

    fn plan(&mut self, changes: &[PlannedLine], others: &[PlannedLine], now: Moment) {
        self.total = changes.len() + others.len();
        self.done = 0;
        changes::show(&mut self.ui, changes, others, now.wall);
    }

    fn completed(&mut self, object: &ObjectRef, operation: Operation) {
        if operation == Operation::Noop && self.total == 0 {
            return;
        }
        let wait = if operation == Operation::Delete { "delete" } else { "reconcile" };
        self.waiting = self.waiting.saturating_sub(1);
        self.done += 1;
        self.held.push(format!("ok: {wait} {}", words::described(object)));
    }
}

impl Renderer for KappRenderer {
    fn event(&mut self, event: &Event, now: Moment) {
        if !matches!(event, Event::ChangeStart { .. }) {
            self.start_batch(now);
        }
        match event {
            Event::RunStart { command, app, namespace, target, .. } => {
                self.command.clone_from(command);
                self.app.clone_from(app);
                self.namespace.clone_from(namespace);
                if let Some(target) = target {
                    self.target(target);
                }
            }
            Event::Plan { changes, others, .. } => self.plan(changes, others, now),
            Event::ChangeStart { object, operation } => {
                if self.starting.is_empty() {
                    self.tell_waits(now);
                }
                self.starting.push((object.clone(), *operation));
                self.writing += 1;
            }
            Event::ChangeDone { outcome, .. } => {
                self.writing = self.writing.saturating_sub(1);
                if matches!(outcome, ChangeOutcome::Ok | ChangeOutcome::Requested) {
                    self.waiting += 1;
                }
            }
            Event::Completed { object, operation } if *operation != Operation::Noop => {
                self.completed(object, *operation);
            }
            Event::WaitProgress { object, wanted, message, .. } => {
                let wait = if *wanted == Awaited::Deleted { "delete" } else { "reconcile" };
                self.held.push(format!("ongoing: {wait} {}", words::described(object)));
                if !message.is_empty() {
                    self.held.push(format!(" ^ {message}"));
                }
            }
            Event::WaitDone { object, wanted, outcome: WaitOutcome::Failed, message, .. } => {
                let wait = if *wanted == Awaited::Deleted { "delete" } else { "reconcile" };
                self.held.push(format!("fail: {wait} {}", words::described(object)));
                if !message.is_empty() {
                    self.held.push(format!(" ^ {message}"));
                }
            }
            Event::Warning { code, message, .. } if code == "server" => self.ui.line(&format!("Warning: {message}")),
            Event::Diagnostic { code: DiagnosticCode::NoApp, .. } => {
                let text = format!("App '{}' (namespace: {}) does not exist", self.app, self.namespace);
                self.ui.line(&text);
            }
            Event::RunEnd { exit_code, error, cause, unfinished, .. } => {
                self.tell_waits(now);
                let is_diff = self.command == "diff";
                let mut text = errors::text(*exit_code, error, cause.as_deref(), unfinished, is_diff);
                if text.is_empty()
                    && let Some(column) = self.ui.unknown_column()
                {
                    text = format!("Failed to find header: {column}");
                }
                if self.total > 0 && *exit_code == 0 && !is_diff {
                    self.header(now, "applying complete");
                    self.header(now, "waiting complete");
                }
                if text.is_empty() {
                    self.ui.line("Succeeded");
                } else {
                    self.tell_rest(now);
                    self.ui.error(&text);
                }
            }
            _ => {}
        }
        if matches!(event, Event::WaitProgress { .. }) {
            self.tell_waits(now);
        }
    }

    fn tick(&mut self, now: Moment) {
        self.start_batch(now);
        self.tell_waits(now);
        self.tell_rest(now);
    }

    fn tick_every(&self) -> std::time::Duration {
        std::time::Duration::from_millis(100)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.ui.finish()
    }
}
