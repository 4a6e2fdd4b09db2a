//! A session under kapp's name, and its output made comparable: times, ages, numbers and generated names replaced.

use std::path::Path;

use regex::Regex;
use serde_json::Value;

use super::recorded::Step;
use crate::support::{Pushback, Ran, TestCluster};

pub(super) struct Session {
    pushback: Pushback,
    namespace: String,
}

impl Session {
    pub(super) fn alone() -> Self {
        Self { pushback: Pushback::new(), namespace: String::new() }
    }

    pub(super) fn on(cluster: &TestCluster) -> Self {
        let namespace = cluster.namespace("tr");
        let pushback = Pushback::on(cluster).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", namespace.as_str());
        for number in 1..=6 {
            let name = format!("in-{number}.yaml");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kapp-transcripts").join(&name);
            let text = std::fs::read_to_string(path).expect("an input");
            pushback.write(&name, text);
        }
        Self { pushback, namespace }
    }

    /// The binary under kapp's name.
    pub(super) fn link(&self, arguments: &[&str]) -> Ran {
        let path = self.pushback.directory().join("kapp");
        if !path.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pushback"), &path).expect("a link");
        }
        self.pushback.run_in_shell(&format!("./kapp {}", arguments.join(" ")))
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        self.pushback.write(path, text);
    }

    pub(super) fn answer(&self, arguments: &[&str], answer: &str) -> Ran {
        self.pushback.run_with_input(arguments, answer.as_bytes())
    }

    /// Runs a recorded command; the lines that differ from what kapp said, kapp's with `-`, ours with `+`.
    pub(super) fn replay(&self, step: &Step) -> Vec<String> {
        let arguments: Vec<&str> = step
            .arguments
            .iter()
            .map(|argument| if argument == "tr" { self.namespace.as_str() } else { argument.as_str() })
            .collect();
        let ran = self.pushback.run(&arguments);
        let [stdout, stderr] = [&ran.stdout, &ran.stderr].map(|text| text.replace(&self.namespace, "tr"));
        assert_eq!(ran.code, step.code, "{}\n{stdout}\n{stderr}", step.name);
        assert_eq!(comparable(&stderr).trim_end(), comparable(&step.stderr).trim_end(), "{}", step.name);
        let (recorded, ours) = (comparable(&step.stdout), comparable(&stdout));
        let diff = similar::TextDiff::from_lines(&recorded, &ours);
        let changes = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
        changes.map(|change| format!("{}{}", change.tag(), change.value().trim_end())).collect()
    }
}

/// What differs from run to run, and what stands in its place.
const REPLACED: [(&str, &str); 14] = [
    (r"\d{1,2}:\d\d:\d\d[AP]M", "TIME"),
    (r"\d{19}", "LABEL"),
    (r"v1\.[0-9a-f]{32}", "ASSOCIATION"),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    // Apps of other tests.
    (r" \(hint: found app 'app' in other namespaces: [^)]*\)", ""),
    (r"web-[0-9a-f]{5,10}(-[a-z0-9]{5})?", "web-GENERATED"),
    (r"lb-[a-z0-9]{5}\b", "lb-GENERATED"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "MOMENT"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}", "UID"),
    (r#"resourceVersion: \\?"\d+\\?""#, "resourceVersion: N"),
    // An age, with what pads it. A limit is no age.
    (r"([^r]) \b\d+s\b *", "$1 AGE "),
    (r#"\t\d+s *|"\d+s""#, "\tAGE"),
    // Lines behind `managedFields`: their numbers depend on how many managers an object has, and which.
    (r"(?m)^ *(2\d|[3-9]\d|\d{3}),( *\d+)", "NUM,NUM"),
    (r"(?m)^ *([7-9]|[12]\d|[3-9]\d|\d{3})     -|^ *(2\d|[3-9]\d|\d{3}) \+", "NUM"),
];

/// JSON with the rows of its tables in an order that does not depend on generated names; any other text as it is.
fn with_sorted_rows(text: &str) -> String {
    let Ok(mut whole) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let generated = Regex::new(r"(web|lb)-[a-z0-9]{5,10}(-[a-z0-9]{5})?$").expect("a pattern");
    for table in whole["Tables"].as_array_mut().into_iter().flatten() {
        let rows = table["Rows"].as_array_mut().expect("rows");
        rows.sort_by_cached_key(|row| {
            let name = row["name"].as_str().unwrap_or_default();
            (generated.replace(name, "$1-").into_owned(), row["kind"].to_string())
        });
    }
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(&whole, &mut serializer).expect("JSON");
    String::from_utf8(bytes).expect("text")
}

/// The text without what differs from run to run. How often an object was looked at, what a busy machine started and did
/// together, and how many steps that took, differs too.
fn comparable(text: &str) -> String {
    let text = &with_sorted_rows(text);
    // In JSON the lines of a diff are one string.
    let mut text = Regex::new(r"\\n([ 0-9])").expect("a pattern").replace_all(text, "\n$1").into_owned();
    for (pattern, word) in REPLACED {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, word).into_owned();
    }
    // Names that are generated come in any order.
    let skipped = Regex::new(
        r#"TIME: (ongoing: | +\^| +L |---- (waiting on|applying) \d+ changes )|^NUM +(\.: |f:|- apiV|-? *fieldsV?|manager: |operation: |time: )"#,
    );
    let skipped = skipped.expect("a pattern");
    let started = Regex::new(r#"TIME: (create|update|delete|noop|ok:) |web-GENERATED"#).expect("a pattern");
    let diff = Regex::new(r"^ *(\d|NUM)|^ +\.\.\.").expect("a pattern");
    let columns = Regex::new(r" *(\t)| {2,}|\s+$").expect("a pattern");
    let mut lines: Vec<String> = Vec::new();
    let mut together = 0;
    for line in text.lines().filter(|line| !skipped.is_match(line)) {
        // Columns are as wide as the name of a namespace.
        lines.push(if diff.is_match(line) { line.to_owned() } else { columns.replace_all(line, " $1").into_owned() });
        together = if started.is_match(line) { together + 1 } else { 0 };
        let start = lines.len() - together;
        lines[start..].sort();
    }
    lines.iter().map(|line| line.to_owned() + "\n").collect()
}
