//! The run for a person at a terminal: finished objects become permanent lines, and those under way move below them.
//! Nothing moves between preflight and the first write, so no prompt is ever painted over.

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use console::measure_text_width;
use pushback_events::{Awaited, ChangeOutcome, DiagnosticCode, Event, Millis, WaitOutcome};
use pushback_objects::ObjectRef;
use pushback_preflight::judge::Outcome;

use super::end_text::{app_end_text, end_text, reasons_text};
use super::group_text::group_text;
use super::judged::Held;
use super::live_area::{LiveArea, LiveRow, Picture, ROW_INDENT};
use super::options::RenderOptions;
use super::plan_text::plan_text;
use super::progress::{Phase, Progress, Row, retry_is_news};
use super::renderer::{Moment, Renderer};
use crate::error_text::{labelled, note_text, warning_text};
use crate::escape::terminal_safe;
use crate::finding_text::preflight_text;
use crate::log_text::tagged;
use crate::output::Output;
use crate::policy_text::policy_text;
use crate::theme::{Role, operation_look};
use crate::words::{change_word, doing_word, hang, object_columns, pad, stopwatch, took};

/// Delay before anything moves: a shorter run would only flicker.
const APPEARS_AFTER: Duration = Duration::from_millis(250);
/// The same delay while planning.
const PLANNING_APPEARS_AFTER: Duration = Duration::from_secs(1);
/// Shortest interval between redraws.
const REPAINT_EVERY: Duration = Duration::from_millis(200);
/// Most rows shown.
const ROWS: usize = 8;
/// A write that takes longer than this gets a row.
const SLOW_WRITE: Duration = Duration::from_secs(1);
/// Width of the word in front of an object.
const WORD_WIDTH: usize = 10;
/// Width of a time, so that rows with short and long ones line up.
const TIME_WIDTH: usize = 6;

/// Paints a terminal.
#[derive(Debug)]
pub struct TtyRenderer {
    options: RenderOptions,
    output: Output,
    progress: Progress,
    held: Held,
    live_area: LiveArea,
    /// Permanent lines held back until the next redraw.
    pending: String,
    /// Start of planning or of the first write; `None` if nothing may move.
    moving_since: Option<Duration>,
    painted_at: Duration,
}

impl TtyRenderer {
    /// Writes to these streams; progress must be a terminal.
    #[must_use]
    pub fn new(options: RenderOptions, output: Output) -> Self {
        Self {
            live_area: LiveArea::new(options.theme),
            options,
            output,
            progress: Progress::default(),
            held: Held::default(),
            pending: String::new(),
            moving_since: None,
            painted_at: Duration::ZERO,
        }
    }

    fn size(&self) -> (u16, u16) {
        self.options.size.unwrap_or_else(|| console::Term::stderr().size())
    }

    /// Writes permanent lines: at once if nothing moves, otherwise with the next redraw.
    fn stay(&mut self, text: &str) {
        if self.live_area.is_shown() {
            self.pending += text;
        } else {
            self.output.progress(text);
        }
    }

    /// Clears the moving rows and writes the lines held back.
    fn settle(&mut self) {
        let text = self.live_area.hide(self.size()) + &std::mem::take(&mut self.pending);
        self.output.progress(&text);
    }

    fn data(&mut self, text: &str) {
        self.settle();
        self.output.data(text);
    }

    /// Ends planning: nothing moves until the first write.
    fn stand_still(&mut self) {
        self.settle();
        self.moving_since = None;
    }

    fn repaint_if_due(&mut self, now: Moment) {
        let Some(since) = self.moving_since else { return };
        let appears_after = if self.progress.planning.is_empty() { APPEARS_AFTER } else { PLANNING_APPEARS_AFTER };
        if now.elapsed.saturating_sub(since) < appears_after
            || (self.live_area.is_shown() && now.elapsed.saturating_sub(self.painted_at) < REPAINT_EVERY)
        {
            return;
        }
        self.painted_at = now.elapsed;
        let picture = self.picture(now);
        let above = std::mem::take(&mut self.pending);
        let text = self.live_area.paint(&picture, &above, self.size());
        self.output.progress(&text);
    }

    /// The moving part: the header, and a row with its causes for each object that takes time.
    fn picture(&self, now: Moment) -> Picture {
        let theme = self.options.theme;
        let progress = &self.progress;
        let elapsed = stopwatch(now.elapsed.saturating_sub(self.moving_since.unwrap_or(now.elapsed)));
        let elapsed = theme.paint(Role::Quiet, &format!("  {elapsed}"));
        if !progress.planning.is_empty() {
            let header = terminal_safe(&progress.planning).into_owned();
            return Picture { header, tail: elapsed, ..Picture::default() };
        }
        let rows: Vec<&Row> = progress
            .rows()
            .into_iter()
            .filter(|row| matches!(row.phase, Phase::Waiting { .. }) || row.age(now) >= SLOW_WRITE)
            .collect();
        let mut shown: Vec<LiveRow> = chosen(&rows).into_iter().map(|row| self.live_row(row, now)).collect();
        if rows.len() > shown.len() {
            let more = format!("{} and {} more", theme.ellipsis(), rows.len() - shown.len());
            shown.push(LiveRow { spinner: None, text: theme.paint(Role::Quiet, &more) });
        }
        let waiting = match progress.waiting() {
            0 => String::new(),
            count => format!(", {count} waiting"),
        };
        if progress.total == 0 {
            // Unchanged objects that are waited for do not count as changes.
            let header = theme.paint(Role::Strong, &self.progress.doing());
            return Picture { header, bar: None, tail: format!("{waiting}{elapsed}"), rows: shown };
        }
        let noun = if progress.total == 1 { "change" } else { "changes" };
        Picture {
            header: theme.paint(Role::Strong, &self.progress.doing()),
            bar: Some((progress.finished(), progress.total)),
            tail: format!(" {noun}{waiting}{elapsed}"),
            rows: shown,
        }
    }

    fn live_row(&self, row: &Row, now: Moment) -> LiveRow {
        let age = stopwatch(row.age(now));
        let (role, text) = match &row.phase {
            Phase::Writing(operation) => {
                let role = operation_look(*operation, self.options.theme).1;
                (role, self.object_words(role, doing_word(*operation), &row.object, &age, ""))
            }
            Phase::Waiting { message, reasons, .. } => {
                let words = self.object_words(Role::Pointer, "waiting", &row.object, &pad(&age, 5), message);
                (Role::Pointer, words + "\n" + &self.reasons(reasons))
            }
        };
        LiveRow { spinner: Some(role), text: text.trim_end().to_owned() }
    }

    /// Columns of a line; the last one stays free, so that no terminal breaks the line.
    fn width(&self) -> usize {
        usize::from(self.size().1).saturating_sub(1)
    }

    /// Causes below a row.
    fn reasons(&self, reasons: &[String]) -> String {
        hang(&reasons_text(reasons, self.options.theme), self.size().1.saturating_sub(1))
    }

    /// `updated    Secret  shop/web-tls  0.1s  message`; a message that does not fit stands below.
    fn object_words(&self, role: Role, word: &str, object: &ObjectRef, time: &str, message: &str) -> String {
        let theme = self.options.theme;
        let beside = ROW_INDENT + WORD_WIDTH + 2 + 2 + measure_text_width(time).max(TIME_WIDTH);
        let room = self.width().saturating_sub(beside);
        let message = terminal_safe(message);
        let words = |room: usize| {
            let cells = self.progress.columns.within(room).cells(object, room, theme.ellipsis());
            let word = theme.paint(role, &pad(&terminal_safe(word), WORD_WIDTH));
            format!("{word}  {cells}  {}", theme.paint(Role::Quiet, time))
        };
        let (kind, name) = object_columns(object);
        let needed = measure_text_width(&kind).max(self.progress.columns.kind()) + 2 + measure_text_width(&name);
        let left = room.saturating_sub(2 + measure_text_width(&message));
        match message.is_empty() {
            true => words(room).trim_end().to_owned(),
            false if needed <= left => format!("{}  {message}", words(left)),
            false => format!("{}\n{}", words(room).trim_end(), self.reasons(&[message.into_owned()]).trim_end()),
        }
    }

    /// The same with a glyph in front.
    fn object_line(
        &self,
        (role, glyph): (Role, &str),
        word: &str,
        object: &ObjectRef,
        time: &str,
        message: &str,
    ) -> String {
        let sign = self.options.theme.paint(role, glyph);
        format!("  {sign} {}\n", self.object_words(role, word, object, time, message))
    }

    /// The line for a finished object: the word, and the reason if it did not go well.
    fn finished_line(&self, object: &ObjectRef, (end, word): (End, &str), elapsed: Millis, why: &str) -> String {
        let theme = self.options.theme;
        let look = match end {
            End::Good => (Role::Good, theme.glyph("✓", "+")),
            End::Failed | End::Late => (Role::Bad, theme.glyph("✗", "x")),
            End::Open | End::CutOff => (Role::Quiet, theme.glyph("·", "-")),
        };
        if matches!(end, End::Good | End::Late | End::CutOff) {
            return self.object_line(look, word, object, &took(elapsed), why);
        }
        let line = self.object_line(look, word, object, &took(elapsed), "");
        if why.is_empty() { line } else { line + &self.reasons(&[why.to_owned()]) }
    }
}

/// How an object ended, for its line.
#[derive(Clone, Copy)]
enum End {
    Good,
    Failed,
    /// It timed out.
    Late,
    /// The run ended first.
    CutOff,
    /// It is not done, although nothing is wrong with it.
    Open,
}

impl Renderer for TtyRenderer {
    fn event(&mut self, event: &Event, now: Moment) {
        let news = self.progress.note(event, now);
        if news || self.options.verbose {
            self.show(event, now);
        }
        self.repaint_if_due(now);
    }

    fn tick(&mut self, now: Moment) {
        self.repaint_if_due(now);
    }

    fn tick_every(&self) -> Duration {
        if self.moving_since.is_some() { REPAINT_EVERY } else { Duration::from_secs(1) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.settle();
        self.output.finish()
    }
}

impl TtyRenderer {
    fn show(&mut self, event: &Event, now: Moment) {
        let theme = self.options.theme;
        let found = self.held.note(event, &self.options);
        if !found.is_empty() {
            self.stand_still();
            self.output.data(&found);
        }
        match event {
            Event::RunStart { .. } => {
                let line = format!("{}\n\n", theme.paint(Role::Strong, &self.progress.doing()));
                self.stay(&line);
            }
            Event::Group { command, group, namespace, apps } => {
                self.stand_still();
                self.data(&group_text(command, (group, namespace), apps, &self.options));
            }
            Event::AppEnd { .. } => {
                self.stand_still();
                let end = hang(&app_end_text(event, &self.progress, &self.options), self.size().1);
                self.output.progress(&format!("{end}\n"));
            }
            Event::Plan { counts, changes, elapsed, is_known, .. } => {
                self.stand_still();
                if !is_known {
                    self.data(&plan_text(changes, counts, *elapsed, &self.options));
                }
            }
            Event::Preflight { outcome: Outcome::Passed, .. } if self.progress.is_known => self.stand_still(),
            Event::HistoryTrimmed { .. } | Event::Finding { .. } | Event::Completed { .. } => {}
            Event::Preflight { outcome, rules, left_out, broad_waivers, elapsed } => {
                self.stand_still();
                self.data(&preflight_text(*outcome, rules, *elapsed, self.options.look()));
                self.data(&hang(&policy_text(left_out.as_ref(), broad_waivers), self.options.data_width()));
                self.stay("\n");
            }
            Event::ChangeStart { .. } | Event::WaitProgress { .. } => {
                self.moving_since.get_or_insert(now.elapsed);
            }
            // Changes that were never sent are counted at the end.
            Event::ChangeDone { outcome, message, .. } if *outcome == ChangeOutcome::Skipped && message.is_empty() => {}
            Event::ChangeDone { object, operation, outcome, message, elapsed, .. } => {
                let end = match outcome {
                    ChangeOutcome::Ok => End::Good,
                    ChangeOutcome::Failed => End::Failed,
                    ChangeOutcome::Skipped | ChangeOutcome::Requested => End::Open,
                };
                let word = change_word(*operation, *outcome);
                let line = self.finished_line(object, (end, word), *elapsed, message);
                self.stay(&line);
            }
            Event::WaitDone { object, wanted, outcome, message, reasons, elapsed, .. } => {
                let (end, word) = match (outcome, wanted) {
                    (WaitOutcome::Ok, Awaited::Deleted) => (End::Good, "gone"),
                    (WaitOutcome::Ok, Awaited::Ready) => (End::Good, "ready"),
                    (WaitOutcome::Timeout, Awaited::Deleted) => (End::Late, "not gone"),
                    (WaitOutcome::Timeout, Awaited::Ready) => (End::Late, "waiting"),
                    (WaitOutcome::Failed, _) => (End::Failed, "failed"),
                    (WaitOutcome::Interrupted, _) => (End::CutOff, "interrupted"),
                };
                let line = self.finished_line(object, (end, word), *elapsed, message);
                // The final block lists timed-out objects with their causes.
                let over = matches!(end, End::Late | End::CutOff);
                self.stay(&(if over { line } else { line + &self.reasons(reasons) }));
            }
            Event::Log { log } => {
                if log.is_public() || self.options.verbose {
                    let line = format!("{:WORD_WIDTH$}  {}\n", "log", tagged(log));
                    self.stay(&theme.paint(Role::Quiet, &line));
                }
            }
            Event::Retry { request, reason, attempt, delay } => {
                if self.options.verbose || retry_is_news(*attempt, *delay) {
                    let text = format!("{request}: attempt {attempt} failed: {reason}; again in {}", took(*delay));
                    self.stay(&hang(&labelled("retry", Role::Caution, &text, theme), self.size().1));
                }
            }
            Event::Warning { message, object, position, .. } => {
                let message = match object {
                    Some(object) => format!("{object}: {message}"),
                    None => message.clone(),
                };
                self.stay(&hang(&warning_text(&message, position.as_ref(), theme), self.size().1));
            }
            Event::Diagnostic { code, .. } if *code == DiagnosticCode::Planning => {
                self.moving_since.get_or_insert(now.elapsed);
            }
            Event::Diagnostic { message, .. } => self.stay(&hang(&note_text(message, theme), self.size().1)),
            Event::RunEnd { .. } => {
                self.settle();
                let wrote = self.moving_since.take().is_some() && self.progress.planning.is_empty();
                let gap = if wrote { "\n" } else { "" };
                let end = end_text(event, &self.progress, &self.options, Some(self.size().1));
                self.output.progress(&format!("{gap}{end}"));
            }
        }
    }
}

/// The rows to show if there are too many: those with a cause first, then the oldest; in their original order.
fn chosen<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let has_cause = |row: &Row| matches!(&row.phase, Phase::Waiting { reasons, .. } if !reasons.is_empty());
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by_key(|place| !has_cause(rows[*place]));
    places.truncate(ROWS);
    places.sort_unstable();
    places.into_iter().map(|place| rows[place]).collect()
}
