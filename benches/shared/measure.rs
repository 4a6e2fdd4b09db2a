//! Runs a program and says what it took: time, processor time, peak memory. The program is started by a fresh copy of
//! this one, because a child begins with its parent's peak memory as its own.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The first argument of the copy.
pub(crate) const FLAG: &str = "--measure";

/// What a program took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// Bytes.
    pub(crate) peak: u64,
    /// What it wrote to standard output.
    pub(crate) stdout: String,
}

/// The binary that is measured: `PUSHBACK_BINARY`, or the one that was built with the benchmark.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("PUSHBACK_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_pushback").into(), PathBuf::from)
}

/// Runs a program to its end, and insists on success.
pub(crate) fn run(program: &Path, arguments: &[&str], kubeconfig: &Path) -> Usage {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (result, stdout) = (place.path().join("result"), place.path().join("stdout"));
    let mut command = Command::new(std::env::current_exe().expect("this program's path"));
    command.arg(FLAG).arg(&result).arg(program).args(arguments);
    command.env("KUBECONFIG", kubeconfig).env("HOME", place.path()).stdin(Stdio::null());
    command.stdout(std::fs::File::create(&stdout).expect("a file"));
    let output = command.stderr(Stdio::piped()).output().expect("a copy of this program");
    let text = std::fs::read_to_string(&stdout).expect("its output");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<&str> = text.lines().rev().take(3).collect();
    assert!(output.status.success(), "{program:?} {arguments:?}: {}\n{stderr}\n{tail:#?}", output.status);
    let usage: Value = serde_json::from_slice(&std::fs::read(&result).expect("a result")).expect("JSON");
    let number = |name: &str| usage[name].as_u64().expect("a number");
    Usage {
        wall: Duration::from_micros(number("wall")),
        cpu: Duration::from_micros(number("cpu")),
        peak: number("peak"),
        stdout: text,
    }
}

/// The copy: starts the program, waits for it, and leaves what it took in a file.
#[cfg(unix)]
pub(crate) fn copy(arguments: &[String]) -> ExitCode {
    use wait4::Wait4 as _;
    let [result, program, rest @ ..] = arguments else { return ExitCode::FAILURE };
    let began = Instant::now();
    let child = Command::new(program).args(rest).spawn().expect("the program starts");
    let used = child.wait4().expect("the program is waited for");
    let wall = began.elapsed();
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let usage = json!({
        "wall": micros(wall), "cpu": micros(used.rusage.utime + used.rusage.stime), "peak": used.rusage.maxrss,
    });
    std::fs::write(result, usage.to_string()).expect("the result is written");
    if used.status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
