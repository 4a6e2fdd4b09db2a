//! The run as a log: a line for each change of state, a heartbeat during waits, the final block. `12:04:11 apply
//! updated secret/shop/web-tls 0.1s`; times are UTC.

use std::io;
use std::time::Duration;

use pushback_events::{ChangeOutcome, DiagnosticCode, Event, Millis, WaitOutcome};
use pushback_objects::ObjectRef;
use pushback_preflight::Operation;
use pushback_preflight::judge::Outcome;

use super::end_text::{app_end_text, end_text};
use super::group_text::group_text;
use super::judged::Held;
use super::options::RenderOptions;
use super::plan_text::plan_text;
use super::progress::{Phase, Progress, Row, retry_is_news};
use super::renderer::{Moment, Renderer};
use crate::error_text::place;
use crate::escape::terminal_safe;
use crate::finding_text::preflight_text;
use crate::log_text::tagged;
use crate::output::Output;
use crate::policy_text::policy_text;
use crate::theme::Role;
use crate::words::{change_word, doing_word, hang, object_slug, shortened_message, took};

/// Interval of heartbeats. CI services end a job that prints nothing for some minutes.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Most objects named in a heartbeat.
const HEARTBEAT_NAMES: usize = 3;

/// Writes a log.
#[derive(Debug)]
pub struct PlainRenderer {
    options: RenderOptions,
    output: Output,
    progress: Progress,
    held: Held,
    heartbeat: Duration,
    ended: bool,
}

impl PlainRenderer {
    /// Writes to these streams.
    #[must_use]
    pub fn new(options: RenderOptions, output: Output) -> Self {
        Self {
            options,
            output,
            progress: Progress::default(),
            held: Held::default(),
            heartbeat: Duration::ZERO,
            ended: false,
        }
    }

    /// Prints a line with the time in front; the words must be safe to print.
    fn line(&mut self, now: Moment, words: &[&str]) {
        let time = now.wall.strftime("%H:%M:%S");
        let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        let theme = self.options.theme;
        self.output.progress(&format!("{} {}\n", theme.paint(Role::Quiet, &time.to_string()), words.join(" ")));
    }

    fn heartbeat_if_due(&mut self, now: Moment) {
        if self.ended || now.elapsed.saturating_sub(self.heartbeat) < HEARTBEAT {
            return;
        }
        self.heartbeat = now.elapsed;
        let rows = self.progress.rows();
        let mut named: Vec<String> = rows.iter().take(HEARTBEAT_NAMES).map(|row| row_words(row, now)).collect();
        if rows.len() > HEARTBEAT_NAMES {
            named.push(format!("and {} more", rows.len() - HEARTBEAT_NAMES));
        }
        let words = if !self.progress.planning.is_empty() {
            format!("still {}, {}", terminal_safe(&self.progress.planning), took(now.elapsed.into()))
        } else if rows.is_empty() {
            format!("still running, {}", took(now.elapsed.into()))
        } else {
            let progress = &self.progress;
            let done = match progress.total {
                0 => String::new(),
                total => format!("{}/{total} changes, ", progress.finished()),
            };
            format!("still {done}{}", named.join(", "))
        };
        self.line(now, &[&words]);
    }

    fn change_done(
        &mut self,
        now: Moment,
        object: &ObjectRef,
        operation: Operation,
        outcome: ChangeOutcome,
        message: &str,
        elapsed: Millis,
    ) {
        let state = change_word(operation, outcome);
        let slug = object_slug(object);
        let slug = if message.is_empty() { slug } else { format!("{slug}: {}", terminal_safe(message)) };
        let command = terminal_safe(&self.progress.command).into_owned();
        self.line(now, &[&command, state, &slug, &took(elapsed)]);
    }
}

impl Renderer for PlainRenderer {
    fn event(&mut self, event: &Event, now: Moment) {
        if matches!(event, Event::RunStart { .. }) {
            self.heartbeat = now.elapsed;
        }
        self.heartbeat_if_due(now);
        let news = self.progress.note(event, now);
        if !news && !self.options.verbose {
            return;
        }
        let found = self.held.note(event, &self.options);
        self.output.data(&found);
        match event {
            Event::RunStart { command, version, app, cluster, run, .. } => {
                let words = format!(
                    "app={} cluster={} run={} version={} date={} (UTC)",
                    terminal_safe(app),
                    terminal_safe(cluster),
                    terminal_safe(run),
                    terminal_safe(version),
                    now.wall.strftime("%Y-%m-%d")
                );
                self.line(now, &["start", &terminal_safe(command), &words]);
            }
            Event::Group { command, group, namespace, apps } => {
                self.output.data(&group_text(command, (group, namespace), apps, &self.options));
            }
            Event::AppEnd { .. } => self.output.progress(&app_end_text(event, &self.progress, &self.options)),
            Event::Plan { counts, changes, elapsed, is_known: false, .. } => {
                self.output.data(&plan_text(changes, counts, *elapsed, &self.options));
            }
            Event::Preflight { outcome: Outcome::Passed, .. } if self.progress.is_known => {}
            Event::Plan { .. } | Event::HistoryTrimmed { .. } | Event::Finding { .. } | Event::Completed { .. } => {}
            Event::Preflight { outcome, rules, left_out, broad_waivers, elapsed } => {
                self.output.data(&preflight_text(*outcome, rules, *elapsed, self.options.look()));
                self.output.data(&hang(&policy_text(left_out.as_ref(), broad_waivers), self.options.data_width()));
            }
            Event::ChangeStart { object, operation } => {
                if self.options.verbose {
                    self.line(now, &["begin", doing_word(*operation), &object_slug(object)]);
                }
            }
            // Changes that were never sent are counted at the end.
            Event::ChangeDone { outcome, message, .. } if *outcome == ChangeOutcome::Skipped && message.is_empty() => {}
            Event::ChangeDone { object, operation, outcome, message, elapsed, .. } => {
                self.change_done(now, object, *operation, *outcome, message, *elapsed);
            }
            Event::WaitProgress { object, message, reasons, elapsed, .. } => {
                let state = wait_state(message, reasons);
                self.line(now, &["waiting", &object_slug(object), &state, &took(*elapsed)]);
            }
            Event::WaitDone { object, wanted, outcome, message, reasons, elapsed, .. } => {
                let word = if *outcome == WaitOutcome::Ok { wanted.as_str() } else { outcome.as_str() };
                let state = wait_state(message, reasons);
                self.line(now, &["wait", word, &object_slug(object), &state, &took(*elapsed)]);
            }
            Event::Log { log } => {
                if log.is_public() || self.options.verbose {
                    self.line(now, &["log", &tagged(log)]);
                }
            }
            Event::Retry { request, reason, attempt, delay } => {
                if self.options.verbose || retry_is_news(*attempt, *delay) {
                    let words = format!("attempt {attempt} failed: {}; again in", terminal_safe(reason));
                    self.line(now, &["retry", &terminal_safe(request), &words, &took(*delay)]);
                }
            }
            Event::Warning { message, object, position, .. } => {
                let place = position.as_ref().map(|position| place(position) + ":").unwrap_or_default();
                let slug = object.as_ref().map(|object| object_slug(object) + ":").unwrap_or_default();
                self.line(now, &["warning", &place, &slug, &terminal_safe(message)]);
            }
            // During long planning, the heartbeat says what is being done.
            Event::Diagnostic { code, .. } if *code == DiagnosticCode::Planning && !self.options.verbose => {}
            Event::Diagnostic { message, .. } => self.line(now, &["note", &terminal_safe(message)]),
            Event::RunEnd { outcome, exit_code, elapsed, .. } => {
                self.ended = true;
                let exit = format!("exit={exit_code}");
                self.line(now, &["end", outcome.as_str(), &exit, &took(*elapsed)]);
                self.output.progress(&end_text(event, &self.progress, &self.options, None));
            }
        }
    }

    fn tick(&mut self, now: Moment) {
        self.heartbeat_if_due(now);
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

/// `2/4 ready (pod web-6c9f: CrashLoopBackOff)`.
fn wait_state(message: &str, reasons: &[String]) -> String {
    let message = terminal_safe(&shortened_message(message)).into_owned();
    if reasons.is_empty() {
        return message;
    }
    let reasons: Vec<_> = reasons.iter().map(|reason| terminal_safe(&shortened_message(reason)).into_owned()).collect();
    format!("{message} ({})", reasons.join("; ")).trim_start().to_owned()
}

fn row_words(row: &Row, now: Moment) -> String {
    let age = took(row.age(now).into());
    let slug = object_slug(&row.object);
    match &row.phase {
        Phase::Writing(operation) => format!("{} {slug} {age}", doing_word(*operation)),
        Phase::Waiting { message, reasons, .. } => format!("waiting for {slug} {} {age}", wait_state(message, reasons)),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::escape::is_hidden;
    use crate::fixture::{Captured, at, change_done, deploy, hostile, object, run_start, wait_progress};

    fn plain(captured: &Captured) -> Box<PlainRenderer> {
        let (data, progress) = captured.writers();
        Box::new(PlainRenderer::new(RenderOptions::default(), Output::new(data, progress)))
    }

    #[test]
    fn a_deploy_is_a_line_for_each_change_of_state() {
        let captured = Captured::default();
        let mut renderer = plain(&captured);
        for (second, event) in deploy() {
            renderer.event(&event, at(second));
        }
        renderer.finish().expect("written");
        assert_snapshot!(captured.progress(), @"
        12:04:10 start apply app=shop cluster=kind-prod run=4f2a version=0.1.0 date=2026-11-21 (UTC)
        12:04:10 warning shop/web.yaml:17:22: 0644 is read as 420
        12:04:12 apply created configmap/shop/web-settings 0.1s
        12:04:12 apply updated secret/shop/web-tls 0.1s
        12:04:13 retry PATCH Deployment shop/web attempt 3 failed: 429 too many requests; again in 2.0s
        12:04:15 apply updated deployment/shop/web 0.1s
        12:04:15 waiting deployment/shop/web 0/4 ready 0.0s
        12:04:22 waiting deployment/shop/web 2/4 ready (pod web-6c9f: CrashLoopBackOff (exit 1)) 7.0s
        12:04:56 still 2/4 changes, waiting for deployment/shop/web 2/4 ready (pod web-6c9f: CrashLoopBackOff (exit 1)) 41.0s
        12:04:56 wait ready deployment/shop/web 41.2s
        12:04:56 apply deleted service/shop/web-old 0.1s
        12:04:58 wait deleted service/shop/web-old 2.0s
        12:05:22 end succeeded exit=0 1m 12s
        Applied shop to kind-prod in 1m 12s: 1 created, 2 updated, 1 deleted, 18 unchanged.
          slowest   Deployment shop/web 41.2s, Service shop/web-old 2.0s
          warnings  1
        hint: do the next thing
        ");
        assert_snapshot!(captured.data(), @"
          + create
              ConfigMap   shop/web-settings  shop/web.yaml:3
          ~ update
              Deployment  shop/web           shop/web.yaml:12
                spec.replicas  3 -> 4
              Secret      shop/web-tls       shop/web.yaml:40
          - delete
              Service     shop/web-old

        Plan: 1 to create, 2 to update, 1 to delete, 18 unchanged.   0.4s
        Preflight  1 rule passed   0.3s
        ");
    }

    #[test]
    fn silence_is_broken_every_thirty_seconds_by_naming_what_is_waited_for() {
        let captured = Captured::default();
        let mut renderer = plain(&captured);
        renderer.event(&run_start("apply"), at(0));
        renderer
            .event(&wait_progress(&object("apps", "Deployment", "web"), "2/4 ready", &["pod a: pulling"], 0), at(1));
        for second in 2..95 {
            renderer.tick(at(second));
        }
        let text = captured.progress();
        let beats: Vec<&str> = text.lines().filter(|line| line.contains("still")).collect();
        assert_eq!(beats.len(), 3);
        assert_snapshot!(beats[0], @"12:04:40 still waiting for deployment/shop/web 2/4 ready (pod a: pulling) 29.0s");
    }

    #[test]
    fn a_heartbeat_before_anything_is_under_way_says_that_it_runs() {
        let captured = Captured::default();
        let mut renderer = plain(&captured);
        renderer.event(&run_start("apply"), at(0));
        renderer.tick(at(31));
        assert_snapshot!(captured.progress().lines().last().unwrap_or_default(), @"12:04:41 still running, 31.0s");
    }

    #[test]
    fn a_failed_write_says_why_on_its_line() {
        let captured = Captured::default();
        let mut renderer = plain(&captured);
        let message = "spec.replicas: must be a number\nsecond line";
        renderer.event(&run_start("apply"), at(0));
        renderer
            .event(&change_done(&object("", "Secret", "a"), Operation::Update, ChangeOutcome::Failed, message), at(3));
        assert_snapshot!(captured.progress().lines().last().unwrap_or_default(), @r"12:04:13 apply failed secret/shop/a: spec.replicas: must be a number\nsecond line 0.1s");
    }

    #[test]
    fn hostile_text_is_shown_not_obeyed() {
        let captured = Captured::default();
        let mut renderer = plain(&captured);
        for (second, event) in (0..).zip(hostile()) {
            renderer.tick(at(second * 40));
            renderer.event(&event, at(second * 40));
        }
        for text in [captured.data(), captured.progress()] {
            assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
            assert!(text.lines().filter(|line| line.starts_with("error: c")).count() == 0, "{text}");
        }
    }
}
