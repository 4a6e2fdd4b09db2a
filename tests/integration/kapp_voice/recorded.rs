//! What was recorded from kapp, and what reads differently here.

use std::path::Path;

/// One command of the recorded session, and what kapp said.
pub(super) struct Step {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// The commands that are replayed; the session of each form is one app from its creation on.
const REPLAYED: [&str; 13] = [
    "01-create",
    "02-noop",
    "03-diff-run",
    "04-update",
    "05-prune-and-failing-wait",
    "06-inspect",
    "07-inspect-tree",
    "08-list",
    "10-invalid",
    "11-unknown-kind",
    "12-other-app",
    "13-delete",
    "14-delete-again",
];

/// Lines that differ, and why; `-` is kapp's, `+` ours.
pub(super) const DIFFERENCES: [(&str, &str); 1] = [(
    r"^[-+] *(\d+|NUM) *(- )? *(data|stringData|password|kind: Secret|type|metadata|creationTimestamp|labels|kapp.k14s.io/[a-z]+):?",
    "the manifest of a Secret that is deleted is not known any more: its values are shown as the cluster has them",
)];

/// The session in one form of output: `tty`, `plain` or `json`.
pub(super) fn steps(form: &str) -> Vec<Step> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/kapp-transcripts/{form}.txt"));
    let text = std::fs::read_to_string(path).expect("a recorded session");
    let steps = text.split("### ").filter(|part| !part.trim().is_empty()).collect::<Vec<_>>();
    let is_replayed = |parts: &&[&str]| REPLAYED.iter().any(|name| parts[0].starts_with(name));
    let steps = steps.chunks(2).filter(is_replayed).map(|parts| {
        let (command, ended) = (parts[0].trim(), parts[1]);
        let (name, command) = command.split_once(": kapp ").expect("a name and a command");
        let (code, said) = ended.split_once("\n--- stdout\n").expect("standard output");
        let (stdout, stderr) = said.split_once("--- stderr\n").expect("standard error");
        Step {
            name: name.to_owned(),
            arguments: command.split(' ').map(str::to_owned).collect(),
            code: code.trim_start_matches("exit ").parse().expect("an exit code"),
            stdout: stdout.to_owned(),
            stderr: stderr.trim_end_matches('\n').to_owned(),
        }
    });
    steps.collect()
}
