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
const REPLAYED: [&str; 4] = ["01-create", "02-noop", "03-diff-run", "04-update"];

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
            stdout: without_versioned(stdout, form),
            stderr: stderr.trim_end_matches('\n').to_owned(),
        }
    });
    steps.collect()
}

/// The output as if the session had no versioned object, since such objects are not supported yet.
fn without_versioned(text: &str, form: &str) -> String {
    let text = if form == "json" {
        let mut whole: Value = serde_json::from_str(text).expect("one object");
        let is_versioned = |value: &Value| value.to_string().contains("ver-ver");
        whole["Tables"][0]["Rows"].as_array_mut().expect("rows").retain(|row| !is_versioned(row));
        whole["Lines"].as_array_mut().expect("lines").retain(|line| !is_versioned(line));
        if let Some(blocks) = whole["Blocks"].as_array_mut() {
            blocks.remove(0);
        }
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        serde::Serialize::serialize(&whole, &mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
            .expect("JSON");
        String::from_utf8(bytes).expect("text").replace('<', "\\u003c")
    } else {
        let block = if form == "tty" {
            r"(?s)@@ create configmap/ver-ver-\d.*?\n@@ "
        } else {
            r"(?s)^ .*?\n( +0 \+| +\.\.\.\n)"
        };
        let replaced = if form == "tty" { "@@ " } else { "$1" };
        let text = Regex::new(block).expect("a pattern").replace(text, replaced);
        Regex::new(r"(?m)^.*ver-ver.*\n").expect("a pattern").replace_all(&text, "").into_owned()
    };
    let numbers = [
        ("4 create", "3 create"),
        ("4 reconcile", "3 reconcile"),
        ("1 create", "0 create"),
        ("/4 done", "/3 done"),
        ("3 changes", "2 changes"),
        ("[3/", "[2/"),
        ("[4/", "[3/"),
    ];
    numbers.iter().fold(text, |text, (from, to)| text.replace(from, to))
}
