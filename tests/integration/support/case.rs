//! The tests as a list, each with what it needs of a cluster: libtest cannot leave a test out while
//! it runs, so this binary brings its own `main`.

use std::io::Write as _;

use libtest_mimic::{Failed, Trial};

use super::binaries::Availability;
use super::browser::NO_BROWSER;
use super::retry::Progress;

/// If more tests than these are left out, they are only counted.
const MOST_NAMED: usize = 20;

/// What a test needs besides the crate itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No cluster.
    Nothing,
    /// A headless browser, and no cluster.
    Browser,
    /// Helm and kustomize, which are built with Go, and no cluster.
    Renderers,
    /// An API server with etcd.
    ApiServer,
    /// A whole cluster: controllers, scheduler and a Node on which Pods run.
    Controllers,
}

/// One test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestCase {
    module: &'static str,
    function: &'static str,
    needs: Needs,
    run: fn(),
}

impl TestCase {
    /// What [`cases!`] calls.
    pub(crate) fn new(module: &'static str, function: &'static str, needs: Needs, run: fn()) -> Self {
        // The name of this crate says nothing to who reads the list.
        let module = module.split_once("::").map_or(module, |(_, rest)| rest);
        Self { module, function, needs, run }
    }

    /// The module's path below `tests/integration/`, as in `smoke` or `apply::waiting`.
    pub(crate) fn module(&self) -> &'static str {
        self.module
    }

    /// Module and function.
    pub(crate) fn name(&self) -> String {
        format!("{}::{}", self.module, self.function)
    }

    /// Why this test is left out here; `None` where it is not.
    fn left_out(&self, available: Availability, with_browser: bool) -> Option<&'static str> {
        match (self.needs, available) {
            (Needs::Browser, _) => (!with_browser).then_some(NO_BROWSER),
            (Needs::ApiServer | Needs::Controllers | Needs::Renderers, Availability::Skipped) => {
                Some("PUSHBACK_TEST_CLUSTER=skip leaves out what needs Go")
            }
            (Needs::Renderers, Availability::ApiServer) => {
                Some("Helm and kustomize are built with Go 1.26; install it")
            }
            (Needs::Controllers, Availability::ApiServer) => {
                Some("KUBEBUILDER_ASSETS has no controllers and no nodes; install Go 1.26 to run these too")
            }
            // Where there is nothing at all the test fails instead: without an explicit wish, a run that
            // proves nothing must not look like a pass.
            _ => None,
        }
    }

    fn trial(self, available: Availability, with_browser: bool, progress: Progress) -> Trial {
        let left_out = self.left_out(available, with_browser);
        Trial::test(self.name(), move || {
            if let Some(reason) = left_out {
                return Err(Failed::from(reason));
            }
            let needs_go = matches!(self.needs, Needs::ApiServer | Needs::Controllers | Needs::Renderers);
            if needs_go && available == Availability::Nothing {
                return Err(Failed::from(super::binaries::NOTHING_AVAILABLE));
            }
            progress.track(&self.name(), self.run);
            Ok(())
        })
        .with_ignored_flag(left_out.is_some())
    }
}

/// The trials, and a line for each reason to leave some out. Tests that start and do not pass stay unfinished in `progress`.
pub(crate) fn trials(
    cases: Vec<TestCase>,
    available: Availability,
    with_browser: bool,
    progress: &Progress,
) -> (Vec<Trial>, Vec<String>) {
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    for case in &cases {
        if let Some(reason) = case.left_out(available, with_browser) {
            match left_out.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(case.name()),
                None => left_out.push((reason, vec![case.name()])),
            }
        }
    }
    let notes = left_out
        .into_iter()
        .map(|(reason, names)| {
            let named = if names.len() > MOST_NAMED { String::new() } else { format!(": {}", names.join(", ")) };
            format!("left out: {} of {} tests ({reason}){named}", names.len(), cases.len())
        })
        .collect();
    let trials = cases.into_iter().map(|case| case.trial(available, with_browser, progress.clone()));
    (trials.collect(), notes)
}

/// The tests of a module: `cases![Nothing: reads_a_file, Controllers: a_deployment_becomes_ready]`.
macro_rules! cases {
    ($($needs:ident: $function:ident),* $(,)?) => {
        vec![$($crate::support::TestCase::new(
            module_path!(),
            stringify!($function),
            $crate::support::Needs::$needs,
            $function,
        )),*]
    };
}
pub(crate) use cases;

/// How many rounds a test makes that finds more the longer it runs: `few` in an ordinary run, `full` where
/// PUSHBACK_ROUNDS is `full`, and as many as it says where it is a number.
pub(crate) fn rounds(few: usize, full: usize) -> usize {
    match std::env::var("PUSHBACK_ROUNDS").ok().as_deref() {
        None => few,
        Some("full") => full,
        Some(number) => {
            number.parse().unwrap_or_else(|_| panic!("PUSHBACK_ROUNDS={number} is neither a number nor full"))
        }
    }
}

/// Prints a line where `PUSHBACK_SHOW` is set.
pub(crate) fn show(line: &str) {
    if std::env::var_os("PUSHBACK_SHOW").is_some() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
