//! What was recorded from kapp, and what reads differently here.

use std::path::Path;

use regex::Regex;
use serde_json::Value;

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
pub(super) const DIFFERENCES: [(&str, &str); 2] = [
    (
        r"^[-+] *(\d+|NUM) *(- )? *(data|stringData|password|kind: Secret|type|metadata|creationTimestamp|labels|kapp.k14s.io/[a-z]+):?",
        "the manifest of a Secret that is deleted is not known any more: its values are shown as the cluster has them",
    ),
    (
        r#"^[-+] *"?TIME: (---- applying [12] changes \[0/2 done\]|create service/lb )"#,
        "what starts while the first write is not answered is told as a batch of its own",
    ),
];

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
            stdout: without_versioned(stdout, form, name),
            stderr: stderr.trim_end_matches('\n').to_owned(),
        }
    });
    steps.collect()
}

/// The output as if the session had no versioned object, since such objects are not supported yet.
fn without_versioned(text: &str, form: &str, step: &str) -> String {
    let versioned = if step.starts_with("05") { 2 } else { 1 };
    let text = match form {
        "json" => {
            let mut whole: Value = serde_json::from_str(text).expect("one object");
            let is_versioned = |value: &Value| value.to_string().contains("ver-ver");
            if let Some(rows) = whole.pointer_mut("/Tables/0/Rows").and_then(Value::as_array_mut) {
                rows.retain(|row| !is_versioned(row));
            }
            whole["Lines"].as_array_mut().expect("lines").retain(|line| !is_versioned(line));
            if let Some(blocks) = whole["Blocks"].as_array_mut() {
                blocks.drain(..versioned);
            }
            let mut bytes = Vec::new();
            let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
            serde::Serialize::serialize(&whole, &mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
                .expect("JSON");
            String::from_utf8(bytes).expect("text").replace('<', "\\u003c")
        }
        "tty" => {
            let block = Regex::new(r"(?s)@@ [a-z]+ configmap/ver-ver-\d.*?\n@@ ").expect("a pattern");
            (0..versioned).fold(text.to_owned(), |text, _| block.replace(&text, "@@ ").into_owned())
        }
        _ => {
            let block = Regex::new(r"(?s)^ .*?\n( +0 \+| +0  |  \.\.\.\n)").expect("a pattern");
            (0..versioned).fold(text.to_owned(), |text, _| block.replace(&text, "$1").into_owned())
        }
    };
    let text = Regex::new(r"(?m)^.*ver-ver.*\n").expect("a pattern").replace_all(&text, "").into_owned();
    let numbers: &[(&str, &str)] = match step.split('-').next() {
        Some("05") => &[("3 delete", "1 delete"), ("4 changes", "2 changes"), ("/4 done", "/2 done"), ("[3/", "[1/")],
        Some("01" | "03" | "04") => &[
            ("4 create", "3 create"),
            ("1 create", "0 create"),
            ("4 reconcile", "3 reconcile"),
            ("/4 done", "/3 done"),
            ("3 changes", "2 changes"),
            ("[3/", "[2/"),
            ("[4/", "[3/"),
        ],
        _ => &[],
    };
    numbers.iter().fold(text, |text, (from, to)| text.replace(from, to))
}
