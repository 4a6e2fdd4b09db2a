//! State of a run as far as its events show it: what is under way, what took longest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pushback_events::{Awaited, DiagnosticCode, Event, Millis, WaitOutcome};
use pushback_objects::{ObjectKey, ObjectRef};
use pushback_preflight::Operation;

use super::renderer::Moment;
use crate::escape::terminal_safe;
use crate::words::ObjectColumns;

/// Number of longest waits reported at the end.
const SLOWEST: usize = 3;

/// The state of a run.
#[derive(Debug, Default)]
pub struct Progress {
    /// `apply`, `delete`, `diff`, `check`; empty before the start.
    pub command: String,
    /// App name.
    pub app: String,
    /// The command and the name of the group that the app belongs to, where the run is about one.
    pub group: Option<(String, String)>,
    /// The cluster, as people know it.
    pub cluster: String,
    /// Number of changes that the plan writes.
    pub total: usize,
    /// Number of changes attempted so far.
    pub tried: usize,
    /// Whether the plan was shown and agreed to before.
    pub is_known: bool,
    /// Current action before the plan or verdict is known; empty afterwards.
    pub planning: String,
    /// Number of distinct warnings so far.
    pub warnings: usize,
    /// The longest waits, longest first.
    pub slowest: Vec<(Millis, ObjectRef)>,
    /// Columns of kinds and names.
    pub columns: ObjectColumns,
    written: BTreeSet<ObjectKey>,
    rows: BTreeMap<ObjectKey, Row>,
    warned: BTreeSet<String>,
    next_order: u64,
}

/// One object under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The object.
    pub object: ObjectRef,
    /// What is happening to it.
    pub phase: Phase,
    /// Start time on the monotonic clock.
    pub since: Duration,
    order: u64,
}

/// What is happening to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It is being written.
    Writing(Operation),
    /// It is being waited for.
    Waiting {
        /// `ready` or `deleted`.
        wanted: Awaited,
        /// Its state.
        message: String,
        /// Causes, without duplicates.
        reasons: Vec<String>,
    },
}

impl Row {
    /// Time since its start.
    #[must_use]
    pub fn age(&self, now: Moment) -> Duration {
        now.elapsed.saturating_sub(self.since)
    }
}

impl Progress {
    /// What the run is doing: `Applying shop to kind-prod`.
    pub fn doing(&self) -> String {
        let (app, cluster) = (terminal_safe(&self.app), terminal_safe(&self.cluster));
        match self.command.as_str() {
            "apply" => format!("Applying {app} to {cluster}"),
            "delete" => format!("Deleting {app} from {cluster}"),
            "check" => format!("Checking {app} against {cluster}"),
            _ => format!("Comparing {app} with {cluster}"),
        }
    }

    /// Applies an event. Returns whether it is news: not an unchanged wait, a repeated warning, or the end of a wait
    /// that took no time.
    pub fn note(&mut self, event: &Event, now: Moment) -> bool {
        match event {
            Event::RunStart { command, app, cluster, .. } => {
                self.command.clone_from(command);
                self.app.clone_from(app);
                self.cluster.clone_from(cluster);
            }
            Event::Group { command, group, .. } => {
                self.planning.clear();
                self.group = Some((command.clone(), group.clone()));
            }
            Event::Plan { counts, changes, is_known, .. } => {
                self.is_known = *is_known;
                self.planning.clear();
                // A run that plans again starts over.
                self.total = counts.writes();
                self.tried = 0;
                self.rows.clear();
                self.written.clear();
                self.columns = ObjectColumns::new(changes.iter().map(|change| &change.object));
            }
            Event::ChangeStart { object, operation } => {
                self.planning.clear();
                self.start_row(object, Phase::Writing(*operation), now.elapsed);
            }
            Event::ChangeDone { object, operation, .. } => {
                self.rows.remove(&object.key());
                if operation.writes() && self.written.insert(object.key()) {
                    self.tried += 1;
                }
            }
            Event::WaitProgress { object, wanted, message, reasons, elapsed, .. } => {
                let phase = Phase::Waiting { wanted: *wanted, message: message.clone(), reasons: each_once(reasons) };
                if let Some(row) =
                    self.rows.get_mut(&object.key()).filter(|row| matches!(row.phase, Phase::Waiting { .. }))
                {
                    return std::mem::replace(&mut row.phase, phase.clone()) != phase;
                }
                self.start_row(object, phase, now.elapsed.saturating_sub(Duration::from_millis(elapsed.0)));
            }
            Event::WaitDone { object, outcome, elapsed, .. } => {
                let seen = self.rows.remove(&object.key()).is_some();
                if *outcome == WaitOutcome::Ok {
                    let place = self.slowest.partition_point(|(longest, _)| longest >= elapsed);
                    self.slowest.insert(place, (*elapsed, object.clone()));
                    self.slowest.truncate(SLOWEST);
                }
                return seen || *outcome != WaitOutcome::Ok || elapsed.0 >= 1_000;
            }
            Event::Warning { code, message, object, position } => {
                let new = self.warned.insert(format!("{code}\0{message}\0{object:?}\0{position:?}"));
                self.warnings += usize::from(new);
                return new;
            }
            Event::Diagnostic { code, message, .. } if *code == DiagnosticCode::Planning => {
                self.planning.clone_from(message);
            }
            Event::Preflight { .. } => self.planning.clear(),
            Event::Finding { .. }
            | Event::Log { .. }
            | Event::Retry { .. }
            | Event::Diagnostic { .. }
            | Event::Completed { .. }
            | Event::HistoryTrimmed { .. }
            | Event::AppEnd { .. }
            | Event::RunEnd { .. } => {}
        }
        true
    }

    fn start_row(&mut self, object: &ObjectRef, phase: Phase, since: Duration) {
        self.next_order += 1;
        self.rows.insert(object.key(), Row { object: object.clone(), phase, since, order: self.next_order });
    }

    /// Objects under way, by start time.
    #[must_use]
    pub fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.values().collect();
        rows.sort_unstable_by_key(|row| row.order);
        rows
    }

    /// Number of objects being waited for.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.rows.values().filter(|row| matches!(row.phase, Phase::Waiting { .. })).count()
    }

    /// Number of planned changes that are neither pending nor waited for.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.tried - self.rows.keys().filter(|key| self.written.contains(key)).count().min(self.tried)
    }
}

fn each_once(reasons: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    reasons.iter().filter(|reason| seen.insert(reason.as_str())).cloned().collect()
}

/// Whether a retry is worth a line without `-v`: one that keeps failing or waits long.
#[must_use]
pub fn retry_is_news(attempt: u32, delay: Millis) -> bool {
    attempt >= 3 || delay.0 >= 2_000
}

#[cfg(test)]
mod tests {
    use pushback_events::{ChangeOutcome, Counts};

    use super::*;
    use crate::fixture::{at, change_done, object, wait_done, wait_progress};

    #[test]
    fn a_wait_that_looks_as_before_is_no_news() {
        let mut progress = Progress::default();
        let web = object("apps", "Deployment", "web");
        assert!(progress.note(&wait_progress(&web, "1/2 ready", &["pod a: x", "pod a: x"], 0), at(1)));
        assert!(!progress.note(&wait_progress(&web, "1/2 ready", &["pod a: x"], 1_000), at(2)));
        assert!(progress.note(&wait_progress(&web, "1/2 ready", &[], 2_000), at(3)));
        assert_eq!(progress.rows()[0].age(at(11)), Duration::from_secs(10));
    }

    #[test]
    fn a_change_is_finished_when_it_is_written_and_no_longer_waited_for() {
        let mut progress = Progress::default();
        let (web, job) = (object("apps", "Deployment", "web"), object("batch", "Job", "migrate"));
        for each in [&web, &job] {
            progress.note(&Event::ChangeStart { object: each.clone(), operation: Operation::Update }, at(0));
            progress.note(&change_done(each, Operation::Update, ChangeOutcome::Ok, ""), at(0));
        }
        progress.note(&wait_progress(&web, "0/1 ready", &[], 0), at(0));
        assert_eq!((progress.tried, progress.finished(), progress.waiting()), (2, 1, 1));
        progress.note(&wait_done(&web, WaitOutcome::Ok, 5_000), at(5));
        assert_eq!((progress.tried, progress.finished(), progress.waiting()), (2, 2, 0));
    }

    #[test]
    fn what_was_ready_at_once_is_no_news_but_a_failure_always_is() {
        let mut progress = Progress::default();
        let web = object("", "ConfigMap", "web");
        assert!(!progress.note(&wait_done(&web, WaitOutcome::Ok, 10), at(0)));
        assert!(progress.note(&wait_done(&web, WaitOutcome::Failed, 10), at(0)));
    }

    #[test]
    fn a_run_that_planned_anew_starts_over() {
        let mut progress = Progress::default();
        let web = object("apps", "Deployment", "web");
        progress.note(&change_done(&web, Operation::Update, ChangeOutcome::Failed, "conflict"), at(0));
        progress.note(&wait_progress(&web, "0/1 ready", &[], 0), at(0));
        let counts = Counts { update: 3, noop: 4, ..Counts::default() };
        progress.note(&Event::Plan { counts, changes: Vec::new(), is_known: false, elapsed: Millis(1) }, at(1));
        assert_eq!((progress.tried, progress.finished(), progress.total, progress.rows().len()), (0, 0, 3, 0));
    }

    #[test]
    fn the_three_longest_waits_are_kept() {
        let mut progress = Progress::default();
        for (name, millis) in [("a", 5), ("b", 50), ("c", 1), ("d", 20), ("e", 50)] {
            progress.note(&wait_done(&object("", "Pod", name), WaitOutcome::Ok, millis), at(0));
        }
        let names: Vec<&str> = progress.slowest.iter().map(|(_, object)| object.name.as_str()).collect();
        assert_eq!(names, ["b", "e", "d"]);
    }
}
