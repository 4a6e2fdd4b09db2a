//! The judgement of definitions, one release of an operator against another, without a server: `check` on two folders of
//! definitions, which `PUSHBACK_CRDS=OLD:NEW` names.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use super::measure;
use super::table;

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

/// A table, where the folders are named.
pub(crate) fn table() -> Option<String> {
    let folders = std::env::var("PUSHBACK_CRDS").ok()?;
    let (old, new) = folders.split_once(':').expect("PUSHBACK_CRDS=OLD:NEW");
    let size: u64 = [old, new]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .map(|file| file.expect("a file").metadata().expect("its size").len())
        .sum();
    let mut config = tempfile::NamedTempFile::with_suffix(".yaml").expect("a file");
    config.write_all(CONFIG.as_bytes()).expect("written");
    let config = config.path().to_str().expect("a plain path");
    let cluster = format!("dir:{old}");
    let arguments = ["check", "-f", new, "--cluster", &cluster, "--config", config];
    let pushback = Path::new(env!("CARGO_BIN_EXE_pushback"));
    let runs: Vec<_> = (0..RUNS).map(|_| measure::run(pushback, &arguments, Path::new("/dev/null"))).collect();
    let least = |time: fn(&measure::Usage) -> Duration| runs.iter().map(time).min().unwrap_or_default();
    let peak = runs.iter().map(|run| run.peak).max().unwrap_or_default();
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let wall = least(|run| run.wall);
    let met = |met: bool, figure: String| if met { figure } else { format!("**{figure}**") };
    Some(format!(
        "| definitions on both sides | time, least of {RUNS} | CPU | peak memory |\n|---:|---:|---:|---:|\n\
         | {} | {} (≤ 150 ms) | {} | {} (≤ 120) |\n",
        mebibytes(size),
        met(wall <= Duration::from_millis(150), table::seconds(wall)),
        table::seconds(least(|run| run.cpu)),
        met(peak <= 120 << 20, mebibytes(peak)),
    ))
}
