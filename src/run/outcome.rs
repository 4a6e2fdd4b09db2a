//! From a run's result to its end: outcome, exit code, what to do next.

use std::collections::BTreeSet;
use std::time::Duration;

use pushback_deploy::apply::engine::{Outcome, Progress};
use pushback_deploy::apply::readiness;
use pushback_events::exit::ExitCode;
use pushback_events::stop::Stop;
use pushback_events::{Counts, Event, RunFailure, RunOutcome, UnableRule, Unfinished, UnfinishedLine};
use pushback_objects::{Audience, Finding, ObjectExt, ObjectRef, Remedy, RemedyKind, Severity};
use pushback_preflight::judge::RunReport;
use pushback_preflight::{causes, registry};

use super::error::CommandError;

/// Most finalizers explained at the end of a run.
const FINALIZERS: usize = 3;

/// The end of a run.
#[derive(Clone, Debug)]
pub struct End {
    /// Exit code.
    pub code: ExitCode,
    /// Outcome of the run.
    pub outcome: RunOutcome,
    /// Number of changes made, by operation.
    pub done: Counts,
    /// The error; empty if there is none.
    pub error: String,
    /// What to do next.
    pub hints: Vec<String>,
    /// Objects that are not done.
    pub unfinished: Vec<UnfinishedLine>,
    /// The reason of the error, if it is one that programs can use.
    pub failure: Option<RunFailure>,
    /// Findings for which preflight refused.
    pub refusals: Vec<Finding>,
}

impl End {
    /// An end without unfinished objects.
    pub fn new(code: ExitCode, outcome: RunOutcome, done: Counts) -> Self {
        Self {
            code,
            outcome,
            done,
            error: String::new(),
            hints: Vec::new(),
            unfinished: Vec::new(),
            failure: None,
            refusals: Vec::new(),
        }
    }

    /// The end of a run that failed before anything was written.
    pub fn error(error: &CommandError) -> Self {
        let outcome = match error.code {
            ExitCode::Refused => RunOutcome::Refused,
            ExitCode::Stale => RunOutcome::Stale,
            ExitCode::Locked => RunOutcome::Locked,
            ExitCode::Interrupted | ExitCode::Terminated => RunOutcome::Interrupted,
            ExitCode::TimedOut => RunOutcome::TimedOut,
            _ => RunOutcome::Failed,
        };
        Self {
            error: error.message(),
            hints: error.hints(),
            failure: error.failure.clone(),
            ..Self::new(error.code, outcome, Counts::default())
        }
    }

    /// The end of a run that preflight refused.
    pub fn refused(report: &RunReport) -> Self {
        let refusing = |finding: &&Finding| finding.severity == Severity::Error && finding.waived.is_none();
        let hint = if report.findings.iter().filter(refusing).any(Finding::is_waivable) {
            "correct what the findings name, or accept one with --waive FINGERPRINT=REASON or a preflightWaivers entry"
        } else if report.findings.iter().any(|finding| refusing(&finding)) {
            "correct what the findings name"
        } else if report.rules.iter().any(|rule| rule.name == registry::SERVER && !rule.unable.is_empty()) {
            "grant what is forbidden, repair what does not answer, or have its backend in the same input"
        } else {
            "remove what keeps the rule from its facts, or name the rules to run without it (--preflight)"
        };
        let mut hints = vec![hint.to_owned()];
        hints.extend(decidable(report.findings.iter().filter(refusing)));
        if report.findings.iter().filter(refusing).filter(|finding| finding.rule != registry::SERVER).nth(1).is_some() {
            let more =
                "the same command with --verbose shows each finding, and the preflightWaivers entries that accept them";
            hints.push(more.to_owned());
        }
        hints.extend(next(report));
        let unable = report.rules.iter().flat_map(|rule| {
            rule.unable.iter().map(|reason| UnableRule { rule: rule.name.clone(), reason: reason.clone() })
        });
        Self {
            hints,
            failure: Some(RunFailure::Refused { unable: unable.collect() }),
            refusals: report.findings.iter().filter(refusing).cloned().collect(),
            ..Self::new(ExitCode::Refused, RunOutcome::Refused, Counts::default())
        }
    }

    /// The end of a check.
    pub fn of_check(report: &RunReport) -> Self {
        match report.outcome.refuses() {
            true => Self::refused(report),
            false if report.rules.is_empty() => Self::new(ExitCode::Success, RunOutcome::Unchecked, Counts::default()),
            false => Self::new(ExitCode::Success, RunOutcome::Passed, Counts::default()),
        }
    }

    /// The end of a comparison. With `exit_status`, the code says whether there are changes.
    pub fn of_diff(has_changes: bool, exit_status: bool) -> Self {
        let (code, word) = match (has_changes, exit_status) {
            (true, true) => (ExitCode::Changes, RunOutcome::Changes),
            (false, true) => (ExitCode::NoChanges, RunOutcome::Unchanged),
            (true, false) => (ExitCode::Success, RunOutcome::Changes),
            (false, false) => (ExitCode::Success, RunOutcome::Unchanged),
        };
        Self::new(code, word, Counts::default())
    }

    /// The end of an apply. With `exit_status`, the code says whether anything changed: what was written, and the
    /// `others` that count although nothing is written.
    pub fn of_apply(outcome: Outcome, had_changes: bool, exit_status: bool, others: bool) -> Self {
        let has_changed = outcome.done.writes() > 0 || others;
        match Self::engine(outcome) {
            end if end.code != ExitCode::Success => end,
            end => Self {
                outcome: if had_changes { end.outcome } else { RunOutcome::Unchanged },
                code: match (exit_status, has_changed) {
                    (false, _) => ExitCode::Success,
                    (true, true) => ExitCode::Changes,
                    (true, false) => ExitCode::NoChanges,
                },
                ..end
            },
        }
    }

    /// The end of a deletion. With `exit_status`, the code says whether anything changed.
    pub fn of_delete(outcome: Outcome, exit_status: bool) -> Self {
        match Self::engine(outcome) {
            end if end.code == ExitCode::Success && exit_status => Self { code: ExitCode::Changes, ..end },
            end => end,
        }
    }

    /// The end of a deletion after which objects are still there that go along with the app's.
    pub fn still_there(left: &[ObjectRef], limit: Duration) -> Self {
        let line = |object: &ObjectRef| UnfinishedLine {
            object: object.clone(),
            state: Unfinished::NotDeleted,
            message: String::new(),
            reasons: Vec::new(),
            containers: Vec::new(),
            elapsed: None,
        };
        Self {
            error: "waiting timed out".to_owned(),
            unfinished: left.iter().map(line).collect(),
            failure: Some(RunFailure::WaitTimeout { limit: limit.into(), per_object: false }),
            ..Self::new(ExitCode::TimedOut, RunOutcome::TimedOut, Counts::default())
        }
    }

    /// The last event of a run.
    pub fn event(self, requests: u64, elapsed: Duration) -> Event {
        Event::RunEnd {
            outcome: self.outcome,
            exit_code: self.code.code(),
            done: self.done,
            error: self.error,
            hints: self.hints,
            unfinished: self.unfinished,
            failure: self.failure.map(Box::new),
            requests,
            elapsed: elapsed.into(),
        }
    }

    /// The end of a run of the engine.
    fn engine(outcome: Outcome) -> Self {
        let any = |test: &dyn Fn(&Progress) -> bool| outcome.progress.iter().any(test);
        let write_failed = any(&|progress| matches!(progress, Progress::WriteFailed(_)));
        let never_ready = any(&|progress| matches!(progress, Progress::NeverReady(_)));
        let timed_out = any(&|progress| matches!(progress, Progress::TimedOut(_)));
        let resume = "run the same command again: it goes on where this run stopped".to_owned();
        let (code, word, error, hints) = if outcome.lock_lost {
            let error = pushback_app::lease::LockLost.to_string();
            (ExitCode::Partial, RunOutcome::Failed, error, vec![resume])
        } else if let Some(code) = outcome.stop.exit_code() {
            match outcome.stop {
                Stop::TimedOut => {
                    // As where waiting takes too long, a write without an answer decides.
                    let is_cut_off = any(&|progress| matches!(progress, Progress::Writing(_)));
                    let code = if is_cut_off { ExitCode::Partial } else { code };
                    let error = "the run's time limit (--timeout) has passed".to_owned();
                    (code, RunOutcome::TimedOut, error, vec![resume])
                }
                stop => {
                    let signal = match stop {
                        Stop::Interrupted => "SIGINT",
                        Stop::HungUp => "SIGHUP",
                        _ => "SIGTERM",
                    };
                    (code, RunOutcome::Interrupted, format!("stopped by {signal}"), vec![resume])
                }
            }
        } else if write_failed {
            let count = outcome.progress.iter().filter(|progress| matches!(progress, Progress::WriteFailed(_))).count();
            let objects = if count == 1 { "1 object" } else { &format!("{count} objects") };
            let hint = match outcome.incorrect {
                0 => resume,
                incorrect if incorrect == count => CORRECT.to_owned(),
                _ => format!("{CORRECT}; what else failed is tried again then"),
            };
            (ExitCode::Partial, RunOutcome::Failed, format!("{objects} could not be written"), vec![hint])
        } else if outcome.late && any(&|progress| matches!(progress, Progress::Writing(_))) {
            (
                ExitCode::Partial,
                RunOutcome::TimedOut,
                "time ran out before everything was written".to_owned(),
                vec![resume],
            )
        } else if never_ready {
            let hint = "correct the manifest and run again; `pushback inspect` shows the app".to_owned();
            (
                ExitCode::Failed,
                RunOutcome::Failed,
                "an object has failed and will not become ready".to_owned(),
                vec![hint],
            )
        } else if timed_out || (outcome.late && any(&|progress| *progress != Progress::Done)) {
            let mut hints = vec!["run again to continue waiting, or allow more time with --wait-timeout".to_owned()];
            hints.extend(held_by_finalizers(&outcome));
            if outcome.unfinished.iter().any(|line| line.state == Unfinished::NotReady) {
                hints
                    .push("to skip waiting for an object, annotate it with kapp.k14s.io/disable-wait: \"\"".to_owned());
            }
            (ExitCode::TimedOut, RunOutcome::TimedOut, "waiting timed out".to_owned(), hints)
        } else if any(&|progress| !matches!(progress, Progress::Done | Progress::Going)) {
            let hint = "please report it; running again is safe".to_owned();
            (
                ExitCode::Defect,
                RunOutcome::Failed,
                "a defect in pushback: the run ended before everything was done".to_owned(),
                vec![hint],
            )
        } else {
            (ExitCode::Success, RunOutcome::Succeeded, String::new(), held_by_finalizers(&outcome))
        };
        let is_late = code == ExitCode::TimedOut && outcome.stop == Stop::No;
        let failure = is_late.then(|| RunFailure::WaitTimeout {
            limit: if outcome.late { outcome.limit } else { outcome.limit_of_object }.into(),
            per_object: !outcome.late,
        });
        Self { error, hints, failure, unfinished: outcome.unfinished, ..Self::new(code, word, outcome.done) }
    }
}

/// What helps where the server refuses the input itself.
const CORRECT: &str = "correct what the server refuses; the next run goes on where this one stopped";

/// A hint for each finalizer that holds up a deletion: who has to remove it.
fn held_by_finalizers(outcome: &Outcome) -> Vec<String> {
    let is_going =
        |progress: &Progress| matches!(progress, Progress::Going | Progress::Waiting(_) | Progress::TimedOut(_));
    let objects = outcome.progress.iter().zip(&outcome.objects).filter(|(progress, _)| is_going(progress));
    let going = || objects.clone().filter_map(|(_, object)| object.as_deref()).filter(|object| object.is_terminating());
    let finalizers: BTreeSet<&str> = going().flat_map(readiness::finalizers).collect();
    let hint =
        |finalizer: &&str| format!("finalizer {finalizer} is removed by {}", readiness::finalizer_owner(finalizer));
    let mut hints: Vec<String> = going().filter_map(readiness::crd_remedy).take(FINALIZERS).collect();
    hints.extend(finalizers.iter().take(FINALIZERS).map(hint));
    if going().next().is_some() {
        hints.push("`pushback inspect` shows what is still there; the same command again waits for it".to_owned());
    }
    hints
}

/// The commands that lead out of what refuses, in their order: those of the worst cause for which there are some. A waiver is the
/// next step only where nothing else refuses.
fn next(report: &RunReport) -> Vec<String> {
    let causes = causes(&report.findings);
    let refusing = || causes.iter().filter(|cause| cause.severity == Severity::Error && !cause.is_waived());
    let has_command = |way: &&Remedy| way.audience == Audience::Deployer && !way.commands.is_empty();
    let is_waiver = |way: &&Remedy| way.kind == RemedyKind::Accept;
    let ways = || refusing().flat_map(|cause| &cause.remedies).filter(has_command);
    let all_waivable = refusing().all(|cause| cause.remedies.iter().filter(has_command).any(|way| is_waiver(&way)));
    let way = ways().find(|way| !is_waiver(way)).or_else(|| ways().next().filter(|_| all_waivable));
    let commands = way.into_iter().flat_map(|way| &way.commands).take(COMMANDS).enumerate();
    commands.map(|(index, command)| format!("{}: {command}", if index == 0 { "next" } else { "then" })).collect()
}

/// Most commands of one way out that hints name.
const COMMANDS: usize = 6;

/// What would let changes through that affect no object that is there: the setting, and what it accepts.
fn decidable<'f>(refusing: impl Iterator<Item = &'f Finding>) -> Option<String> {
    let refusing: Vec<&Finding> = refusing.collect();
    let under = |word: &str| refusing.iter().filter(|finding| finding.passes_under == Some(word)).count();
    let (loud, quiet) = (under("auto"), under("decide"));
    let of_all =
        |count: usize| if count == refusing.len() { "all of them".to_owned() } else { format!("{count} of them") };
    match (loud, quiet) {
        (0, 0) => None,
        (loud, 0) => Some(format!(
            "no object that is there is affected by {}, and writers would see an error: `liveObjects: auto` for \
             CRDUpgradeSafety in preflightRules makes warnings of them",
            of_all(loud)
        )),
        (loud, quiet) => Some(format!(
            "no object that is there is affected by {}: `liveObjects: decide` for CRDUpgradeSafety in preflightRules makes \
             warnings of them, and accepts that values written later are dropped or changed without an error",
            of_all(loud + quiet)
        )),
    }
}

#[cfg(test)]
mod tests {
    use pushback_objects::{ObjectRef, Verdict};

    use super::*;

    #[test]
    fn a_refusal_names_the_setting_that_lets_pass_what_affects_no_object() {
        let finding = |passes_under| {
            let mut finding = Finding::new("CRDUpgradeSafety", "c", Verdict::Breaking, ObjectRef::default(), "m");
            finding.passes_under = passes_under;
            finding
        };
        let (auto, decide, none) = (finding(Some("auto")), finding(Some("decide")), finding(None));
        assert_eq!(decidable([&none, &none].into_iter()), None);
        insta::assert_snapshot!(decidable([&auto, &none, &auto].into_iter()).unwrap_or_default(), @"no object that is there is affected by 2 of them, and writers would see an error: `liveObjects: auto` for CRDUpgradeSafety in preflightRules makes warnings of them");
        insta::assert_snapshot!(decidable([&auto, &decide].into_iter()).unwrap_or_default(), @"no object that is there is affected by all of them: `liveObjects: decide` for CRDUpgradeSafety in preflightRules makes warnings of them, and accepts that values written later are dropped or changed without an error");
    }
}
