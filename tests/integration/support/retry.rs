//! Runs the tests, and each failed one once more, alone, at the end.
//! A test that passes only then is reported as flaky; `tests/flaky.txt` keeps its name until it is repaired.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, run};

use super::binaries::Availability;
use super::case::{TestCase, trials};
use super::cluster::TestCluster;

/// Most failed tests that are run again. More have a common cause, and running them one by one only delays the result.
const MOST: usize = 20;

/// Names of tests that have started and not passed, and the time of each passed test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Tests>>);

#[derive(Debug, Default)]
struct Tests {
    unfinished: BTreeSet<String>,
    passed: Vec<(Duration, String)>,
}

impl Progress {
    /// Runs a test and, if it passes, notes its time.
    pub(crate) fn track(&self, name: &str, test: impl FnOnce()) {
        self.tests().unfinished.insert(name.to_owned());
        let start = Instant::now();
        test();
        TestCluster::clean_up_after_test();
        let mut tests = self.tests();
        tests.unfinished.remove(name);
        tests.passed.push((start.elapsed(), name.to_owned()));
    }

    fn tests(&self) -> std::sync::MutexGuard<'_, Tests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the tests that passed, the slowest first: seconds, a tab, the name.
    fn write_times(&self, file: &Path) -> std::io::Result<()> {
        let mut passed = self.tests().passed.clone();
        passed.sort_unstable_by(|one, other| other.cmp(one));
        let lines = passed.iter().map(|(time, name)| format!("{:.2}\t{name}\n", time.as_secs_f64()));
        std::fs::write(file, lines.collect::<String>())
    }
}

/// Runs `cases` as `arguments` select them. Succeeds if each test passes in its first or its second run.
pub(crate) fn run_with_retry(
    mut arguments: Arguments,
    cases: Vec<TestCase>,
    available: Availability,
    with_browser: bool,
) -> ExitCode {
    let progress = Progress::default();
    let (first, notes) = trials(cases.clone(), available, with_browser, &progress);
    if !arguments.list {
        notes.iter().for_each(|note| report(note));
    }
    let conclusion = run(&arguments, first);
    if let Some(file) = std::env::var_os("PUSHBACK_TIMES")
        && let Err(error) = progress.write_times(Path::new(&file))
    {
        report(&format!("the times of the tests were not written: {error}"));
    }
    let failed = std::mem::take(&mut progress.tests().unfinished);
    if !conclusion.has_failed() || failed.is_empty() || failed.len() > MOST {
        return conclusion.exit_code();
    }

    report(&format!("running failed tests once more, alone: {}", join(&failed)));
    let again = cases.into_iter().filter(|case| failed.contains(&case.name())).collect();
    let (second, _) = trials(again, available, with_browser, &progress);
    arguments.filter = None;
    arguments.skip.clear();
    arguments.test_threads = Some(1);
    let conclusion = run(&arguments, second);
    for name in failed.difference(&progress.tests().unfinished) {
        report(&format!("flaky: {name}"));
    }
    if !conclusion.has_failed() {
        report("each flaky test belongs into tests/flaky.txt, and is repaired in the next change");
    }
    conclusion.exit_code()
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
