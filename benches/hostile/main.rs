//! Measures `check` of hostile CRDs, each an upgrade of its own: time and peak memory, the slowest first.
//! `cargo bench --bench hostile -- [NAME…]`; `PUSHBACK_BINARY=PATH` measures another binary.

mod crds;
#[path = "../shared/measure.rs"]
#[expect(dead_code, reason = "another benchmark counts processor time")]
mod measure;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use self::measure::Usage;

/// Target for the time of one check.
const MOST_TIME: Duration = Duration::from_secs(1);
/// Target for its peak memory, in MiB.
const MOST_MEMORY: u64 = 300;
/// With warnings alone the check succeeds; only a run that succeeds is measured.
const CONFIG: &str = "apiVersion: pushback.dev/v1alpha1
kind: Config
preflightRules:
- {name: CRDUpgradeSafety, config: {mode: warn}}
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == measure::FLAG) {
        return measure::copy(&arguments[1..]);
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| *argument != "--bench").collect();
    let pairs = crds::pairs().into_iter();
    let pairs = pairs.filter(|pair| wanted.is_empty() || wanted.iter().any(|name| pair.name.contains(name.as_str())));
    let mut measured: Vec<(String, Usage)> = pairs.map(|pair| (pair.name, check(&pair.old, &pair.new))).collect();
    assert!(!measured.is_empty(), "none of the CRDs has such a name: {wanted:?}");
    measured.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.wall));
    print("| CRD | time | peak memory |\n|---|---:|---:|");
    for (name, Usage { wall, peak, .. }) in &measured {
        print(&format!("| {name} | {:.2} s | {} MiB |", wall.as_secs_f64(), peak >> 20));
    }
    let is_within = |(_, usage): &&(String, Usage)| usage.wall <= MOST_TIME && usage.peak >> 20 <= MOST_MEMORY;
    let (count, within) = (measured.len(), measured.iter().filter(is_within).count());
    print(&format!("\n{within} of {count} within {MOST_TIME:?} and {MOST_MEMORY} MiB"));
    ExitCode::SUCCESS
}

fn check(old: &Value, new: &Value) -> Usage {
    let place = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: String| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
    };
    write("old/crd.json", old.to_string());
    write("new/crd.json", new.to_string());
    write("config.yaml", CONFIG.to_owned());
    let path = |name: &str| place.path().join(name).display().to_string();
    let cluster = format!("dir:{}", path("old"));
    let (new, config) = (path("new"), path("config.yaml"));
    let arguments = ["check", "-a", "hostile", "--cluster", &cluster, "-f", &new, "--config", &config];
    measure::run(&measure::binary(), &arguments, Path::new("none"))
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn print(text: &str) {
    println!("{text}");
}
