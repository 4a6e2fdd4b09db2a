//! Two published texts about versions of custom resources, statement by statement: tests, commands and sentences that answer
//! each. `PUSHBACK_SHOW=1` prints the table.

use std::path::Path;

use serde::Deserialize;

use crate::support::case::show;
use crate::support::pushback::example;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_statement_is_answered_by_what_exists,
        Nothing: the_example_shows_every_kind_of_change_both_ways,
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chapter {
    chapter: String,
    statements: Vec<Statement>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    says: String,
    /// Names of tests.
    #[serde(default)]
    tests: Vec<String>,
    /// Arguments of a command, and a part of what it prints.
    run: Option<String>,
    prints: Option<String>,
    /// A part of `docs/storage.md` or `docs/conversion-plans.md`.
    docs: Option<String>,
    /// The same, with why not.
    declined: Option<String>,
    /// A file of the project.
    file: Option<String>,
}

/// Documents whose sentences answer statements.
const BOOK: [&str; 2] = ["docs/storage.md", "docs/conversion-plans.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Everything that is said in Rust below some folders.
fn sources(folder: &Path, text: &mut String) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&read(&path));
        }
    }
}

/// On one line, so that a sentence is found wherever its lines break.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A place with the kind of the case study, and the example.
fn place() -> Pushback {
    let pushback = Pushback::new();
    for file in ["definition.yaml", "plan.yaml"] {
        pushback.write(file, read(&root().join("tests/data/conversion/person").join(file)));
    }
    for file in ["definition.yaml", "plan.yaml", "cache.yaml"] {
        pushback.write(&format!("example/{file}"), read(&Path::new(&example("conversion")).join(file)));
    }
    pushback
}

fn every_statement_is_answered_by_what_exists() {
    let chapters: Vec<Chapter> =
        serde_yaml::from_str(&read(&root().join("tests/data/conversion/statements.yaml"))).expect("statements");
    let mut code = String::new();
    for folder in ["tests/integration", "preflight/src", "crates", "src"] {
        sources(&root().join(folder), &mut code);
    }
    let book = BOOK.map(|page| one_line(&read(&root().join(page)))).join(" ");
    let place = place();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for Chapter { chapter, statements } in chapters {
        show(&format!("\n## {chapter}\n\n| statement | answer |\n|---|---|"));
        for statement in statements {
            count += 1;
            let said = &statement.says;
            let mut answers = Vec::new();
            for test in &statement.tests {
                if !code.contains(&format!("fn {test}()")) {
                    wrong.push(format!("{said}: there is no test {test}"));
                }
                answers.push(format!("test `{test}`"));
            }
            if let Some(line) = &statement.run {
                let ran = place.run(&line.split(' ').collect::<Vec<_>>());
                let printed = statement.prints.as_deref().unwrap_or_default();
                let all = format!("{}{}", ran.stdout, ran.stderr);
                if ran.code != 0 || !all.contains(printed) {
                    wrong.push(format!("{said}: `{line}` ended with {} and without {printed:?}: {all}", ran.code));
                }
                answers.push(format!("`pushback {line}` prints … {printed} …"));
            }
            for (words, how) in [(&statement.docs, "docs"), (&statement.declined, "declined")] {
                let Some(words) = words else { continue };
                if !book.contains(&one_line(words)) {
                    wrong.push(format!("{said}: neither of {BOOK:?} says {words:?}"));
                }
                answers.push(format!("{how}: {words}"));
            }
            if let Some(file) = &statement.file {
                if !root().join(file).is_file() {
                    wrong.push(format!("{said}: there is no {file}"));
                }
                answers.push(file.clone());
            }
            if answers.is_empty() {
                wrong.push(format!("{said}: no answer"));
            }
            show(&format!("| {said} | {} |", answers.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}: {wrong:#?}", wrong.len());
    assert!(count > 50, "{count} statements");
}

fn the_example_shows_every_kind_of_change_both_ways() {
    let place = place();
    let convert = |to: &str, file: &str| {
        let plan = ["--plan", "example/plan.yaml", "--crd", "example/definition.yaml"];
        place.run(&[&["storage", "convert", "--to", to][..], &plan, &[file]].concat()).expect(0).stdout
    };
    let new = convert("v2", "example/cache.yaml");
    let told = read(&Path::new(&example("conversion")).join("README.md"));
    assert!(told.contains(&format!("```yaml\n{}\n```", new.trim_end())), "the README shows another object than {new}");
    place.write("new.yaml", &new);
    let parsed = |text: &str| serde_yaml::from_str::<serde_json::Value>(text).expect("YAML");
    assert_eq!(parsed(&convert("v1", "new.yaml")), parsed(&place.read("example/cache.yaml")));
}
