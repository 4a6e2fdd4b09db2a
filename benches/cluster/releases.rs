//! One release of an operator against another, without a server: models, and the definitions that `PUSHBACK_CRDS=OLD:NEW`
//! names two folders of. Whole processes, and what the judgement of definitions is made of.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use super::models::{COMPONENTS, models};
use super::{measure, split, table};

/// Runs; the least of them is what the work takes where nobody else is at work.
const RUNS: usize = 20;

/// Findings are what is measured, no reason to fail.
const CONFIG: &str = "\
apiVersion: pushback.dev/v1alpha1
kind: Config
preflightRules:
- name: CRDUpgradeSafety
  config: {mode: warn}
";

/// What a command may take: time, and mebibytes.
type Targets = (Option<Duration>, Option<u64>);

/// The tables.
pub(crate) fn tables() -> String {
    let mut text = format!("| without a server | time, least of {RUNS} | CPU | peak memory |\n|---|---:|---:|---:|\n");
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| place.path().join(name).to_str().expect("a plain path").to_owned();
    let files = [path("old.yaml"), path("new.yaml")];
    for (file, model) in files.iter().zip(models()) {
        std::fs::File::create(file).expect("a file").write_all(model.as_bytes()).expect("written");
    }
    let diff = ["upgrade", "diff", "--from", &files[0], "--to", &files[1], "--fail-on", "never"];
    let targets = (Some(Duration::from_millis(50)), None);
    text += &row(&format!("`upgrade diff` of models of {COMPONENTS} components"), &diff, targets).0;
    let Ok(folders) = std::env::var("PUSHBACK_CRDS") else { return text };
    let (old, new) = folders.split_once(':').expect("PUSHBACK_CRDS=OLD:NEW");
    let config = path("config.yaml");
    std::fs::write(&config, CONFIG).expect("a Config");
    let cluster = format!("dir:{old}");
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let split = split::Split::of([old, new]);
    let of = format!("of {} of definitions on both sides", mebibytes(split.bytes));
    let check = ["check", "-a", "bench", "-f", new, "--cluster", &cluster, "--config", &config];
    let targets = (Some(Duration::from_millis(150)), Some(120));
    let (line, cpu) = row(&format!("`check` {of}"), &check, targets);
    text += &line;
    let diff = ["upgrade", "diff-crds", "--from", old, "--to", new, "--fail-on", "never"];
    text += &row(&format!("`upgrade diff-crds` {of}"), &diff, (None, None)).0;
    let _ = write!(text, "\n{}", split.table(cpu));
    text
}

/// A command as a row, and its processor time.
fn row(what: &str, arguments: &[&str], (time, memory): Targets) -> (String, Duration) {
    let pushback = &measure::binary();
    let runs: Vec<_> = (0..RUNS).map(|_| measure::run(pushback, arguments, Path::new("/dev/null"))).collect();
    let least = |of: fn(&measure::Usage) -> Duration| runs.iter().map(of).min().unwrap_or_default();
    let (wall, cpu) = (least(|run| run.wall), least(|run| run.cpu));
    let peak = runs.iter().map(|run| run.peak).max().unwrap_or_default() >> 20;
    let line = format!(
        "| {what} | {} | {} | {} |\n",
        table::beside(&table::seconds(wall), time.map(|most| (wall <= most, format!("{} ms", most.as_millis())))),
        table::seconds(cpu),
        table::beside(&format!("{peak} MiB"), memory.map(|most| (peak <= most, most.to_string()))),
    );
    (line, cpu)
}
