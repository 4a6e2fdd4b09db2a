//! What runs cost on a real control plane of their own, each beside what plain requests cost in the same run.
//! `cargo bench --bench cluster -- [PART…] [--rounds N] [--quick]`; parts: `processor`, `releases` (the definitions
//! of two, too, where `PUSHBACK_CRDS=OLD:NEW` names folders of them), `apps`, `plans`, `mix`, `peers`, `custom`, `migrate`,
//! `definitions`, `conversions`, `round-trips`, `curve`; none means all. `UPDATE_DOCS=1` writes the tables and the drawing
//! into `docs/contributing`.

mod app;
#[path = "../shared/chain.rs"]
mod chain;
mod chart;
mod conversions;
#[path = "../shared/definitions.rs"]
mod definitions;
mod delay;
#[path = "../shared/measure.rs"]
mod measure;
#[path = "../shared/models.rs"]
mod models;
#[path = "../shared/objects.rs"]
mod objects;
mod parts;
mod peers;
mod plans;
mod raw;
mod releases;
mod round_trips;
mod split;
#[path = "../../tests/integration/support"]
#[expect(dead_code, reason = "the tests use more of their support than this")]
mod support {
    pub(crate) mod api;
    pub(crate) mod binaries;
    pub(crate) mod certificates;
    pub(crate) mod cluster;
    pub(crate) mod go_toolchain;
    pub(crate) mod https_client;
    pub(crate) mod poll;
    pub(crate) mod supervisor;

    pub(crate) use cluster::{Options, TestCluster};
    pub(crate) use poll::wait_until;
}
mod table;
#[path = "../shared/work.rs"]
#[expect(dead_code, reason = "the bundle of CRDs is for the other benchmark")]
mod work;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use self::parts::Bench;

/// Everything that can be measured by itself, in the order in which it is.
const PARTS: [&str; 12] = [
    "processor",
    "releases",
    "apps",
    "plans",
    "mix",
    "peers",
    "custom",
    "migrate",
    "definitions",
    "conversions",
    "round-trips",
    "curve",
];

/// Marks around the tables in docs/contributing/benchmarks.md.
const MARKS: (&str, &str) = ("<!-- cargo bench --bench cluster -->\n", "<!-- until here -->");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(measure::FLAG) => return measure::copy(&arguments[1..]),
        Some(parts::DIFF_FLAG) => return parts::diff_once(),
        _ => {}
    }
    let mut bench = Bench::new();
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            // cargo's own.
            "--bench" => {}
            "--quick" => bench.quick = true,
            "--rounds" => bench.rounds = rest.next().and_then(|number| number.parse().ok()).unwrap_or(bench.rounds),
            part if PARTS.contains(&part) => wanted.push(part),
            other => {
                return complain(&format!("{other:?} is no part; there are {}", PARTS.join(", ")));
            }
        }
    }
    let runs = |part: &str| wanted.is_empty() || wanted.contains(&part);
    let mut text = String::new();
    for part in PARTS.into_iter().filter(|part| runs(part)) {
        progress(part);
        let section = match part {
            "processor" => bench.processor(),
            "releases" => releases::tables(),
            "apps" => bench.apps(),
            "plans" => plans::tables(if bench.quick { 100 } else { 1_000 }, bench.rounds),
            "mix" => bench.mix(),
            "peers" => bench.peers(),
            "custom" => bench.custom(),
            "migrate" => bench.migrate(),
            "definitions" => bench.definitions(),
            "conversions" => conversions::table(if bench.quick { 200 } else { 2_000 }),
            "round-trips" => bench.round_trips(),
            _ => bench.curve(),
        };
        let _ = writeln!(text, "{section}");
    }
    print(&text);
    if std::env::var_os("UPDATE_DOCS").is_some() && wanted.is_empty() {
        update_readme(&text);
    }
    ExitCode::SUCCESS
}

fn update_readme(text: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/contributing/benchmarks.md"));
    let readme = std::fs::read_to_string(path).expect("docs/contributing/benchmarks.md");
    let (before, rest) = readme.split_once(MARKS.0).expect("a mark where the tables begin");
    let (_, after) = rest.split_once(MARKS.1).expect("a mark where they end");
    let text = format!("{before}{}\n{}\n\n{}{after}", MARKS.0, text.trim(), MARKS.1);
    std::fs::write(path, text).expect("docs/contributing/benchmarks.md is written");
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a benchmark says where it is")]
fn progress(text: &str) {
    eprintln!("{text}");
}

fn complain(text: &str) -> ExitCode {
    progress(text);
    ExitCode::FAILURE
}
