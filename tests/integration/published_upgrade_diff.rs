//! The published description of an upgrade diff engine, statement by statement: each with the command that shows it and
//! what that prints. `PUSHBACK_SHOW=1` prints the table. `tests/data/published/README.md` lists its snippets.

mod commands;
mod generation;
mod matching;
mod schemas;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_statement_of_the_description_is_shown_by_a_command,
        Nothing: every_snippet_stands_as_a_fixture_that_says_what_was_added,
        Nothing: the_guides_that_the_description_points_to_are_there,
    ]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn every_statement_of_the_description_is_shown_by_a_command() {
    let mut walk = Walk::start();
    matching::walk(&mut walk);
    schemas::walk(&mut walk);
    generation::walk(&mut walk);
    commands::walk(&mut walk);
    walk.end();
}

/// A walk through the description: a folder with its snippets, and what was shown so far.
struct Walk {
    place: Pushback,
    table: String,
    statements: usize,
    wrong: String,
}

impl Walk {
    /// With the fixtures below `work`, the definitions below `crds`, and the suite's releases below `knowledge`.
    fn start() -> Self {
        let place = Pushback::new();
        copy(&root().join("tests/data/published"), &place.directory());
        copy(&root().join("tests/data/published/suite"), &place.directory().join("knowledge"));
        copy(&root().join("tests/data/diff-crds"), &place.directory().join("crds"));
        copy(&root().join("tests/data/upgrade/experiments"), &place.directory().join("worked"));
        Self { place, table: String::new(), statements: 0, wrong: String::new() }
    }

    fn chapter(&mut self, title: &str) {
        let _ =
            write!(self.table, "\n## {title}\n\n| statement | command | exit | what it printed |\n|---|---|---|---|\n");
    }

    /// Runs a command line, and holds what `probe` takes from it against what is expected.
    fn shows(&mut self, statement: &str, command: &str, code: i32, probe: impl Fn(&Ran) -> String, expected: &[&str]) {
        let ran = self.place.run(&command.split(' ').collect::<Vec<_>>());
        let shown = if ran.code == code { probe(&ran) } else { String::new() };
        self.statements += 1;
        let lines: Vec<&str> = shown.lines().collect();
        let cell = |text: &str| text.replace('|', "\\|");
        let printed: Vec<String> = lines.iter().map(|line| format!("`{}`", cell(line))).collect();
        let _ = writeln!(
            self.table,
            "| {} | `pushback {}` | {} | {} |",
            cell(statement),
            cell(command),
            ran.code,
            printed.join("<br>")
        );
        if ran.code != code || lines != expected {
            let _ = writeln!(
                self.wrong,
                "{statement}\n  {command}\n  expected {code}: {expected:#?}\n  came {}: {lines:#?}\n{}",
                ran.code, ran.stderr
            );
        }
    }

    fn end(self) {
        if std::env::var_os("PUSHBACK_SHOW").is_some() {
            let _ = writeln!(std::io::stderr(), "# {} statements\n{}", self.statements, self.table);
        }
        assert!(self.wrong.is_empty(), "{}", self.wrong);
        assert!(self.statements >= 55, "{} statements were walked", self.statements);
    }
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let to = to.join(file.strip_prefix(from).expect("below it"));
        std::fs::create_dir_all(to.parent().expect("a parent")).expect("folders");
        std::fs::copy(&file, &to).expect("a copy");
    }
}

/// Every file below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// How components were paired: a line for each row of a report.
fn pairs(ran: &Ran) -> String {
    let report = ran.json();
    let line = |row: &Value| match row["score"].as_f64() {
        Some(score) => format!(
            "{} {} <- {} {score:.4}\n",
            text(row, "matchType"),
            text(row, "componentName"),
            text(row, "renamedFrom")
        ),
        None => format!("{} {}\n", text(row, "matchType"), text(row, "componentName")),
    };
    list(&report, "componentChanges").map(line).collect()
}

/// Severity, type and path of every change of components.
fn changes(ran: &Ran) -> String {
    let report = ran.json();
    let changes = list(&report, "componentChanges").flat_map(|row| list(row, "changes"));
    let line = |change: &Value| {
        let line = format!("{} {} {}", text(change, "severity"), text(change, "type"), text(change, "path"));
        line.trim_end().to_owned() + "\n"
    };
    changes.map(line).collect()
}

/// Severity, type and path of every change of definitions.
fn definition_changes(ran: &Ran) -> String {
    let report = ran.json();
    let mut lines = String::new();
    for definition in list(&report, "crds") {
        let of_versions = list(definition, "apiVersions").flat_map(|version| list(version, "schemaChanges"));
        for change in list(definition, "changes").chain(of_versions) {
            let line = format!("{} {} {}", text(change, "severity"), text(change, "type"), text(change, "path"));
            let _ = writeln!(lines, "{}", line.trim_end());
        }
    }
    lines
}

fn every_snippet_stands_as_a_fixture_that_says_what_was_added() {
    let data = root().join("tests/data");
    let readme = std::fs::read_to_string(data.join("published/README.md")).expect("a list of the snippets");
    let mut count = 0;
    for folder in ["published", "diff-crds", "upgrade/experiments"] {
        for file in files(&data.join(folder)).iter().filter(|file| !file.ends_with("README.md")) {
            let content = std::fs::read_to_string(file).expect("a fixture");
            let head: String = content.lines().take_while(|line| line.starts_with("# ")).collect();
            assert!(head.to_lowercase().contains("added"), "{} does not say what was added", file.display());
            count += 1;
        }
        for entry in std::fs::read_dir(data.join(folder)).expect("fixtures") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            let stem = name.trim_end_matches("-old.yaml").trim_end_matches("-new.yaml");
            assert!(name == "README.md" || readme.contains(stem), "{folder}/{name} is no snippet of the README");
        }
    }
    assert!(count >= 20, "{count} fixtures were found");
    // Definitions are ones that an API server takes, and models pass the check of a version where they have definitions.
    let place = Pushback::new();
    for file in files(&data.join("published")).iter().filter(|file| file.ends_with("crds/inferenceservice.yaml")) {
        let definition: Value = serde_yaml::from_str(&std::fs::read_to_string(file).expect("a fixture")).expect("YAML");
        assert_eq!(pushback_crd::schema::invalid::problems(&definition), [], "{}", file.display());
        let version = file.parent().and_then(Path::parent).expect("the folder of a version");
        place.run(&["validate-version", &version.to_string_lossy()]).expect(0);
    }
}

fn the_guides_that_the_description_points_to_are_there() {
    // A guide to testing upgrades, one to models, and a reference of the commands; the README leads to each.
    let index = std::fs::read_to_string(root().join("docs/README.md")).expect("an index");
    for guide in ["upgrade-testing.md", "models.md", "commands.md"] {
        assert!(root().join("docs").join(guide).is_file(), "{guide}");
        assert!(index.contains(&format!("]({guide})")), "docs/README.md does not lead to {guide}");
    }
}
