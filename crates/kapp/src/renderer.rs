//! A run as kapp tells it: the target, the changes, then applying and waiting in batches. The engine starts a change as
//! soon as what it waits for is done; what starts together is one batch here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use pushback_cluster::NOT_FOUND;
use pushback_events::exit::ExitCode;
use pushback_events::{AppRef, Awaited, ChangeOutcome, DiagnosticCode, Event, GroupApp, RunFailure, WaitOutcome};
use pushback_objects::{Finding, ObjectRef, Severity};
use pushback_preflight::{Operation, registry};

use super::errors::{FailedWrite, OutdatedWrite};
use super::run_facts::RunFacts;
use super::shown_plan::{ShownChange, ShownPlan};
use super::style::Style;
use super::ui::Ui;
use super::{changes, diff, errors, words};
use pushback_terminal::live::renderer::{Moment, Renderer};
use pushback_terminal::log_text::{failed_containers, tagged};
use pushback_terminal::output::Output;

/// Time between two reports about an object that is waited for: kapp does not look at it more often.
const WAIT_INTERVAL: Duration = Duration::from_secs(1);

/// Shows a run in kapp's words.
#[derive(Debug, Default)]
pub struct KappRenderer {
    ui: Ui,
    facts: RunFacts,
    command: String,
    app: AppRef,
    is_target_told: bool,
    /// The apps of a group whose turn is to come, with the namespace of their records.
    turns: VecDeque<(GroupApp, String)>,
    /// Changes that were deleted from the history.
    trimmed: usize,
    /// Changes of the plan, with what is only waited for.
    total: usize,
    done: usize,
    /// Changes that have been started since the last header.
    starting: Vec<(ObjectRef, Operation)>,
    /// Changes whose write has not been answered yet.
    writing: Vec<(ObjectRef, Operation)>,
    /// Those of them that a webhook keeps from being written.
    blocked: Vec<ObjectRef>,
    /// The first that it kept from being written to the end, and for how many milliseconds that was tried.
    blocked_to_the_end: Option<(FailedWrite, u64)>,
    /// Changes that are waited for.
    waiting: usize,
    /// Lines about waits, held back until everything of the batch is written.
    held: Vec<String>,
    /// Number of changes that the held lines report as done.
    held_done: usize,
    /// The counts in the last header about waiting.
    told: Option<(usize, usize)>,
    /// The plan that is shown: it is made anew where the app gets another name first.
    shown: Option<Vec<(ObjectRef, Operation)>>,
    /// The plan of another round, if writes of the last one have failed.
    next_plan: Option<ShownPlan>,
    /// Objects that are not written, until the first batch names them.
    kept: Vec<(ObjectRef, Operation)>,
    /// Objects that are not written.
    all_kept: Vec<ObjectRef>,
    /// Objects that are written and not waited for.
    unawaited: BTreeSet<ObjectRef>,
    /// Only a part of the app is deleted.
    is_partial: bool,
    failed_writes: Vec<FailedWrite>,
    /// Findings for which preflight refuses.
    refusals: Vec<Finding>,
    /// Writes that the server refuses.
    refused: Vec<FailedWrite>,
    /// Objects that exist already, and that nothing is done about.
    present: BTreeSet<ObjectRef>,
    /// Objects that somebody else creates, and whether they were missing.
    awaited: Vec<(ObjectRef, bool)>,
    /// The first of them that did not come, and for how many milliseconds it was waited for.
    absent: Option<(ObjectRef, u64)>,
    /// What was told of objects that are waited for.
    waits: BTreeMap<ObjectRef, Wait>,
    /// How objects were when the wait for them ended.
    endings: BTreeMap<ObjectRef, String>,
    /// Warnings of the server about objects whose writes have not started.
    warnings: Vec<(ObjectRef, String)>,
}

/// What was told of an object that is waited for.
#[derive(Debug)]
struct Wait {
    lines: Vec<String>,
    at: Duration,
    /// What has come too soon after it.
    later: Option<Vec<String>>,
}

impl KappRenderer {
    /// Writes to these streams; the run adds to the facts.
    #[must_use]
    pub fn new(style: Style, facts: RunFacts, output: Output) -> Self {
        Self { ui: Ui::new(style, output), facts, ..Self::default() }
    }

    /// Prints which app of a group has its turn.
    fn start_app(&mut self) {
        let Some((GroupApp { app, directory, .. }, namespace)) = self.turns.pop_front() else { return };
        self.ui.line(&match directory {
            Some(path) => format!("--- deploying app '{app}' (namespace: {namespace}) from {path}"),
            None => format!("--- deleting app '{app}' (namespace: {namespace})"),
        });
    }

    fn timed(&mut self, now: Moment, text: &str) {
        self.ui.progress(&format!("{}: {text}", words::clock(now.wall)));
    }

    fn header(&mut self, now: Moment, what: &str) {
        let text = format!("---- {what} [{}/{} done] ----", self.done, self.total);
        self.timed(now, &text);
    }

    /// Prints objects that are not written before anything is reported about them.
    fn print_kept(&mut self, now: Moment) {
        if !self.kept.is_empty() && self.writing.is_empty() {
            self.print_batch(now);
        }
    }

    /// Prints what has started together.
    fn print_batch(&mut self, now: Moment) {
        let mut starting = std::mem::take(&mut self.kept);
        self.waiting += starting.len();
        starting.append(&mut self.starting);
        self.header(now, &format!("applying {} changes", starting.len()));
        // kapp gets a warning with the answer to its write; a dry run gets it before.
        let is_written = |object: &ObjectRef| starting.iter().any(|(written, _)| written == object);
        for (_, message) in self.warnings.extract_if(.., |(object, _)| is_written(object)) {
            self.ui.progress(&format!("Warning: {message}"));
        }
        for (object, operation) in starting {
            let text = format!("{} {}", words::operation(operation), words::described(&object));
            self.timed(now, &text);
        }
        self.told = None;
    }

    /// Prints what is known of waits, once nothing is being written.
    fn tell_waits(&mut self, now: Moment) {
        if !self.writing.is_empty() || (self.held.is_empty() && self.waiting == 0) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let finished = std::mem::take(&mut self.held_done);
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

    /// Tells how an object is, unless that was told a moment ago.
    fn wait(&mut self, object: &ObjectRef, lines: Vec<String>, now: Moment) {
        match self.waits.get_mut(object) {
            Some(told) if told.lines == lines => told.later = None,
            Some(told) if now.elapsed < told.at + WAIT_INTERVAL => told.later = Some(lines),
            _ => {
                self.held.extend(lines.iter().cloned());
                self.waits.insert(object.clone(), Wait { lines, at: now.elapsed, later: None });
            }
        }
    }

    /// Tells what was held back long enough; `at_once`, all of it.
    fn tell_later(&mut self, now: Moment, at_once: bool) {
        for told in self.waits.values_mut().filter(|told| at_once || now.elapsed >= told.at + WAIT_INTERVAL) {
            if let Some(lines) = told.later.take() {
                self.held.extend(lines.iter().cloned());
                (told.lines, told.at) = (lines, now.elapsed);
            }
        }
    }

    /// Tells once more what is still waited for, after something else was done.
    fn tell_rest(&mut self, now: Moment) {
        let state = (self.waiting, self.done);
        if self.writing.is_empty() && self.starting.is_empty() && self.waiting > 0 && self.told != Some(state) {
            self.header(now, &format!("waiting on {} changes", self.waiting));
            self.told = Some(state);
        }
    }

    fn plan(&mut self, plan: ShownPlan, now: Moment) {
        let ShownPlan { changes, mut others, refused } = plan;
        self.refused = refused;
        let is_present =
            |change: &ShownChange| change.operation == Operation::Exists && !change.sides.created.is_empty();
        let (present, changes): (Vec<ShownChange>, Vec<ShownChange>) = changes.into_iter().partition(is_present);
        self.present = present.into_iter().map(|change| change.object).collect();
        // What is only waited for has no part in a run that waits for nothing.
        others.retain(|change| !self.ui.style().no_wait || change.operation != Operation::Noop);
        self.total = changes.len() + others.len();
        self.done = 0;
        let awaited = changes.iter().filter(|change| change.operation == Operation::Exists);
        self.awaited = awaited.map(|change| (change.object.clone(), false)).collect();
        self.all_kept = others.iter().map(|change| change.object.clone()).collect();
        self.kept = others.iter().map(|change| (change.object.clone(), change.operation)).collect();
        let unawaited = changes.iter().filter(|change| change.sides.awaited.is_none());
        self.unawaited = unawaited.map(|change| change.object.clone()).collect();
        let lines = changes.iter().chain(&others).map(|change| (change.object.clone(), change.operation)).collect();
        if self.shown.as_ref() != Some(&lines) {
            changes::show(&mut self.ui, &changes, &others, now.wall);
        }
        self.shown = Some(lines);
    }

    /// Shows the plan of another round, which is carried out although writes of the last one have failed.
    fn show_next_plan(&mut self, now: Moment) {
        if let Some(plan) = self.next_plan.take() {
            self.failed_writes.clear();
            self.plan(plan, now);
        }
    }

    /// Returns the first write that failed, with its change in the plan of another round.
    fn outdated_write(&self) -> Option<OutdatedWrite> {
        let (write, plan) = (self.failed_writes.first()?, self.next_plan.as_ref()?);
        let change = plan.changes.iter().find(|change| change.object == write.object)?;
        let sides = &change.sides;
        let diff = || diff::changed_lines(sides.old.as_ref(), sides.new.as_ref());
        let diff = (change.operation != Operation::Create).then(diff);
        Some(OutdatedWrite { write: write.clone(), resource: change.resource.clone(), diff })
    }

    /// Tells once of each object that it does not exist yet.
    fn missing(&mut self, request: &str, now: Moment) {
        let is_asked = |object: &ObjectRef| request == format!("{} {object}", Operation::Exists.as_str());
        let asked = self.awaited.iter_mut().find(|(object, was_missing)| !was_missing && is_asked(object));
        let Some((object, was_missing)) = asked else { return };
        *was_missing = true;
        self.starting.push((object.clone(), Operation::Exists));
        self.print_batch(now);
        self.timed(now, &format!(" ^ Retryable error: {}", words::ABSENT));
    }

    /// Tells once of each object that a webhook keeps it from being written.
    fn blocked(&mut self, request: &str, reason: &str, now: Moment) {
        let is_asked = |(object, operation): &&(ObjectRef, Operation)| {
            request == format!("{} {object}", operation.as_str()) && !self.blocked.contains(object)
        };
        let Some((object, operation)) = self.writing.iter().find(is_asked).filter(|_| words::is_of_webhook(reason))
        else {
            return;
        };
        let (object, operation) = (object.clone(), *operation);
        let said =
            FailedWrite { object, operation, message: reason.to_owned(), reason: words::INTERNAL_ERROR.to_owned() };
        self.timed(now, &format!(" ^ Retryable error: {}", errors::of_write(&said)));
        self.blocked.push(said.object);
    }

    /// Tells that everything is done, where there was something to do.
    fn complete(&mut self, exit_code: u8, now: Moment) {
        let is_done = [ExitCode::Success, ExitCode::Changes].iter().any(|code| code.code() == exit_code);
        let is_deletion = self.command == "delete" && self.shown.is_some();
        if (self.total > 0 || self.is_partial || is_deletion) && is_done && self.command != "diff" {
            self.header(now, "applying complete");
            self.header(now, "waiting complete");
            let trimmed = std::mem::take(&mut self.trimmed);
            if trimmed > 0 {
                self.ui.line(&format!("Deleted {trimmed} older app changes"));
            }
        }
    }

    fn completed(&mut self, object: &ObjectRef, operation: Operation, now: Moment) {
        if operation == Operation::Noop && !self.all_kept.contains(object) {
            return;
        }
        if self.awaited.iter().any(|(awaited, was_missing)| awaited == object && *was_missing) {
            let text = format!("{} {}", words::operation(operation), words::described(object));
            self.timed(now, &text);
        }
        if self.writing.is_empty() && self.kept.iter().any(|(kept, _)| kept == object) {
            self.print_batch(now);
        }
        let wait = match operation {
            _ if self.ui.style().no_wait || self.unawaited.contains(object) => "noop",
            Operation::Delete => "delete",
            _ => "reconcile",
        };
        self.waits.remove(object);
        self.waiting = self.waiting.saturating_sub(1);
        self.done += 1;
        self.held_done += 1;
        self.held.push(format!("ok: {wait} {}", words::described(object)));
        if let Some(ending) = self.endings.remove(object).filter(|ending| !ending.is_empty()) {
            self.held.push(format!(" ^ {ending}"));
        }
    }
}

impl Renderer for KappRenderer {
    fn event(&mut self, event: &Event, now: Moment) {
        if let Event::ChangeStart { object, .. } | Event::ChangeDone { object, .. } | Event::Completed { object, .. } =
            event
            && self.present.contains(object)
        {
            return;
        }
        if !matches!(event, Event::ChangeStart { .. }) && !self.starting.is_empty() {
            self.print_batch(now);
        }
        match event {
            Event::RunStart { command, app, namespace, .. } => {
                self.command.clone_from(command);
                self.app = AppRef { name: app.clone(), namespace: namespace.clone() };
                // Told once, however many apps the run is about.
                if let Some(target) = self.facts.take_target().filter(|_| !self.is_target_told) {
                    target.print(&mut self.ui);
                    self.is_target_told = true;
                }
            }
            Event::Group { command, namespace, apps, .. } => {
                let apps = apps.iter().filter(|app| command != "diff" || app.later.is_none());
                self.turns = apps.map(|app| (app.clone(), namespace.clone())).collect();
                self.start_app();
            }
            Event::HistoryTrimmed { deleted } => self.trimmed = *deleted,
            Event::AppEnd { exit_code, .. } => {
                self.tell_waits(now);
                self.complete(*exit_code, now);
                (self.total, self.is_partial, self.shown) = (0, false, None);
                self.start_app();
            }
            Event::Plan { .. } => {
                self.refusals.clear();
                let plan = self.facts.next_plan();
                match self.failed_writes.is_empty() {
                    true => self.plan(plan, now),
                    false => self.next_plan = Some(plan),
                }
            }
            Event::Finding { finding, .. } if finding.severity == Severity::Error && finding.waived.is_none() => {
                self.refusals.push((**finding).clone());
            }
            Event::ChangeStart { object, operation } => {
                self.show_next_plan(now);
                if self.starting.is_empty() {
                    self.tell_waits(now);
                }
                self.starting.push((object.clone(), *operation));
                self.writing.push((object.clone(), *operation));
            }
            Event::ChangeDone { object, operation, outcome, message, reason, elapsed } => {
                self.writing.retain(|(written, _)| written != object);
                let is_absent = *operation == Operation::Exists && reason == NOT_FOUND;
                if *outcome == ChangeOutcome::Failed && is_absent && self.absent.is_none() {
                    self.absent = Some((object.clone(), elapsed.0));
                }
                if *outcome == ChangeOutcome::Failed && (self.failed_writes.is_empty() || self.ui.style().all_errors) {
                    let (object, operation) = (object.clone(), *operation);
                    let said = FailedWrite { object, operation, message: message.clone(), reason: reason.clone() };
                    if self.blocked.contains(&said.object) && self.blocked_to_the_end.is_none() {
                        self.blocked_to_the_end = Some((said.clone(), elapsed.0));
                    }
                    self.failed_writes.push(said);
                }
                if matches!(outcome, ChangeOutcome::Ok | ChangeOutcome::Requested) {
                    self.waiting += 1;
                }
            }
            Event::Completed { object, operation } => self.completed(object, *operation, now),
            Event::Retry { request, reason, .. } => {
                self.missing(request, now);
                self.blocked(request, reason, now);
            }
            Event::WaitProgress { object, wanted, message, reasons, .. } => {
                self.print_kept(now);
                let mut lines = vec![format!("ongoing: {} {}", words::awaited(*wanted), words::described(object))];
                if !message.is_empty() {
                    lines.push(format!(" ^ {}", words::capitalised(message)));
                }
                lines.extend_from_slice(reasons);
                self.wait(object, lines, now);
            }
            Event::WaitDone { object, wanted: Awaited::Ready, outcome: WaitOutcome::Ok, message, .. } => {
                self.endings.insert(object.clone(), message.clone());
            }
            Event::WaitDone { object, wanted, outcome: WaitOutcome::Failed, message, .. } => {
                self.print_kept(now);
                let message = words::capitalised(message);
                self.waits.remove(object);
                self.held.push(format!("fail: {} {}", words::awaited(*wanted), words::described(object)));
                if !message.is_empty() {
                    self.held.push(format!(" ^ {message}"));
                }
                self.endings.insert(object.clone(), message);
            }
            Event::Log { log } => self.ui.progress(&format!("logs | {}", tagged(log))),
            // Only those about what is written: kapp reads in silence.
            Event::Warning { code, message, object: Some(object), .. } if code == "server" => {
                match self.command.as_str() {
                    _ if self.ui.style().no_warnings => {}
                    "diff" => self.ui.progress(&format!("Warning: {message}")),
                    _ => self.warnings.push((object.clone(), message.clone())),
                }
            }
            // kapp says nothing of what has no effect.
            Event::Warning { code, message, position: Some(position), .. }
                if ["annotation", "config-key"].contains(&code.as_str()) =>
            {
                self.ui.note(&format!("Warning: {position}: {message}\n"));
            }
            Event::Diagnostic { code: DiagnosticCode::NoApp, elsewhere, .. } => {
                self.ui.line(&errors::no_app(&self.app, elsewhere, ""));
            }
            Event::Diagnostic { code: DiagnosticCode::PartlyDeleted, .. } => {
                let AppRef { name, namespace } = &self.app;
                let text = format!(
                    "App '{name}' (namespace: {namespace}) will not be fully deleted because some resources are excluded \
                     by filters"
                );
                self.ui.line(&text);
                self.is_partial = true;
            }
            Event::RunEnd { exit_code, error, failure, unfinished, .. } => {
                let failure = failure.as_deref();
                if failure != Some(&RunFailure::PlanOutdated) {
                    self.show_next_plan(now);
                }
                let outdated = self.outdated_write();
                self.tell_later(now, true);
                self.tell_waits(now);
                let is_diff = self.command == "diff";
                if matches!(failure, Some(RunFailure::Refused { .. }))
                    && !self.refused.is_empty()
                    && !is_diff
                    && self.refusals.iter().all(|finding| finding.rule == registry::SERVER)
                {
                    // kapp learns of a refusal from its write, so that the write is printed before it.
                    self.starting = self.refused.iter().map(|write| (write.object.clone(), write.operation)).collect();
                    self.print_batch(now);
                }
                let text = errors::text(&errors::End {
                    code: *exit_code,
                    error,
                    failure,
                    refusals: &self.refusals,
                    refused_writes: &self.refused,
                    is_rename: false,
                    unfinished,
                    endings: Some(&self.endings),
                    all_errors: self.ui.style().all_errors,
                    is_diff,
                    failed_writes: &self.failed_writes,
                    absent: self.absent.as_ref(),
                    blocked: self.blocked_to_the_end.as_ref(),
                    outdated: outdated.as_ref(),
                });
                self.complete(*exit_code, now);
                if text.is_empty() {
                    self.ui.line("Succeeded");
                } else {
                    self.tell_rest(now);
                    unfinished.iter().for_each(|line| self.ui.note(&failed_containers(&line.containers, "")));
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
        if !self.starting.is_empty() {
            self.print_batch(now);
        }
        self.tell_later(now, false);
        self.tell_waits(now);
        self.tell_rest(now);
    }

    fn tick_every(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.ui.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushback_terminal::testing::{Captured, at, at_millis, wait_progress};

    fn config_map(name: &str) -> ObjectRef {
        let [version, kind, namespace, name] = ["v1", "ConfigMap", "shop", name].map(str::to_owned);
        ObjectRef { group: String::new(), version, kind, namespace, name }
    }

    fn start(name: &str) -> Event {
        Event::ChangeStart { object: config_map(name), operation: Operation::Create }
    }

    fn done(name: &str) -> [Event; 2] {
        let (object, operation) = (config_map(name), Operation::Create);
        let outcome = ChangeOutcome::Ok;
        let written = Event::ChangeDone {
            object: object.clone(),
            operation,
            outcome,
            message: String::new(),
            reason: String::new(),
            elapsed: at(0).elapsed.into(),
        };
        [written, Event::Completed { object, operation }]
    }

    #[test]
    fn an_object_that_is_waited_for_is_told_about_once_a_second() {
        let captured = Captured::default();
        let (data, progress) = captured.writers();
        let mut renderer = KappRenderer::new(
            Style { tty: true, ..Style::default() },
            RunFacts::default(),
            Output::new(data, progress),
        );
        (renderer.total, renderer.waiting) = (1, 1);
        for (millis, message) in [(0, "one"), (300, "two"), (600, "three"), (1_400, "four"), (1_500, "five")] {
            renderer.event(&wait_progress(&config_map("a"), message, &[], millis), at_millis(millis));
            renderer.tick(at_millis(millis + 500));
        }
        let [_, ready] = done("a");
        renderer.event(&ready, at_millis(1_600));
        renderer.tick(at_millis(3_000));
        insta::assert_snapshot!(captured.data(), @r"
        12:04:10PM: ---- waiting on 1 changes [0/1 done] ----
        12:04:10PM: ongoing: reconcile configmap/a (v1) namespace: shop
        12:04:10PM:  ^ One
        12:04:11PM: ongoing: reconcile configmap/a (v1) namespace: shop
        12:04:11PM:  ^ Three
        12:04:13PM: ok: reconcile configmap/a (v1) namespace: shop
        ");
    }

    #[test]
    fn what_starts_together_is_a_batch_and_is_told_when_all_of_it_is_written() {
        let captured = Captured::default();
        let (data, progress) = captured.writers();
        let style = Style { tty: true, ..Style::default() };
        let mut renderer = KappRenderer::new(style, RunFacts::default(), Output::new(data, progress));
        renderer.total = 3;
        let [[one, one_ready], [two, two_ready], [three, three_ready]] = ["a", "b", "c"].map(done);
        for event in [start("a"), start("b"), one, one_ready, two, two_ready, start("c"), three, three_ready] {
            renderer.event(&event, at(0));
        }
        renderer.tick(at(0));
        insta::assert_snapshot!(captured.data(), @r"
        12:04:10PM: ---- applying 2 changes [0/3 done] ----
        12:04:10PM: create configmap/a (v1) namespace: shop
        12:04:10PM: create configmap/b (v1) namespace: shop
        12:04:10PM: ---- waiting on 2 changes [0/3 done] ----
        12:04:10PM: ok: reconcile configmap/a (v1) namespace: shop
        12:04:10PM: ok: reconcile configmap/b (v1) namespace: shop
        12:04:10PM: ---- applying 1 changes [2/3 done] ----
        12:04:10PM: create configmap/c (v1) namespace: shop
        12:04:10PM: ---- waiting on 1 changes [2/3 done] ----
        12:04:10PM: ok: reconcile configmap/c (v1) namespace: shop
        ");
    }
}
