//! Runs the tests, and each failed one once more, alone, at the end.
//! A test that passes only then is reported as flaky; `tests/flaky.txt` keeps its name until it is repaired.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, run};

use super::binaries::Availability;
use super::case::{TestCase, trials};

/// Most failed tests that are run again. More have a common cause, and running them one by one only delays the result.
const MOST: usize = 20;

/// Names of the tests that have started and have not passed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfinished(Arc<Mutex<BTreeSet<String>>>);

impl Unfinished {
    /// Runs a test, and forgets its name if it passes.
    pub(crate) fn track(&self, name: &str, test: impl FnOnce()) {
        self.names().insert(name.to_owned());
        test();
        self.names().remove(name);
    }

    fn names(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `cases` as `arguments` select them. Succeeds if each test passes in its first or its second run.
pub(crate) fn run_with_retry(
    mut arguments: Arguments,
    cases: Vec<TestCase>,
    available: Availability,
    with_browser: bool,
) -> ExitCode {
    let unfinished = Unfinished::default();
    let (first, notes) = trials(cases.clone(), available, with_browser, &unfinished);
    if !arguments.list {
        notes.iter().for_each(|note| report(note));
    }
    let conclusion = run(&arguments, first);
    let failed = std::mem::take(&mut *unfinished.names());
    if !conclusion.has_failed() || failed.is_empty() || failed.len() > MOST {
        return conclusion.exit_code();
    }

    report(&format!("running failed tests once more, alone: {}", join(&failed)));
    let again = cases.into_iter().filter(|case| failed.contains(&case.name())).collect();
    let (second, _) = trials(again, available, with_browser, &unfinished);
    arguments.filter = None;
    arguments.skip.clear();
    arguments.test_threads = Some(1);
    let conclusion = run(&arguments, second);
    let failed_twice = unfinished.names();
    for name in failed.difference(&failed_twice) {
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
