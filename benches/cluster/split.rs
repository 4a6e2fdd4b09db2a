//! What the judgement of definitions is made of: the library's own calls, one after the other on one thread, each the
//! least of several runs. What the process takes beyond them is the rest: folder, plan, findings, report, start and end.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pushback_crd::schema::cel::Program;
use pushback_crd::schema::contain::{compare, count_differences};
use pushback_crd::schema::invalid::problems;
use pushback_crd::schema::pattern::Pattern;
use pushback_crd::schema::pipeline::Server;
use pushback_crd::schema::{CelRule, Schema};

use super::definitions::{documents, pairs, schemas, texts};
use super::table;

const RUNS: usize = 9;

/// How long each part takes.
pub(crate) struct Split {
    /// Bytes of both sides.
    pub(crate) bytes: u64,
    parts: Vec<(&'static str, Duration)>,
}

impl Split {
    /// Measures with these folders.
    pub(crate) fn of(folders: [&str; 2]) -> Self {
        let texts = folders.map(texts);
        let both = texts.each_ref().map(|texts| documents(texts));
        let [old, new] = both.each_ref().map(|documents| schemas(documents));
        let (mut patterns, mut rules) = (BTreeSet::new(), Vec::new());
        old.values().chain(new.values()).for_each(|schema| collect(schema, &mut patterns, &mut rules));
        let walk = || pairs(&old, &new).map(|[old, new]| count_differences(old.schema, new.schema)).sum::<usize>();
        let judge = || pairs(&old, &new).map(|[old, new]| compare(&old, &new, Server::default()).len()).sum::<usize>();
        let (read_patterns, read_rules) = (
            least(|| patterns.iter().filter(|pattern| Pattern::parse(pattern).is_ok()).count()),
            least(|| rules.iter().filter(|rule| Program::of(rule).is_ok()).count()),
        );
        let walked = least(walk);
        let parts = vec![
            ("reading YAML, with the place of every node", least(|| texts.each_ref().map(|texts| documents(texts)))),
            ("reading schemas", least(|| both.each_ref().map(|documents| schemas(documents)))),
            (
                "what the server would refuse in the new ones",
                least(|| both[1].iter().map(problems).collect::<Vec<_>>()),
            ),
            ("every pattern read once", read_patterns),
            ("every CEL rule read once", read_rules),
            ("walk over both schemas of a version", walked),
            ("proofs, witnesses and their confirmation", least(judge).saturating_sub(walked)),
        ];
        let bytes = texts.iter().flatten().map(|text| text.len() as u64).sum();
        Self { bytes, parts }
    }

    /// The parts beside the processor time of the whole.
    pub(crate) fn table(&self, whole: Duration) -> String {
        let mut text = String::from("| part of that `check` | CPU | share |\n|---|---:|---:|\n");
        let known: Duration = self.parts.iter().map(|(_, time)| *time).sum();
        let rest = ("rest: folder, plan, findings, report, start and end", whole.saturating_sub(known));
        for (what, time) in self.parts.iter().chain([&rest]) {
            let share = 100.0 * time.as_secs_f64() / whole.as_secs_f64();
            let _ = writeln!(text, "| {what} | {} | {share:.1} % |", table::seconds(*time));
        }
        text
    }
}

/// The patterns and rules of a schema.
fn collect<'s>(schema: &'s Schema, patterns: &mut BTreeSet<&'s str>, rules: &mut Vec<&'s CelRule>) {
    patterns.extend(schema.pattern.as_deref());
    rules.extend(&schema.rules);
    schema.children().for_each(|child| collect(child, patterns, rules));
}

/// The least time that a piece of work takes.
fn least<T>(work: impl Fn() -> T) -> Duration {
    let once = |_| {
        let began = Instant::now();
        let result = work();
        let took = began.elapsed();
        drop(black_box(result));
        took
    };
    (0..RUNS).map(once).min().unwrap_or_default()
}
