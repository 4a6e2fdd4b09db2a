//! The transcripts of the README, the tour and the examples are what really happens: each ```` ```console ```` block is run, in order, at a
//! terminal, in a fresh copy of the examples. `UPDATE_DOCS=1` writes what happens instead of comparing.

use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::support::terminal::run_at_terminal;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_transcripts_of_the_readme_are_what_happens,
        Nothing: the_readme_lists_every_exit_code,
    ]
}

const COLUMNS: u16 = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// Documents with transcripts.
const TRANSCRIPTS: [&str; 8] = [
    "README.md",
    "docs/pull-request.md",
    "docs/tour.md",
    "examples/from-helm/README.md",
    "examples/kustomize/README.md",
    "examples/policy-repository/README.md",
    "examples/release-train/README.md",
    "examples/upgrade-models/README.md",
];

/// A document as pieces: text that stays, and commands with the lines that follow them.
enum Piece {
    Text(String),
    Command { command: String, output: String },
}

fn pieces(readme: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut in_transcript = false;
    for line in readme.lines() {
        in_transcript = line == "```console" || (in_transcript && line != "```");
        match (line.strip_prefix("$ "), pieces.last_mut()) {
            (Some(command), _) if in_transcript => {
                pieces.push(Piece::Command { command: command.to_owned(), output: String::new() });
            }
            (None, Some(Piece::Command { output, .. })) if in_transcript => *output += &format!("{line}\n"),
            (_, Some(Piece::Text(text))) => *text += &format!("{line}\n"),
            _ => pieces.push(Piece::Text(format!("{line}\n"))),
        }
    }
    pieces
}

/// A folder with the examples, where the commands of the README are run one after the other.
struct Tour {
    directory: tempfile::TempDir,
    code: i32,
}

impl Tour {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        copy(&root().join("examples"), &directory.path().join("examples"));
        Self { directory, code: 0 }
    }

    fn run(&mut self, command: &str) -> String {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_pushback"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = binary.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
        let mut shell = Command::new("sh");
        // `$?` is the code of the command before.
        shell.args(["-c", &format!("(exit {}); {command}", self.code)]).current_dir(&self.directory);
        shell.env_clear().env("PATH", std::env::join_paths(folders).expect("a path"));
        shell.env("HOME", self.directory.path()).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        // A machine where git knows nobody: neither a configuration nor a host name to guess from.
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        shell.envs([
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.useConfigOnly"),
            ("GIT_CONFIG_VALUE_0", "true"),
        ]);
        let shown = run_at_terminal(shell, COLUMNS);
        self.code = shown.code;
        shown.screen
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in from.read_dir().expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// Without what differs from run to run: how long things took, dates and digests of plans, and which of several writes at a time ended first.
fn without_chance(output: &str) -> String {
    let times = Regex::new(r"\b\d+\.\d+s|\b\d+m \d+s").expect("a pattern");
    let dates = Regex::new(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b[0-9a-f]{64}\b").expect("a pattern");
    let timeless = |line: &str| dates.replace_all(&times.replace_all(line, "0.0s"), "(differs)").into_owned();
    let mut lines: Vec<String> = output.trim_end().lines().map(|line| timeless(line.trim_end())).collect();
    for run in lines.chunk_by_mut(|one, other| one.starts_with("  ✓ ") && other.starts_with("  ✓ ")) {
        run.sort_unstable();
    }
    lines.join("\n")
}

fn the_transcripts_of_the_readme_are_what_happens() {
    TRANSCRIPTS.into_iter().for_each(transcripts_happen);
}

fn transcripts_happen(document: &str) {
    let path = root().join(document);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
    let mut tour = Tour::start();
    let mut written = String::new();
    let mut differences = Vec::new();
    let mut commands = 0;
    for piece in pieces(&text) {
        match piece {
            Piece::Text(text) => written += &text,
            Piece::Command { command, output } => {
                commands += 1;
                let screen = tour.run(&command);
                // An empty line between two commands is for the reader.
                let gap = if output.ends_with("\n\n") || output == "\n" { "\n" } else { "" };
                let screen = if screen.is_empty() { screen } else { screen + "\n" };
                if without_chance(&screen) != without_chance(&output) {
                    differences.push(format!("$ {command}\n--- {document}\n{output}--- what happens\n{screen}"));
                    written += &format!("$ {command}\n{screen}{gap}");
                } else {
                    written += &format!("$ {command}\n{output}");
                }
            }
        }
    }
    assert!(commands > 2, "only {commands} commands were found in {document}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, written).expect("the document is written");
        return;
    }
    assert!(
        differences.is_empty(),
        "{document} is stale; UPDATE_DOCS=1 cargo test --test integration readme corrects it\n{}",
        differences.join("\n")
    );
}

fn the_readme_lists_every_exit_code() {
    let source = std::fs::read_to_string(root().join("crates/events/src/exit.rs")).expect("exit codes");
    let code = Regex::new(r"(?m)^    \w+ = (\d+),").expect("a pattern");
    let (_, table) =
        readme().split_once("## Exit codes").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a chapter");
    let codes: Vec<String> = code.captures_iter(&source).map(|found| found[1].to_owned()).collect();
    assert!(codes.len() > 5, "no exit codes were found");
    for code in codes {
        let cell = Regex::new(&format!(r"(?m)^\|[^|]*\b{code}\b[^|]*\|")).expect("a pattern");
        assert!(cell.is_match(&table), "exit code {code} is not in the README");
    }
}
